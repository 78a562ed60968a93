"""The audit log: which operations are recorded, and the form of a record."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.contract.http.operation import Operation
    from duetime.domain.audit import AuditRecord

NOT_RECORDED = frozenset(
    {
        # The task's record and the stream of changes say who created it; of these there may be thousands a second.
        *("createTask", "createTaskBatch", "createTopology", "runTopologyDefinition"),
        # Reports of attempts, which the task's attempts and events show.
        *("reportOutcome", "reportHeartbeat", "reportProgress"),
        *("acquireLeases", "renewLease", "completeLease", "failLease", "putLeaseStep", "releaseLease"),
        *("acknowledgeLeasePause", "acknowledgeLeaseCancel"),
        # It permits only what the caller may read anyway.
        "createWatchTicket",
    }
)
"""Operations that change something without controlling or administering it."""


def is_recorded(operation: Operation[Any]) -> bool:
    """Whether the audit log has the requests for an operation."""
    return not operation.is_safe and operation.id not in NOT_RECORDED


def record_text(record: AuditRecord) -> str:
    """The line of a record: JSON with its fields; `at` is RFC 3339."""
    return json.dumps({**asdict(record), "at": to_iso(record.at)}, separators=(",", ":"))
