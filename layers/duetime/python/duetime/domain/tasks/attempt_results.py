"""Results of an attempt, as reported by a target or a worker."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.json_values import most_characters, writable
from duetime.domain.limits import MAX_ENCRYPTED_TEXT_LENGTH, MAX_ERROR_MESSAGE_LENGTH, MAX_ERROR_TYPE_LENGTH
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN, LONGEST_NOT_SENT_WAIT, SHORTEST_NOT_SENT_WAIT
from duetime.domain.tasks.attempt_records import EXPIRED, TaskError
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


_CUT = " [cut]"


@frozen
class Succeeded:
    """The target returned; `result` is JSON text in UTF-8."""

    result: bytes


@frozen
class Failed:
    """The target failed.

    Attributes:
        retriable: whether another attempt might succeed.
        wait_at_least: minimum wait before the next attempt, in milliseconds, as requested by the target.
        retry_in: the wait before the next attempt that a handler requested instead of the retry policy's wait.
        process_ends_at: if the target is still running, the time by which its process will have ended; no part of the
            task starts before then.
        traceback: traceback of a Python handler's exception, without secrets; empty if there is none.
    """

    error: TaskError
    retriable: bool = True
    wait_at_least: Millis = 0
    retry_in: Millis | None = None
    process_ends_at: Millis | None = None
    traceback: str = ""

    def retry_at(self, ended_at: Millis, wait: Millis) -> Millis:
        """When the next attempt may start, given the wait that the retry policy requires."""
        after_it = 0 if self.process_ends_at is None else self.process_ends_at + LEASE_RETURN_MARGIN
        wait = max(wait, self.wait_at_least) if self.retry_in is None else self.retry_in
        return max(ended_at + wait, after_it)


@frozen
class Deferred:
    """The target has accepted the work and will send a notification.

    Attributes:
        job: the ARN of the AWS job; empty for other targets. If the request to start the job got no response, the ARN
            is also empty, and the job is searched for.
    """

    job: str = ""


@frozen
class Yielded:
    """The target stopped because a pause was requested; `checkpoint` is JSON text in UTF-8, or `None`."""

    checkpoint: bytes | None


@frozen
class Stopped:
    """The target stopped because a cancellation was requested.

    Attributes:
        error: what is still unknown about the stop; `None` if everything is known.
    """

    error: TaskError | None = None


@frozen
class Postponed:
    """The target was not called, because something that it needs is not available or is switched off.

    This does not count as an attempt.

    Attributes:
        until: when to check again.
        reason: the reason for the wait as shown to users, such as `lock db-17`.
        rate_places: the task's places in the lines of its rates; `None` leaves them unchanged.
        keeps_before: key of the lock for which the task is first in line; while it waits, the task keeps its locks with
            smaller keys.
    """

    until: Millis
    reason: str
    rate_places: Mapping[str, int] | None = None
    keeps_before: str | None = None

    def __post_init__(self) -> None:
        """Escape the characters that UTF-8 cannot encode, because the text may come from a broken handler package."""
        object.__setattr__(self, "reason", writable(self.reason))


class SkipCode(StrEnum):
    """Why an occurrence of a schedule, or the task of a group's completion, is skipped.

    Attributes:
        DELETED: its schedule was deleted.
        PAUSED: its schedule is paused.
        CHANGED: its schedule was changed, or paused and resumed, after the task was placed.
        OVERLAP: a previous run of its schedule is still open.
        NO_RUNS_LEFT: its schedule has reached its run limit.
        GROUP: the members of its group did not end as its rule requires, or the group was removed.
    """

    DELETED = "deleted"
    PAUSED = "paused"
    CHANGED = "changed"
    OVERLAP = "overlap"
    NO_RUNS_LEFT = "no_runs_left"
    GROUP = "group"


@frozen
class Skipped:
    """The target was not called, and will not be called, because the task's schedule or group excludes the run.

    Attributes:
        reason: human-readable reason.
        code: machine-readable reason.
    """

    reason: str
    code: SkipCode


@frozen
class Expired:
    """The target was not called, and will not be called, because this attempt did not start in time.

    Attributes:
        reason: human-readable reason.
        kind: error type that the task gets.
    """

    reason: str
    kind: str = EXPIRED


Ending = Succeeded | Failed | Deferred | Yielded | Stopped | Postponed | Skipped | Expired


@frozen
class NotSent:
    """The target was definitely not called, because the receiving service rejected the request.

    This does not count as an attempt.

    Attributes:
        reason: what rejected the request, as shown to users.
    """

    reason: str

    def postponed(self, task: Task, now: Millis, fraction: float) -> Postponed:
        """Postpones the task until the next try. The wait is as long as the time since the due time, within bounds.

        Args:
            task: the record as it was claimed.
            now: the time.
            fraction: a random number, 0 <= fraction < 1, which spreads tries over half of the wait.
        """
        due = max([task.due_at, *(line.started_at + line.took for line in task.attempt_history[-1:])])
        bound = max(SHORTEST_NOT_SENT_WAIT, min(now - due, LONGEST_NOT_SENT_WAIT))
        return Postponed(now + bound - int(bound // 2 * fraction), self.reason)


TargetEnding = Ending | NotSent
"""The result of calling a target."""


def failure(kind: str, message: str, *, retriable: bool = True, wait_at_least: Millis = 0) -> Failed:
    """A failure whose error fits into the record, because longer strings are truncated with a note."""
    # The text is truncated before escaping, because it may be huge, and again afterwards, because escaping lengthens
    # it.
    error = TaskError(kind[:MAX_ERROR_TYPE_LENGTH], message[: MAX_ENCRYPTED_TEXT_LENGTH + 1])
    error = TaskError(error.type[:MAX_ERROR_TYPE_LENGTH], shortened(error.message, MAX_ERROR_MESSAGE_LENGTH))
    return Failed(error, retriable, wait_at_least)


def shortened(message: str, length: int) -> str:
    """Truncates a string that is longer than the maximum, and adds a note."""
    length = most_characters(message, length)
    if len(message) <= length:
        return message
    return message.removesuffix(_CUT)[: length - len(_CUT)] + _CUT
