"""Computes the writes that claim, expire and end an attempt, and defines the attempt's token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Guard, Write
from duetime.domain.ids import InvalidTaskId, TaskId
from duetime.domain.limits import ATTEMPT_ERROR_LENGTH, ATTEMPTS_INLINE
from duetime.domain.operating_parameters import (
    LATE_EVENT_AFTER,
    MAX_CLOCK_DIFFERENCE,
    MAX_UNACKNOWLEDGED_LEASES,
    ON_TIME,
)
from duetime.domain.tasks.attempt_records import (
    LOCK_WAIT_EXPIRED,
    QUEUED,
    RECEIVED,
    RETRY_DURATION_EXPIRED,
    AttemptOutcome,
    AttemptRecord,
    Wait,
)
from duetime.domain.tasks.attempt_results import Deferred, Expired, shortened
from duetime.domain.tasks.aws_jobs import is_job, seeks_job
from duetime.domain.tasks.states import LEASED, TERMINAL, Move, State
from duetime.domain.tasks.targets import outlives_workers
from duetime.domain.tasks.waits import bounded, waiting_for_locks_since, waits_with
from duetime.domain.times import SECOND, to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.attempt_results import Ending, Postponed
    from duetime.domain.tasks.task import Progress, Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis


UNACKNOWLEDGED = "a worker: nobody received the last lease"
"""Wait reason of a task whose last lease ended without an acknowledgement."""


def reported_history(task: Task) -> tuple[AttemptRecord, ...]:
    """A task's attempt history, in which the last attempt record has the error that the task's record will lose."""
    if not has_unreported_error(task) or task.error is None:
        return task.attempt_history
    error = replace(task.error, message=shortened(task.error.message, ATTEMPT_ERROR_LENGTH))
    return (*task.attempt_history[:-1], replace(task.attempt_history[-1], error=error))


def has_unreported_error(task: Task) -> bool:
    """Whether the task's error is the last attempt's error, which that attempt's record does not repeat."""
    if task.error is None or not task.attempt_history:
        return False
    last = task.attempt_history[-1]
    return last.error is None and last.outcome in {AttemptOutcome.RETRIED, AttemptOutcome.FAILED}


def ended_attempts(task: Task, older: Iterable[AttemptRecord]) -> list[AttemptRecord]:
    """The ended attempts of a task, oldest first. The last attempt has its full error.

    Args:
        task: the record, which contains the latest attempts.
        older: attempts that did not fit into the record; attempts that the record still contains are ignored.
    """
    # A lost attempt is recorded when the next attempt ends; until then, only the task's fence shows that it was lost.
    ended = Run(task, 0, 0).history_before if task.state in LEASED and task.lease_expires_at else task.attempt_history
    lines = {line.fence: line for line in (*older, *ended)}
    if has_unreported_error(task):
        # The attempt history has only the truncated error.
        last = task.attempt_history[-1]
        lines[last.fence] = replace(last, error=task.error)
    return [lines[fence] for fence in sorted(lines)]


