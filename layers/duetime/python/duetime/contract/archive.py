"""The archive's columns, lines and filters.

A line contains a task as in API responses, with owner, attempts and events.
"""

from __future__ import annotations

import json
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints

from duetime.contract.tasks.encoding import json_text, task_text
from duetime.contract.tasks.history import attempts, task_events
from duetime.contract.tasks.responses import Instant, TaskResponse
from duetime.domain.change_events import TaskSnapshot
from duetime.domain.ids import TaskId
from duetime.domain.redaction import Redaction
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause, ScheduleRef
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import from_datetime
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


class Kind(StrEnum):
    """The type of a column's values."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    """Text such as `2026-11-22T20:43:08.123Z`."""
    JSON = "json"
    """Any JSON, including objects and lists."""


def kind_of(hint: Any) -> Kind:  # noqa: ANN401 - a type hint
    """The kind of column for a field's type, whether or not the type is nullable."""
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Annotated:
            return Kind.INSTANT if get_args(Instant)[1] in arguments else kind_of(arguments[0])
        case origin if origin is NotRequired:
            return kind_of(arguments[0])
        case origin if origin in {Union, UnionType}:
            return kind_of(next(each for each in arguments if each is not type(None)))
    if not isinstance(hint, type):
        return Kind.JSON
    kinds = {str: Kind.TEXT, bool: Kind.BOOLEAN, int: Kind.INTEGER}
    return next((kind for type_, kind in kinds.items() if issubclass(hint, type_)), Kind.JSON)


COLUMNS: Mapping[str, Kind] = {
    **{name: kind_of(hint) for name, hint in get_type_hints(TaskResponse, include_extras=True).items()},
    "owner": Kind.TEXT,
    "attempts": Kind.JSON,
    "events": Kind.JSON,
    "events_dropped": Kind.INTEGER,
    "archive_format": Kind.INTEGER,
}
"""All fields of a line."""


FORMAT = 1
"""The format's version, which is stored in each line. Fields can be added, but not renamed, removed or changed in
type."""


@frozen
class JsonLines:
    """Implements `duetime.ports.change_consumers.ArchiveEncoder` with lines of JSON.

    Attributes:
        redaction: the parts of payloads and results to leave out.
    """

    redaction: Redaction = field(default_factory=Redaction)

    def line(self, task: Task, older: Sequence[AttemptRecord]) -> str:
        """Encodes a task as one line.

        Raises:
            ValueError: the task's content is not valid JSON.
        """
        history = task_events(task, older)
        more = {
            "owner": task.owner,
            **attempts(task, older),
            "events": history["events"],
            "events_dropped": history["dropped"],
            "archive_format": FORMAT,
        }
        # The payload's JSON is stored as it was sent, so line breaks can occur in it, but only between tokens.
        line = f"{task_text(task)[:-1]},{json_text(more)[1:]}".replace("\n", " ").replace("\r", " ")
        _require_json(line)
        if not self.redaction.by_pattern:
            return line
        return json.dumps(self.redaction.removed_from(json.loads(line)), separators=(",", ":"))


def _require_json(text: str) -> None:
    """Rejects invalid JSON, because a single invalid line could make an entire object unreadable for queries.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        json.loads(text, parse_constant=_reject_constant, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _reject_constant(name: str) -> None:
    """Rejects constants such as `NaN`, which Python accepts although they are not JSON."""
    raise ValueError(f"{name} is not JSON")


def archived_task(line: str) -> TaskSnapshot | None:
    """The fields of an archived task that filters use; `None` if the line is unreadable."""
    try:
        return _snapshot(json.loads(line))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _snapshot(row: dict[str, Any]) -> TaskSnapshot:
    error, schedule, group = row.get("error"), row.get("schedule"), row.get("group")
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
        group=group["id"] if group else None,
    )


def _instant(text: str) -> Millis:
    return from_datetime(datetime.fromisoformat(text))
