"""Unique keys: of the tasks that have one of an owner's keys, one at a time holds it, as its record says.

Nothing has to free a key. An item of the key names the task that took it last, and whether that task still holds it
follows from its state. What makes a task hold its key (its creation, and being opened again after its end) is written
in one transaction with that item.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.states import LEASED, TERMINAL
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task, TaskSpec
    from duetime.domain.times import Millis


class Until(StrEnum):
    """How long a task holds its unique key.

    Attributes:
        STARTED: until its first attempt starts.
        ENDED: until it has an outcome.
    """

    STARTED = "started"
    ENDED = "ended"


class OnConflict(StrEnum):
    """What happens to a creation whose unique key is held by another task.

    Attributes:
        KEEP: nothing is created; the answer is the task that holds the key.
        REPLACE: the task that holds the key gets the fields of the creation, if it has not started.
        REFUSE: the creation is refused.
    """

    KEEP = "keep"
    REPLACE = "replace"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Unique:
    """That a task shall be the only one of its key, among those of its owner.

    Attributes:
        on_conflict: what happens to this creation if another task holds the key; it says nothing about later ones.
    """

    key: str
    until: Until = Until.ENDED
    on_conflict: OnConflict = OnConflict.KEEP


@dataclass(frozen=True, slots=True)
class Debounce:
    """That a task is put off by each further creation with its key, until there has been none for a while.

    Attributes:
        seconds: how long there must have been none.
        max_seconds: how long after its own creation it is due at the latest; `None` for no limit.
    """

    key: str
    seconds: int
    max_seconds: int | None = None

    @property
    def unique(self) -> Unique:
        """The unique key that follows from it."""
        return Unique(self.key, Until.STARTED, OnConflict.REPLACE)

    def due(self, first: Millis, now: Millis) -> Millis:
        """When a task is due with whose key a creation comes now.

        Args:
            first: when the task was created.
            now: the time.
        """
        due = now + self.seconds * SECOND
        return due if self.max_seconds is None else max(now, min(due, first + self.max_seconds * SECOND))


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


def unique_of(task: Task | TaskSpec) -> Unique | None:
    """The unique key of a task; `None` if it has none."""
    return task.unique if task.debounce is None else task.debounce.unique


def holds_key(task: Task) -> bool:
    """Whether a task holds its unique key."""
    unique = unique_of(task)
    if unique is None or task.state in TERMINAL:
        return False
    return unique.until is Until.ENDED or not has_begun(task)


def has_begun(task: Task) -> bool:
    """Whether an attempt at a task has started, so that it is not to be replaced any more."""
    return task.state in LEASED or task.started_at is not None
