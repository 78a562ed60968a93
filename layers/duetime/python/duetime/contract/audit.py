"""Audit log records, which contain the caller, operation, owner, reason, address and outcome of a request."""

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
    """One control or administration request.

    Attributes:
        at: time of the response.
        owner: the owner that the request acted for; empty if the caller was not identified.
        caller: the identity that sent the request, which is the owner with a role's session name, or a handler's task.
        operation: id of the operation, such as `cancelTask`.
        subject: path of the resource, such as `/v1/tasks/01M7XZ8CGJ0013P2ZBN3YDT3DX/cancel`.
        reason: the reason that the caller gave; empty if there is none.
        status: HTTP status of the response.
        code: code of the problem; empty for a success.
        location: path of the created or started object, such as a bulk operation; empty if no object was created or
            started.
        source_ip: address of the sender, as seen by the gateway; empty for requests that bypassed the gateway.
        user_agent: the `User-Agent` of the request.
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
        # Creations are not recorded, because the task's record and the change stream contain the creator, and there may
        # be thousands of creations per second.
        *("createTask", "createTaskBatch", "createTopology", "runTopologyDefinition"),
        # Reports on attempts are not recorded, because they are visible in the task's attempts and events.
        *("reportOutcome", "reportHeartbeat", "reportProgress"),
        *("acquireLeases", "renewLease", "completeLease", "failLease", "putLeaseStep", "releaseLease"),
        *("acknowledgeLeasePause", "acknowledgeLeaseCancel"),
        # Tickets are not recorded, because they give access only to data that the caller may read anyway.
        "createWatchTicket",
    }
)
"""Operations that change data but are not recorded, because they are neither control nor administration requests."""


def is_recorded(operation: Operation[Any]) -> bool:
    """Whether requests for an operation are recorded in the audit log."""
    return not operation.is_safe and operation.id not in NOT_RECORDED


def record_text(record: AuditRecord) -> str:
    """A record's log line, which contains the record's fields as JSON, with `at` as RFC 3339."""
    return json.dumps({**asdict(record), "at": to_iso(record.at)}, separators=(",", ":"))
