"""Unique keys: at most one task at a time holds each key of an owner, according to its record.

Keys are never released explicitly. An item of the key names the task that took it last, and that task's state
determines whether it still holds it. The write that makes a task hold its key (its creation, or reopening it after its
end) is in one transaction with that item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.tasks.states import LEASED, TERMINAL
from duetime.domain.tasks.task_options import Until, unique_of

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.idempotency_keys import KeyRedirect
    from duetime.domain.tasks.task import Task


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The item of a unique key.

    Attributes:
        task_id: the task that took the key last; its record determines whether it still holds it.
        nonce: of the write of the item.
    """

    task_id: TaskId
    nonce: str


@dataclass(frozen=True, slots=True)
class KeyTaking:
    """A task takes a unique key, in the write that makes it hold the key.

    Attributes:
        since_fence: lower bound of the fences of the task's attempts from then on: an earlier end does not free a key
            that was taken again.
        after: nonce of the item as read, for a key that no task holds; `None` if there was no item.
    """

    owner: str
    key: str
    task_id: TaskId
    since_fence: int
    after: str | None


KeyWrite: TypeAlias = "KeyTaking | KeyRedirect"
"""The write to a key's item in one transaction with a record."""


def holds_key(task: Task) -> bool:
    """Whether a task holds its unique key."""
    unique = unique_of(task.unique, task.debounce)
    if unique is None or task.state in TERMINAL:
        return False
    return unique.until is Until.ENDED or not has_begun(task)


def has_begun(task: Task) -> bool:
    """Whether an attempt at a task has started, so that it must not be replaced any more."""
    return task.state in LEASED or task.started_at is not None
