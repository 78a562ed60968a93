"""The columns of the archive of ended tasks: the fields of its lines, with the types that queries see them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT, INTEGER, BOOLEAN, INSTANT, JSON = "VARCHAR", "BIGINT", "BOOLEAN", "TIMESTAMP", "JSON"

COLUMNS: Mapping[str, str] = {
    "id": TEXT,
    "owner": TEXT,
    "type": TEXT,
    "state": TEXT,
    "name": TEXT,
    "tags": JSON,
    "priority": TEXT,
    "due_at": INSTANT,
    "next_at": INSTANT,
    "created_at": INSTANT,
    "started_at": INSTANT,
    "finished_at": INSTANT,
    "lateness_ms": INTEGER,
    "attempt": INTEGER,
    "error": JSON,
    "payload": JSON,
    "result": JSON,
    "content_expired": JSON,
    "progress": JSON,
    "target": JSON,
    "retry": JSON,
    "timeout_seconds": INTEGER,
    "notify_within_seconds": INTEGER,
    "rollback_on_failure": BOOLEAN,
    "lock": JSON,
    "callback_url": TEXT,
    "notify_on": JSON,
    "schedule": JSON,
    "topology": JSON,
    "lease": JSON,
    "awaiting_notification": BOOLEAN,
    "requested_action": TEXT,
    "waiting_for": JSON,
    "traceparent": TEXT,
    "fence": INTEGER,
    "version": INTEGER,
    "attempts": JSON,
    "events": JSON,
    "events_dropped": INTEGER,
    "archive_format": INTEGER,
}
"""DuckDB's type of each column. Instants are in UTC."""
SHOWN = ("finished_at", "id", "type", "state", "attempt", "lateness_ms", "error")
"""What a table shows, unless other columns are named."""
