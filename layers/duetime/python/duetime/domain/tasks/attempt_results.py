"""Results of an attempt, as a target or a worker reports them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.json_values import writable
from duetime.domain.limits import MAX_ERROR_MESSAGE_LENGTH, MAX_ERROR_TYPE_LENGTH
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN, LONGEST_NOT_SENT_WAIT, SHORTEST_NOT_SENT_WAIT
from duetime.domain.tasks.attempt_records import EXPIRED, TaskError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


_CUT = " [cut]"


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The target returned; `result` is JSON text in UTF-8."""

    result: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The target failed.

    Attributes:
        retriable: another attempt might help.
        wait_at_least: shortest wait before the next attempt, as the target requires it, in milliseconds.
        process_ends_at: the target has not ended, its process will have by then: nothing of the task begins before.
        traceback: of what a Python handler raised, without secrets; empty if there is none.
    """

    error: TaskError
    retriable: bool = True
    wait_at_least: Millis = 0
    process_ends_at: Millis | None = None
    traceback: str = ""

    def retry_at(self, ended_at: Millis, wait: Millis) -> Millis:
        """When the next attempt may begin, by a policy that waits for so long."""
        after_it = 0 if self.process_ends_at is None else self.process_ends_at + LEASE_RETURN_MARGIN
        return max(ended_at + max(wait, self.wait_at_least), after_it)


@dataclass(frozen=True, slots=True)
class Deferred:
    """The target has accepted the work and will notify.

    Attributes:
        job: the ARN of the job that AWS runs for it; empty for other targets, and if the start of the job got no
            response: then it is looked for.
    """

    job: str = ""


@dataclass(frozen=True, slots=True)
class Yielded:
    """The target stopped because its user asked for a pause; `checkpoint` is JSON text in UTF-8, or nothing."""

    checkpoint: bytes | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """The target stopped because its user asked for a cancel.

    Attributes:
        error: what is not known about that; `None` if nothing is left open.
    """

    error: TaskError | None = None


@dataclass(frozen=True, slots=True)
class Postponed:
    """The target was not called: something it needs is not free, or is switched off. It counts as no attempt.

    Attributes:
        until: when it is worth another check.
        reason: what is waited for, in words a user understands: `lock db-17`.
        rate_places: its places in the lines of its rates; `None` leaves it those that it has.
    """

    until: Millis
    reason: str
    rate_places: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        """Escape what UTF-8 cannot write: a package of handlers may say why it is broken."""
        object.__setattr__(self, "reason", writable(self.reason))


class SkipCode(StrEnum):
    """Why an occurrence is skipped.

    Attributes:
        DELETED: its schedule was deleted.
        PAUSED: its schedule is paused.
        CHANGED: its schedule was changed, or paused and resumed, after it was placed.
        OVERLAP: a previous run of its schedule goes on.
        NO_RUNS_LEFT: as many runs of its schedule have begun as may.
    """

    DELETED = "deleted"
    PAUSED = "paused"
    CHANGED = "changed"
    OVERLAP = "overlap"
    NO_RUNS_LEFT = "no_runs_left"


@dataclass(frozen=True, slots=True)
class Skipped:
    """The target was not called, and will not be: the task's schedule does not want it any more.

    Attributes:
        reason: why, in words a user understands.
        code: the same, for programs.
    """

    reason: str
    code: SkipCode


@dataclass(frozen=True, slots=True)
class Expired:
    """The target was not called, and will not be: the time in which this attempt might have started is over.

    Attributes:
        reason: why, in words a user understands.
        kind: class of the error that the task has then.
    """

    reason: str
    kind: str = EXPIRED


SKIPPED = "Skipped"
"""Class of the error of a task that was skipped."""
Ending = Succeeded | Failed | Deferred | Yielded | Stopped | Postponed | Skipped | Expired


@dataclass(frozen=True, slots=True)
class NotSent:
    """The target's call provably never left: what was to take it has rejected it. It counts as no attempt.

    Attributes:
        reason: what rejected it, in words a user understands.
    """

    reason: str

    def postponed(self, task: Task, now: Millis, fraction: float) -> Postponed:
        """The same with the time of the next try: the wait is as long again as the task has been due, within bounds.

        Args:
            task: the record as it was claimed.
            now: the time.
            fraction: a random number, 0 <= fraction < 1, which spreads the tries over half of the wait.
        """
        due = max([task.due_at, *(line.started_at + line.took for line in task.attempt_history[-1:])])
        bound = max(SHORTEST_NOT_SENT_WAIT, min(now - due, LONGEST_NOT_SENT_WAIT))
        return Postponed(now + bound - int(bound // 2 * fraction), self.reason)


TargetEnding = Ending | NotSent
"""How a call of a target ends."""


def failure(kind: str, message: str, *, retriable: bool = True, wait_at_least: Millis = 0) -> Failed:
    """A failure whose error fits the record: a longer text is cut, and says so."""
    # Cut before it is escaped, because it may be very long, and after that, because it may have become longer.
    error = TaskError(kind[:MAX_ERROR_TYPE_LENGTH], message[: MAX_ERROR_MESSAGE_LENGTH + 1])
    error = TaskError(error.type[:MAX_ERROR_TYPE_LENGTH], shortened(error.message, MAX_ERROR_MESSAGE_LENGTH))
    return Failed(error, retriable, wait_at_least)


def shortened(message: str, length: int) -> str:
    """A text that is cut if it is longer, and says so."""
    if len(message) <= length:
        return message
    return message.removesuffix(_CUT)[: length - len(_CUT)] + _CUT
