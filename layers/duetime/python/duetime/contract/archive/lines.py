"""The lines of the archive: a task as the API answers it, with its owner, its attempts and its events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.contract.tasks.attempt_history import attempts
from duetime.contract.tasks.encoding import json_text, task_text
from duetime.contract.tasks.event_responses import task_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task

FORMAT = 1
"""Version of the lines' form, in each line: fields may be added, none is renamed or removed, or changes its type."""


class JsonLines:
    """`duetime.ports.change_consumers.ArchiveEncoder`: lines of JSON."""

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
