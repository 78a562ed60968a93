"""Attempt records: how each of a task's attempts ended, and what it has waited for between them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.json_values import writable

if TYPE_CHECKING:
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class TaskError:
    """Why an attempt failed: the error's type and message.

    Whatever a user's code says fits: characters that UTF-8 cannot write are escaped, and so is in a type what cannot be
    printed.
    """

    type: str
    message: str

    def __post_init__(self) -> None:
        """Escape what cannot be written."""
        kind = self.type if self.type.isprintable() else repr(self.type)[1:-1]
        object.__setattr__(self, "type", kind or "Error")
        object.__setattr__(self, "message", writable(self.message))


EXPIRED = "Expired"
"""Class of the error of a task that has expired: its first attempt had not started in time."""
RETRY_DURATION_EXPIRED = "RetryDurationExpired"
"""Class of the error of a task whose next attempt could not start in the `max_duration_seconds` of its retry policy."""
LOCK_WAIT_EXPIRED = "LockWaitExpired"
"""Class of the error of a task that has waited for its lock longer than its `wait_seconds`."""


class AttemptOutcome(StrEnum):
    """How an attempt ended.

    Attributes:
        RETRIED: it failed, and another attempt follows.
        FAILED: it failed, and no other attempt follows.
        LOST: its worker did not report in time.
        PAUSED: it paused by request; it does not count as an attempt.
        CANCELLED: it stopped by request.
        ROLLED_BACK: the target's `rollback` has run.
    """

    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    FAILED = "failed"
    LOST = "lost"
    """Its worker vanished: the lease ran out."""
    PAUSED = "paused"
    """It stopped because its user asked for a pause; it counts as no attempt."""
    CANCELLED = "cancelled"
    """It stopped because its user asked for a cancel."""
    ROLLED_BACK = "rolled_back"
    """The target's `rollback` returned."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """What is kept of one attempt.

    Attributes:
        attempt: its number, from 1.
        fence: the fence it ran under; unlike the number it never repeats.
        worker: who ran it.
        started_at: when the target was called; 0 if its worker was lost and nobody knows.
        late: how long after its planned start that was, in milliseconds.
        took: how long the target ran, in milliseconds.
        outcome: how it ended.
        error: why it failed, its message cut; `None` of the last attempt, whose error is the task's.
    """

    attempt: int
    fence: int
    worker: str
    started_at: Millis
    late: Millis
    took: Millis
    outcome: AttemptOutcome
    error: TaskError | None = None


PAUSED = "paused"
"""What a task waits for that its user has paused."""
RESUMED = "resumed"
"""Stands for the time until its next check of a task that its user has let go on."""
QUEUED = "queued"
"""Stands for the time that the message of a task that starts late was on its queue."""
RECEIVED = "received"
"""Stands for the time after that, until the task starts."""
FORGOTTEN = ""
"""Stands for earlier waits that the record had no more room for."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of a task; it ended when the task was claimed next.

    Attributes:
        since: when it began.
        reason: what for, in the words of `waiting_for`.
    """

    since: Millis
    reason: str
