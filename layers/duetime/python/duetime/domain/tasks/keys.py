"""Idempotency keys of requests, and unique keys of tasks.

A request with the same idempotency key and body creates the same resource; with another body it is rejected (Source:
IETF draft "The Idempotency-Key HTTP Header Field").

At most one task at a time holds each unique key of an owner, according to its record. Unique keys are never released
explicitly. An item of the key names the task that took it last, and that task's state determines whether it still holds
it. The write that makes a task hold its key (its creation, or reopening it after its end) is in one transaction with
that item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE
from duetime.domain.tasks.states import LEASED, TERMINAL
from duetime.domain.tasks.task_options import Until, unique_of

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import OnConflict
    from duetime.domain.times import Millis


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's key for a request, the hash of the request's body, and how long the key is stored."""

    text: str
    body_hash: str
    life: Millis = IDEMPOTENCY_KEY_LIFE


@dataclass(frozen=True, slots=True)
class Accepted(Generic[T]):
    """The result of a request that may be repeated.

    Attributes:
        is_replay: whether an earlier request with the same key created the value; then this one did nothing.
        on_conflict: what was done because another task held the unique key; `None` if the task was created.
    """

    value: T
    is_replay: bool = False
    on_conflict: OnConflict | None = None

    @property
    def is_new(self) -> bool:
        """Whether this request created the value."""
        return not self.is_replay and self.on_conflict is None


@dataclass(frozen=True, slots=True)
class KeyRedirect:
    """Redirects an idempotency key to an existing task, in place of the one that was to be created.

    Attributes:
        wanted: the task that was to be created; the key still names it.
        instead: the task that holds the unique key.
        on_conflict: what is done with the existing task.
    """

    owner: str
    key: str
    wanted: TaskId
    instead: TaskId
    on_conflict: OnConflict


@dataclass(frozen=True, slots=True)
class RememberedKey:
    """The value of an idempotency key. It is stored before its task, so that a replay writes the same task.

    Attributes:
        task_id: id of the task, or of another resource that the request creates.
        due_at: the due time computed by the first request.
        body_hash: hash of the request's body.
        expires_at: when the key may be used again.
        edition: of the resource's name; a replay creates it only if the edition is unchanged.
        on_conflict: what was done instead of creating the task, because the task with `task_id` held its unique key.
    """

    task_id: TaskId
    due_at: Millis
    created_at: Millis
    body_hash: str
    expires_at: Millis
    edition: int = 0
    on_conflict: OnConflict | None = None


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
