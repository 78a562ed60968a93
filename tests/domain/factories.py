"""Functions that create basic tasks and messages for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Content, ContentPlace, Task
from duetime.domain.tasks.task_options import Priority
from tests.clocks import NOW

__all__ = ["ID", "NOW", "PAYLOAD", "TASK", "message", "task"]

ID = TaskId.of(NOW, 7, 42)
PAYLOAD = Content(ContentPlace.RECORD, "payload", b'{"job":"backup"}')
TASK = Task(ID, "me", "report", State.SCHEDULED, NOW, NOW, NOW - 1000, PAYLOAD, nonce="first")


def task(**changes: Any) -> Task:  # noqa: ANN401 - any field of Task
    """A task that is due at `NOW`, with the given changes."""
    return replace(TASK, **changes)


def message(**changes: Any) -> Message:  # noqa: ANN401 - any field of Message
    """The message for the first generation of the task that is due at `NOW`, with the given changes."""
    return replace(Message(ID, 0, NOW, Priority.NORMAL, "me"), **changes)
