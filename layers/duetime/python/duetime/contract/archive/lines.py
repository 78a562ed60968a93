"""The lines of the archive: a task as in API responses, with its owner, attempts and events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.contract.tasks.encoding import json_text, task_text
from duetime.contract.tasks.history import attempts, task_events
from duetime.domain.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task

FORMAT = 1
"""Version of the format, stored in each line: fields may be added, but not renamed or removed, and keep their types."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """`duetime.ports.change_consumers.ArchiveEncoder`: lines of JSON.

    Attributes:
        redaction: what is left out of payloads and results.
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
        # A payload is its creator's JSON, in which line breaks can occur only between tokens.
        line = f"{task_text(task)[:-1]},{json_text(more)[1:]}".replace("\n", " ").replace("\r", " ")
        _require_json(line)
        if not self.redaction.by_pattern:
            return line
        return json.dumps(self.redaction.removed_from(json.loads(line)), separators=(",", ":"))


def _require_json(text: str) -> None:
    """Rejects invalid JSON: one bad line could make a whole object unreadable for queries.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        json.loads(text, parse_constant=_reject_constant, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _reject_constant(name: str) -> None:
    """Rejects constants that Python accepts as JSON, but others do not."""
    raise ValueError(f"{name} is not JSON")