@frozen
class Claimant:
    """The process that claims a task, and the time.

    Attributes:
        holder: the process.
        now: the time according to the process's clock.
        lease: duration of the lease, counted from the planned start.
        awaits_acknowledgement: whether it is possible that the client never receives the lease; the lease then counts
            as an attempt only when the client responds.
        stores_nonce: whether the record stores the claim's nonce, which attempts' tokens contain.
    """

    holder: str
    now: Millis
    lease: Millis
    awaits_acknowledgement: bool = False
    stores_nonce: bool = False

    def claim(self, message: Message, nonce: str) -> Write:
        """The write that claims a task that is due at the given generation, or whose worker's lease has ended."""
        start = max(self.now, message.due)
        guard = Guard(generation=message.generation, due_by=start, acknowledged=True)
        write = self._lease_service(message.task_id, Move.CLAIM, nonce, start, guard)
        if not self.awaits_acknowledgement:
            return write
        return replace(write, sets={**write.sets, "unacknowledged": 1})

    def claim_unacknowledged(self, task: Task, nonce: str) -> Write:
        """The write that takes over an ended lease that its client never acknowledged.

        The unacknowledged lease was not an attempt, so the new lease has the same attempt number. If too many leases in
        a row are unacknowledged, they count as attempts, because the task may be crashing each client before it
        responds.

        Args:
            task: the record as read; if another process has written it since, the takeover is rejected.
            nonce: nonce of the write.
        """
        unacknowledged = task.unacknowledged or 0
        is_attempt = unacknowledged > MAX_UNACKNOWLEDGED_LEASES
        write = self._lease_service(task.id, Move.CLAIM, nonce, self.now, Guard(version=task.version))
        sets: TaskChanges = {
            **write.sets,
            "unacknowledged": unacknowledged + 1 if self.awaits_acknowledgement else None,
            "lease_nonce": nonce if self.stores_nonce else None,
            "waits": waits_with(task, UNACKNOWLEDGED, task.run_at or self.now),
        }
        if task.started_at == task.run_at and not is_attempt:
            # The claim had recorded a start, but the target was not called.
            sets["started_at"] = self.now
        return replace(write, sets=sets, adds={"fence": 1, "attempt": int(is_attempt)})

    def claim_rollback(self, task: Task, nonce: str) -> Write:
        """The write that claims a rollback that is due, or was left by a worker whose lease has ended."""
        return self._lease_service(task.id, Move.CLAIM_ROLLBACK, nonce, self.now, Guard(due_by=self.now))

    def claim_follow_up(self, task: Task, nonce: str) -> Write:
        """The write that takes over the follow-ups of an outcome; this does not count as an attempt."""
        write = self._lease_service(task.id, Move.CLAIM_FOLLOW_UP, nonce, self.now, Guard(open=True))
        return replace(write, adds={"fence": 1}, sets_once={})

    def _lease_service(self, task_id: TaskId, move: Move, nonce: str, start: Millis, guard: Guard) -> Write:
        sets: TaskChanges = {"lease_worker": self.holder, "lease_expires_at": start + self.lease, "run_at": start}
        if self.stores_nonce:
            sets["lease_nonce"] = nonce
        return Write(
            task_id=task_id,
            move=move,
            nonce=nonce,
            guard=replace(guard, leased_until_before=self.now - MAX_CLOCK_DIFFERENCE),
            sets=sets,
            sets_once={"started_at": start},
            adds={"fence": 1, "attempt": 1},
        )


@frozen
class Arrival:
    """How a message reached a worker.

    Attributes:
        sent_at: when it was sent, according to the queue's clock; 0 if unknown.
        received_at: when the worker received it.
    """

    sent_at: Millis
    received_at: Millis


