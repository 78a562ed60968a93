"""The lines of the archive: a task as the API answers it, with its owner, its attempts and its events."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.contract.tasks.attempt_history import attempts
from duetime.contract.tasks.encoding import json_text, task_text
from duetime.contract.tasks.task_events import task_events

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task

FORMAT = 1
"""Version of the lines' form, in each line: fields may be added, none is renamed or removed, or changes its type."""


class Kind(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    """A text such as `2026-11-22T20:43:08.123Z`."""
    JSON = "json"
    """Any JSON, objects and lists included."""


COLUMNS: Mapping[str, Kind] = {
    "id": Kind.TEXT,
    "owner": Kind.TEXT,
    "type": Kind.TEXT,
    "state": Kind.TEXT,
    "name": Kind.TEXT,
    "tags": Kind.JSON,
    "priority": Kind.TEXT,
    "due_at": Kind.INSTANT,
    "next_at": Kind.INSTANT,
    "created_at": Kind.INSTANT,
    "started_at": Kind.INSTANT,
    "finished_at": Kind.INSTANT,
    "lateness_ms": Kind.INTEGER,
    "attempt": Kind.INTEGER,
    "error": Kind.JSON,
    "payload": Kind.JSON,
    "result": Kind.JSON,
    "content_expired": Kind.JSON,
    "progress": Kind.JSON,
    "target": Kind.JSON,
    "retry": Kind.JSON,
    "timeout_seconds": Kind.INTEGER,
    "notify_within_seconds": Kind.INTEGER,
    "rollback_on_failure": Kind.BOOLEAN,
    "lock": Kind.JSON,
    "callback_url": Kind.TEXT,
    "notify_on": Kind.JSON,
    "schedule": Kind.JSON,
    "topology": Kind.JSON,
    "lease": Kind.JSON,
    "awaiting_notification": Kind.BOOLEAN,
    "requested_action": Kind.TEXT,
    "waiting_for": Kind.JSON,
    "traceparent": Kind.TEXT,
    "fence": Kind.INTEGER,
    "version": Kind.INTEGER,
    "attempts": Kind.JSON,
    "events": Kind.JSON,
    "events_dropped": Kind.INTEGER,
    "archive_format": Kind.INTEGER,
}
"""Every field of a line, in the order in which tables show them."""


class JsonLines:
    """`duetime.ports.archive.ArchiveEncoder`: lines of JSON."""

    def line(self, task: Task, older: Sequence[AttemptRecord]) -> str:
        """A task as one line.

        Raises:
            ValueError: a content is not the JSON that it should be.
        """
        history = task_events(task, older)
        more = {
            "owner": task.owner,
            **attempts(task, older),
            "events": history["events"],
            "events_dropped": history["dropped"],
            "archive_format": FORMAT,
        }
        # A payload is its creator's own JSON, in which line breaks can only stand between its parts.
        line = f"{task_text(task)[:-1]},{json_text(more)[1:]}".replace("\n", " ").replace("\r", " ")
        _require_json(line)
        return line


def _require_json(text: str) -> None:
    """Reject what would make an object unreadable to whoever queries it: one bad line may spoil all others.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        json.loads(text, parse_constant=_reject_constant, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _reject_constant(name: str) -> None:
    """Reject what Python takes for JSON, and others do not."""
    raise ValueError(f"{name} is not JSON")
