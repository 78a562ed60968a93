"""One attempt: what its target is given, how it may end, and what is written then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Guard, Write
from duetime.domain.limits import (
    ATTEMPT_ERROR_LENGTH,
    ATTEMPTS_INLINE,
    LEASE_RETURN_MARGIN,
    LONGEST_NOT_SENT_WAIT,
    MAX_CLOCK_DIFFERENCE,
    MAX_ERROR_CLASS_LENGTH,
    MAX_ERROR_MESSAGE_LENGTH,
    SHORTEST_NOT_SENT_WAIT,
)
from duetime.domain.tasks.states import Move
from duetime.domain.tasks.task import AttemptOutcome, AttemptRecord, Task, TaskError

if TYPE_CHECKING:
    from duetime.domain.dispatch.timers import Message
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Progress
    from duetime.domain.tasks.task_changes import TaskChanges
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
        wait_at_least: the target asked not to be tried again for so long.
        lingers_until: the target has not ended, its process will have by then: nothing of the task begins before.
    """

    error: TaskError
    retriable: bool = True
    wait_at_least: Millis = 0
    lingers_until: Millis | None = None

    def retry_at(self, ended_at: Millis, wait: Millis) -> Millis:
        """When the next attempt may begin, by a policy that waits for so long."""
        after_it = 0 if self.lingers_until is None else self.lingers_until + LEASE_RETURN_MARGIN
        return max(ended_at + max(wait, self.wait_at_least), after_it)


@dataclass(frozen=True, slots=True)
class Deferred:
    """The target has accepted the work and will notify."""


@dataclass(frozen=True, slots=True)
class Yielded:
    """The target stopped because its user asked for a pause; `checkpoint` is JSON text in UTF-8, or nothing."""

    checkpoint: bytes | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """The target stopped because its user asked for a cancel."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """The target was not called: something it needs is not free, or is switched off. It counts as no attempt.

    Attributes:
        until: when it is worth another check.
        reason: what is waited for, in words a user understands: `lock db-17`.
    """

    until: Millis
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The target was not called, and will not be: the task's schedule does not want it any more.

    Attributes:
        reason: why, in words a user understands.
    """

    reason: str


SKIPPED = "Skipped"
"""Class of the error of a task that was skipped."""
Ending = Succeeded | Failed | Deferred | Yielded | Stopped | Postponed | Skipped


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
    error = TaskError(kind[:MAX_ERROR_CLASS_LENGTH], _shortened(message, MAX_ERROR_MESSAGE_LENGTH))
    return Failed(error, retriable, wait_at_least)


def reported_history(task: Task) -> tuple[AttemptRecord, ...]:
    """A task's attempt history, its last line with the error that the record is about to forget."""
    if not has_unreported_error(task) or task.error is None:
        return task.attempt_history
    error = replace(task.error, message=_shortened(task.error.message, ATTEMPT_ERROR_LENGTH))
    return (*task.attempt_history[:-1], replace(task.attempt_history[-1], error=error))


def has_unreported_error(task: Task) -> bool:
    """Whether the record's error is that of the last line of its attempt history, which does not repeat it."""
    if task.error is None or not task.attempt_history:
        return False
    last = task.attempt_history[-1]
    return last.error is None and last.outcome in {AttemptOutcome.RETRIED, AttemptOutcome.FAILED}


def _shortened(message: str, length: int) -> str:
    """A text that is cut if it is longer, and says so."""
    if len(message) <= length:
        return message
    return message.removesuffix(_CUT)[: length - len(_CUT)] + _CUT


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who claims, and when.

    Attributes:
        holder: who.
        now: the time by the claimer's clock.
        lease: length of the lease, counted from the planned start.
    """

    holder: str
    now: Millis
    lease: Millis

    def claim(self, message: Message, nonce: str) -> Write:
        """The write that takes a task up: of this turn and due, or left by a worker whose lease is over."""
        start = max(self.now, message.due)
        return self._lease_service(
            message.task_id, Move.CLAIM, nonce, start, Guard(generation=message.generation, due_by=start)
        )

    def claim_rollback(self, task: Task, nonce: str) -> Write:
        """The write that takes up a rollback that is due, or was left by a worker whose lease is over."""
        return self._lease_service(task.id, Move.CLAIM_ROLLBACK, nonce, self.now, Guard(due_by=self.now))

    def claim_follow_up(self, task: Task, nonce: str) -> Write:
        """The write that takes over what follows an outcome; it is no attempt."""
        write = self._lease_service(task.id, Move.CLAIM_FOLLOW_UP, nonce, self.now, Guard(open=True))
        return replace(write, adds={"fence": 1}, sets_once={})

    def _lease_service(self, task_id: TaskId, move: Move, nonce: str, start: Millis, guard: Guard) -> Write:
        return Write(
            task_id=task_id,
            move=move,
            nonce=nonce,
            guard=replace(guard, leased_until_before=self.now - MAX_CLOCK_DIFFERENCE),
            sets={"lease_holder": self.holder, "lease_ends_at": start + self.lease, "run_at": start},
            sets_once={"started_at": start},
            adds={"fence": 1, "attempt": 1},
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a target, as it is entered in the attempt history.

    Attributes:
        progress: what the target told last and no heartbeat has written.
    """

    task: Task
    started_at: Millis
    ended_at: Millis
    progress: Progress | None = None

    def line(self, outcome: AttemptOutcome) -> AttemptRecord:
        """The attempt record of this run."""
        task = self.task
        return AttemptRecord(
            attempt=task.attempt,
            fence=task.fence,
            holder=task.lease_holder or "",
            started_at=self.started_at,
            late=max(0, self.started_at - task.next_at),
            took=self.ended_at - self.started_at,
            outcome=outcome,
        )

    def attempt_history(self, outcome: AttemptOutcome) -> tuple[AttemptRecord, ...]:
        """The whole attempt history after this run."""
        return (*self.history_before, self.line(outcome))

    @property
    def history_before(self) -> tuple[AttemptRecord, ...]:
        """The attempt history without this run; attempts that left no line were lost with their workers."""
        task = self.task
        lost = (
            AttemptRecord(attempt, task.fence - (task.attempt - attempt), "", 0, 0, 0, AttemptOutcome.LOST)
            for attempt in range(_attempts_told_of(task.attempt_history) + 1, task.attempt)
        )
        return (*reported_history(task), *lost)

    def changes(self, outcome: AttemptOutcome) -> TaskChanges:
        """What every end of a run writes: the attempt history, when the first run started, and no open stop request."""
        changes: TaskChanges = {
            "attempt_history": self.attempt_history(outcome)[-ATTEMPTS_INLINE:],
            "stop_request": None,
            "deferred_fence": None,
            "waits_for": None,
        }
        if self.progress is not None:
            changes["progress"] = self.progress
        if self.task.started_at is None or self.task.fence == 1:
            changes["started_at"] = self.started_at
        return changes


def _attempts_told_of(attempt_history: tuple[AttemptRecord, ...]) -> int:
    """How many attempts of the present count are in the history: an end begins a new count, a pause takes one back."""
    if not attempt_history:
        return 0
    last = attempt_history[-1]
    match last.outcome:
        case AttemptOutcome.RETRIED | AttemptOutcome.LOST:
            return last.attempt
        case AttemptOutcome.PAUSED:
            return last.attempt - 1
        case _:
            return 0
