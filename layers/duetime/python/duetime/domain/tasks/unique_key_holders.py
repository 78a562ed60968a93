"""Unique keys: of the tasks that have one of an owner's keys, one at a time holds it, as its record says.

Nothing has to free a key. An item of the key names the task that took it last, and whether that task still holds it
follows from its state. What makes a task hold its key (its creation, and being opened again after its end) is written
in one transaction with that item.
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
    """What the item of a unique key says.

    Attributes:
        task_id: the task that took the key last; whether it holds it still, its record says.
        nonce: of the write of the item.
    """

    task_id: TaskId
    nonce: str


@dataclass(frozen=True, slots=True)
class KeyTaking:
    """A task takes a unique key, with the write that makes it hold the key.

    Attributes:
        since_fence: the fences of the task's attempts from then on are no lower: what ended before frees no key that
            was taken again.
        after: nonce of the item that was read before, of a key that nobody holds; `None` if there was no item.
    """

    owner: str
    key: str
    task_id: TaskId
    since_fence: int
    after: str | None


KeyWrite: TypeAlias = "KeyTaking | KeyRedirect"
"""What is written to the item of a key in one transaction with a record."""


def holds_key(task: Task) -> bool:
    """Whether a task holds its unique key."""
    unique = unique_of(task.unique, task.debounce)
    if unique is None or task.state in TERMINAL:
        return False
    return unique.until is Until.ENDED or not has_begun(task)


def has_begun(task: Task) -> bool:
    """Whether an attempt at a task has started, so that it is not to be replaced any more."""
    return task.state in LEASED or task.started_at is not None
