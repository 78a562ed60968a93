"""Records of the audit log: caller, operation, owner, reason, address and outcome of requests."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from duetime.domain.times import to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.contract.http.operation import Operation
    from duetime.domain.times import Millis


@frozen
class AuditRecord:
    """One request that controls or administers something.

    Attributes:
        at: when it was answered.
        owner: the owner that it acted for; empty if the caller was not identified.
        caller: the identity that sent it: the owner, with the session of a role; a handler names its task.
        operation: id of the operation, such as `cancelTask`.
        subject: path of the resource, such as `/v1/tasks/01M7XZ8CGJ0013P2ZBN3YDT3DX/cancel`.
        reason: why, in the caller's words; empty for none.
        status: HTTP status of the response.
        code: code of the problem; empty for a success.
        location: path of the created or started object, such as a bulk operation; empty for nothing.
        source_ip: address of the sender, as the gateway saw it; empty if the request did not come through it.
        user_agent: program that sent it, as it names itself.
        request_id: id of the request, as in the gateway's access log.
    """

    at: Millis
    owner: str
    caller: str
    operation: str
    subject: str
    reason: str
    status: int
    code: str
    location: str
    source_ip: str
    user_agent: str
    request_id: str


NOT_RECORDED = frozenset(
    {
        # The task's record and the stream of changes have its creator; there may be thousands of creations a second.
        *("createTask", "createTaskBatch", "createTopology", "runTopologyDefinition"),
        # Reports of attempts, which the task's attempts and events show.
        *("reportOutcome", "reportHeartbeat", "reportProgress"),
        *("acquireLeases", "renewLease", "completeLease", "failLease", "putLeaseStep", "releaseLease"),
        *("acknowledgeLeasePause", "acknowledgeLeaseCancel"),
        # It gives access only to data that the caller may read anyway.
        "createWatchTicket",
    }
)
"""Operations that change something without controlling or administering it."""


def is_recorded(operation: Operation[Any]) -> bool:
    """Whether requests for an operation are recorded in the audit log."""
    return not operation.is_safe and operation.id not in NOT_RECORDED


def record_text(record: AuditRecord) -> str:
    """The line of a record: JSON with its fields; `at` is RFC 3339."""
    return json.dumps({**asdict(record), "at": to_iso(record.at)}, separators=(",", ":"))