@frozen
class Run:
    """One run of a target, as recorded in the attempt history.

    Attributes:
        progress: the latest progress that the target reported, if no heartbeat has stored it yet.
        arrival: how the message arrived; `None` if unknown.
        was_called: whether the target was called, or may have been.
        function_version: the version of the Lambda function that ran it; empty if no function did.
    """

    task: Task
    started_at: Millis
    ended_at: Millis
    progress: Progress | None = None
    arrival: Arrival | None = None
    was_called: bool = True
    function_version: str = ""

    def line(self, outcome: AttemptOutcome) -> AttemptRecord:
        """The attempt record of this run."""
        task = self.task
        return AttemptRecord(
            attempt=task.attempt,
            fence=task.fence,
            worker=task.lease_worker or "",
            started_at=self.started_at,
            late=max(0, self.started_at - task.next_at),
            took=self.ended_at - self.started_at,
            outcome=outcome,
            function_version=self.function_version,
        )

    def attempt_history(self, outcome: AttemptOutcome) -> tuple[AttemptRecord, ...]:
        """The complete attempt history including this run."""
        return (*self.history_before, self.line(outcome))

    @property
    def history_before(self) -> tuple[AttemptRecord, ...]:
        """The attempt history before this run. Attempts without a record were lost with their workers."""
        task = self.task
        lost = (
            AttemptRecord(attempt, task.fence - (task.attempt - attempt), "", 0, 0, 0, AttemptOutcome.LOST)
            for attempt in range(recorded_attempts(task) + 1, task.attempt)
        )
        return (*reported_history(task), *lost)

    def changes(self, outcome: AttemptOutcome) -> TaskChanges:
        """Changes at the end of any run, which update the attempt history and the first start, and remove requests."""
        changes: TaskChanges = {
            "attempt_history": self.attempt_history(outcome)[-ATTEMPTS_INLINE:],
            "requested_action": None,
            "deferred_fence": None,
            "waiting_for": None,
        }
        changes |= acknowledged(self.task)
        if self.task.rate_places:
            # The next attempt takes new places in the rates' lines.
            changes["rate_places"] = {}
        if self.progress is not None:
            changes["progress"] = self.progress
        if (waits := self._late_waits()) is not None:
            changes["waits"] = waits
        if self.task.started_at is None or self.task.claims == 1:
            changes["started_at"] = self.started_at
        if self.was_called:
            changes |= late_start(self.task, changes.get("started_at", self.task.started_at))
        return changes

    def _late_waits(self) -> tuple[Wait, ...] | None:
        """The waits that show where a late start was delayed: before sending, on the queue or in the worker."""
        due, arrival = self.task.next_at, self.arrival
        if arrival is None or not arrival.sent_at or self.started_at - due <= ON_TIME:
            return None
        queued = min(max(arrival.sent_at, due), self.started_at)
        received = min(max(arrival.received_at, queued), self.started_at)
        return bounded((*self.task.waits, Wait(queued, QUEUED), Wait(received, RECEIVED)))


def late_start(task: Task, started_at: Millis | None) -> TaskChanges:
    """Marks a first start as late, for a write after the target's call; empty if the start is already marked.

    Args:
        task: the record as claimed or read.
        started_at: when its first attempt started.
    """
    if started_at is None or task.started_late or task.attempt_history or task.state is State.ROLLING_BACK:
        # The due time may have changed since an earlier attempt, and a rollback is not a start.
        return {}
    late = replace(task, started_at=started_at).lateness or 0
    return {"started_late": True} if late >= LATE_EVENT_AFTER else {}


def acknowledged(task: Task) -> TaskChanges:
    """Changes that every write by an attempt includes, because its client has responded or the lease has ended."""
    return {} if task.unacknowledged is None else {"unacknowledged": None}


def claim_undone(task: Task) -> TaskChanges:
    """Changes that undo a claim whose target was not called, so that it does not count as an attempt."""
    sets: TaskChanges = {"attempt": task.attempt - 1, **acknowledged(task)}
    if outlives_workers(task.target) and task.state is not State.ROLLING_BACK:
        # Earlier claims by workers that have been lost are undone as well.
        sets["attempt"] = recorded_attempts(task)
    if task.started_at == task.run_at and (not task.awaiting_notification or seeks_job(task)):
        # The claim recorded a start, but the target was not called.
        sets["started_at"] = None
    return sets


def recorded_attempts(task: Task) -> int:
    """Number of recorded attempts; a retry after the end restarts the count, and a paused attempt is not counted."""
    last = task.attempt_history[-1] if task.attempt_history else None
    if last is None or last.started_at < (task.reopened_at or 0):
        return 0
    match last.outcome:
        case AttemptOutcome.RETRIED | AttemptOutcome.LOST:
            return last.attempt
        case AttemptOutcome.PAUSED:
            return last.attempt - 1
        case _:
            return 0


def expired(task: Task, now: Millis) -> Expired | None:
    """Whether an attempt of a task has expired; rollbacks do not expire.

    Args:
        task: the record as claimed.
        now: the time at which its target would be called.
    """
    start_by = _start_by(task)
    if start_by is None or now <= start_by:
        return None
    if is_first_start(task):
        return Expired(f"it had not started by {to_iso(start_by)}")
    return Expired(f"no attempt could start after {to_iso(start_by)}", RETRY_DURATION_EXPIRED)


