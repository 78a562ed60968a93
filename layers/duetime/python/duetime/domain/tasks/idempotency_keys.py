"""Idempotency keys: the same key and body make the same thing; the same key with another body is rejected.

Source: IETF draft "The Idempotency-Key HTTP Header Field".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task_options import OnConflict
    from duetime.domain.times import Millis


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A client's key for a request, the hash of the body it came with, and how long it is remembered."""

    text: str
    body_hash: str
    life: Millis = IDEMPOTENCY_KEY_LIFE


@dataclass(frozen=True, slots=True)
class Accepted(Generic[T]):
    """What came of a request that may be repeated.

    Attributes:
        is_replay: an earlier request with the same idempotency key made the value; nothing was done for this one.
        on_conflict: what was done instead of making it, because another task held its unique key; `None` if it was
            made.
    """

    value: T
    is_replay: bool = False
    on_conflict: OnConflict | None = None

    @property
    def is_new(self) -> bool:
        """Whether the value was made for this very request."""
        return not self.is_replay and self.on_conflict is None


@dataclass(frozen=True, slots=True)
class KeyRedirect:
    """An idempotency key stands for a task that is there, in place of the one that was to be made.

    Attributes:
        wanted: the task that was to be made; the key still names it.
        instead: the task that holds the unique key.
        on_conflict: what is done with that one.
    """

    owner: str
    key: str
    wanted: TaskId
    instead: TaskId
    on_conflict: OnConflict


@dataclass(frozen=True, slots=True)
class RememberedKey:
    """What is kept under an idempotency key before its task is written, so that a replay writes that very task.

    Attributes:
        task_id: of the task; or the id of what else the request makes.
        due_at: the due time as it was understood at the first request.
        body_hash: hash of the request's body.
        expires_at: when the key may be used again.
        edition: of the name under which something is made; a replay makes it only if the name is still at it.
        on_conflict: what was done instead of making the task, because the task named held its unique key.
    """

    task_id: TaskId
    due_at: Millis
    created_at: Millis
    body_hash: str
    expires_at: Millis
    edition: int = 0
    on_conflict: OnConflict | None = None
