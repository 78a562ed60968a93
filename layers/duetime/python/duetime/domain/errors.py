"""What can go wrong with a request, named for what happened. The API turns each into a problem of the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.task import Task


class RequestRefused(Exception):
    """A request that cannot be met; nothing was changed."""


class FieldInvalid(RequestRefused):
    """A field of the request cannot be accepted."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class TaskUnknown(RequestRefused):
    """There is no such task, or it belongs to another owner."""

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(f"there is no task {task_id}")
        self.task_id = task_id


class MoveRefused(RequestRefused):
    """The task's state does not allow what was asked."""

    def __init__(self, task: Task, wanted: str) -> None:
        super().__init__(f"the task is {task.state} and cannot be {wanted}")
        self.task = task


class VersionDiffers(RequestRefused):
    """The task has changed since the version that the request was made for."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the task is at version {task.version}")
        self.task = task


class FenceDiffers(RequestRefused):
    """The fence of a request is not that of a running attempt, or the attempt's time is over."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the task is {task.state} at fence {task.fence}; the attempt is over, or it is another's")
        self.task = task


class NotifiedOtherwise(RequestRefused):
    """The attempt has ended already, and differently."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"the attempt ended differently before: the task is {task.state}")
        self.task = task


class KeyReused(RequestRefused):
    """The idempotency key was used before, with another body."""

    def __init__(self) -> None:
        super().__init__("this idempotency key was used before, with another body")


class Unavailable(Exception):
    """A service that duetime stands on throttles or fails; the request may be repeated."""
