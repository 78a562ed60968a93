"""Reads lines of the archive again: whose task a line is, and whether it meets a filter."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from duetime.domain.change_events import TaskSnapshot
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause, ScheduleRef
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import from_datetime

if TYPE_CHECKING:
    from duetime.domain.times import Millis


def archived_task(line: str) -> TaskSnapshot | None:
    """The fields of an archived task that filters concern; `None` for an unreadable line."""
    try:
        return _snapshot(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _snapshot(row: dict[str, Any]) -> TaskSnapshot:
    error, schedule = row.get("error"), row.get("schedule")
    created_at = _instant(row["created_at"])
    return TaskSnapshot(
        id=TaskId(row["id"]),
        owner=row["owner"],
        type=row["type"],
        state=State(row["state"]),
        version=row["version"],
        due_at=_instant(row["due_at"]),
        created_at=created_at,
        priority=Priority(row["priority"]),
        name=row.get("name") or "",
        tags=row.get("tags") or {},
        error=TaskError(error["type"], error["message"]) if error else None,
        finished_at=_instant(row["finished_at"]) if row.get("finished_at") else None,
        schedule_ref=ScheduleRef(schedule["name"], 0, created_at, Cause(schedule["cause"])) if schedule else None,
    )


def _instant(text: str) -> Millis:
    return from_datetime(datetime.fromisoformat(text))
