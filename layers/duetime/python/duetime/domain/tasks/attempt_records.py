"""Attempt records, which store how each attempt of a task ended, and the waits between attempts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.json_values import writable
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.times import Millis


@frozen
class TaskError:
    """The type and message of an attempt's error.

    Any text from a user's code is accepted. Characters that UTF-8 cannot encode, and unprintable characters in a type,
    are escaped.
    """

    type: str
    message: str

    def __post_init__(self) -> None:
        """Escape the characters that cannot be stored."""
        kind = self.type if self.type.isprintable() else repr(self.type)[1:-1]
        object.__setattr__(self, "type", kind or "Error")
        object.__setattr__(self, "message", writable(self.message))


SKIPPED = "Skipped"
"""Error type of a skipped task."""
EXPIRED = "Expired"
"""Error type of an expired task, whose first attempt did not start in time."""
RETRY_DURATION_EXPIRED = "RetryDurationExpired"
"""Error type of a task whose next attempt could not start within the `max_duration_seconds` of its retry policy."""
LOCK_WAIT_EXPIRED = "LockWaitExpired"
"""Error type of a task that has waited for a lock longer than the lock's `wait_seconds`."""


class AttemptOutcome(StrEnum):
    """How an attempt ended.

    Attributes:
        RETRIED: the attempt failed, and another attempt follows.
        FAILED: the attempt failed, and no other attempt follows.
        LOST: the attempt's worker did not report in time.
        PAUSED: the attempt paused at a user's request, and does not count as an attempt.
        CANCELLED: the attempt stopped at a user's request.
        ROLLED_BACK: the target's `rollback` has run.
    """

    SUCCEEDED = "succeeded"
    RETRIED = "retried"
    FAILED = "failed"
    LOST = "lost"
    """The attempt's worker was lost, so the lease expired."""
    PAUSED = "paused"
    """The attempt stopped because its user requested a pause, and does not count as an attempt."""
    CANCELLED = "cancelled"
    """The attempt stopped because its user requested a cancellation."""
    ROLLED_BACK = "rolled_back"
    """The target's `rollback` returned."""


@frozen
class AttemptRecord:
    """The stored summary of one attempt.

    Attributes:
        attempt: its number, counted from 1.
        fence: the attempt's fence, which, unlike its number, is never used twice.
        worker: the worker that ran it.
        started_at: when the target was called; 0 if the worker was lost and the time is unknown.
        late: how long after its planned start the attempt started, in milliseconds.
        took: how long the target ran, in milliseconds.
        outcome: how it ended.
        error: why it failed, with a truncated message; `None` for the last attempt, because the task's error is that
            attempt's error.
        function_version: the version of the Lambda function that ran it, which is a worker or a handler package; empty
            if unknown.
    """

    attempt: int
    fence: int
    worker: str
    started_at: Millis
    late: Millis
    took: Millis
    outcome: AttemptOutcome
    error: TaskError | None = None
    function_version: str = ""


PAUSED = "paused"
"""Wait reason of a task that its user has paused."""
RESUMED = "resumed"
"""Wait reason of a task from when it is resumed until its next check."""
QUEUED = "queued"
"""Wait reason of a late task while its message is on the queue."""
RECEIVED = "received"
"""Wait reason of a late task from the receipt of its message until it starts."""
FORGOTTEN = ""
"""Reason of a wait that stands for earlier waits that did not fit into the record."""


@frozen
class Wait:
    """A wait of a task, which ended at the task's next claim.

    Attributes:
        since: when the wait started.
        reason: the reason, in the same words as in `waiting_for`.
    """

    since: Millis
    reason: str
