"""The task that most store tests use, and variants of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Content, ContentPlace, Task

HOME = 1_795_228_380_250
"""2026-11-21T02:33:00.250Z"""
SHARD = 3
OWNER = "ann"
_FRESH = count(1)


def numbered(number: int) -> TaskId:
    """Return an id in shard 3 of the example's minute; a greater number sorts later."""
    return TaskId.of(HOME, SHARD, number)


def task(**changes: Any) -> Task:  # noqa: ANN401 - any field of a task
    """Return a task that is scheduled in the example's minute, with these fields."""
    fields: dict[str, Any] = {
        "id": numbered(0),
        "owner": OWNER,
        "type": "report",
        "state": State.SCHEDULED,
        "due_at": HOME,
        "next_at": HOME,
        "created_at": HOME - 90_000,
        "payload": Content(ContentPlace.RECORD, "payload", b'{"any":"json"}'),
        "nonce": "created",
    }
    return Task(**(fields | changes))


def fresh(any_task: Task) -> Task:
    """Return the same task with an id that no other example has."""
    return replace(any_task, id=TaskId.of(any_task.id.home, any_task.id.shard, next(_FRESH)))