def checked_by(task: Task, until: Millis) -> Millis:
    """When a postponed task is checked again: at the given time, or earlier if the task expires before that time.

    Args:
        task: the record as claimed.
        until: when to check the reason for the wait again.
    """
    start_by = _start_by(task)
    return until if start_by is None else min(until, start_by + 1)


def lock_wait(task: Task, held: Postponed, now: Millis) -> Postponed | Expired:
    """The result of an attempt that does not get a lock.

    The attempt waits for the lock; for the task's own locks, it waits only until the time limit.

    Args:
        task: the record as claimed.
        held: the lock, and the end of the wait.
        now: the time.
    """
    lock = next((each for each in task.all_locks if held.reason == f"lock {each.key}"), None)
    if lock is None or lock.wait_seconds is None:
        return held
    if task.state is State.ROLLING_BACK or task.state in TERMINAL:
        return held
    since = waiting_for_locks_since(task)
    ends = (now if since is None else since) + lock.wait_seconds * SECOND
    if now < ends:
        return replace(held, until=min(held.until, ends))
    return Expired(f"it had waited for the lock {lock.key} for {lock.wait_seconds} s", LOCK_WAIT_EXPIRED)


def is_first_start(task: Task) -> bool:
    """Whether the claim is for a first attempt, whose start the claim itself has recorded."""
    return task.started_at == task.run_at


def _start_by(task: Task) -> Millis | None:
    """The latest time at which the claimed attempt may start; `None` for no limit."""
    if task.state is State.ROLLING_BACK:
        return None
    return task.start_by if is_first_start(task) else task.retry_by


def start_is_open(task: Task) -> bool:
    """Whether an earlier claim for a task's current attempt may have started a job that is still running.

    A claim that did not call the target is undone, and an attempt that ended is in the history. If another claim is
    counted, then its worker was lost, or its request to start the job got no response.
    """
    return is_job(task.target) and task.attempt > recorded_attempts(task) + 1


def known_job(task: Task) -> str:
    """The ARN of the job that was started for a claimed task's current attempt; empty if unknown."""
    # When an attempt ends, `deferred_fence` is removed, but `job` is kept.
    return (task.job or "") if task.deferred_fence is not None else ""


def unless_open(task: Task, ending: Ending) -> Ending:
    """Replaces the result of a claim whose job may be running.

    Such an attempt must not end by a cancellation, a failure or a missing lock before the job has been searched for.
    """
    return Deferred(known_job(task)) if start_is_open(task) and not isinstance(ending, Deferred) else ending


@frozen
class AttemptToken:
    """A token that lets a handler package's function act for one attempt, as long as the attempt holds its task.

    Attributes:
        nonce: nonce of the claim; only the worker and the function that it invokes know it.
    """

    task_id: TaskId
    fence: int
    nonce: str

    @classmethod
    def of(cls, task: Task) -> AttemptToken:
        """The token of a claimed task's attempt."""
        return cls(task.id, task.fence, task.lease_nonce or "")

    @classmethod
    def parse(cls, text: str) -> AttemptToken | None:
        """Parses a token; `None` if the text is not a token."""
        task_id, _, rest = text.partition(" ")
        fence, _, nonce = rest.partition(" ")
        try:
            return cls(TaskId.parse(task_id), int(fence), nonce)
        except (InvalidTaskId, ValueError):
            return None

    @property
    def text(self) -> str:
        """The token's text."""
        return f"{self.task_id} {self.fence} {self.nonce}"

    def is_of(self, task: Task) -> bool:
        """Whether the attempt holds the task, or is running the follow-ups of the task's outcome."""
        if not self.nonce or task.fence != self.fence or task.lease_nonce != self.nonce:
            return False
        return task.state in LEASED or (task.is_terminal and task.finished_at is None)
