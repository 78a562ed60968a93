"""Records how an attempt ended: with an outcome, or with a time for the next attempt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write, WriteResult
from duetime.domain.limits import ATTEMPTS_INLINE, MAX_CHECKPOINT_BYTES, MAX_RESULT_BYTES, MAX_WAIT_REASON_LENGTH
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN
from duetime.domain.tasks.attempt_records import SKIPPED, AttemptOutcome, AttemptRecord
from duetime.domain.tasks.attempt_results import (
    Deferred,
    Ending,
    Expired,
    Failed,
    Postponed,
    Skipped,
    Stopped,
    Succeeded,
    Yielded,
    failure,
)
from duetime.domain.tasks.attempt_run import (
    Run,
    acknowledged,
    checked_by,
    claim_undone,
    is_first_start,
    late_start,
    recorded_attempts,
)
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.control_changes import is_awaited_since, is_cancelled
from duetime.domain.tasks.states import LEGAL, Move, State
from duetime.domain.tasks.targets import Phase, TopologyTarget
from duetime.domain.tasks.task import RequestedAction, after_record, unless_referenced
from duetime.domain.tasks.waits import waits_with
from duetime.domain.times import SECOND
from duetime.domain.topologies.run_state import ROLLBACK_FAILED
from duetime.domain.topologies.watchdog_times import deferred_until, reminders
from duetime.services import task_telemetry
from duetime.services.content_retention import let_expire, note_end, write_checkpoint
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Content, Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import ContentStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.order_lines import OrderLines
    from duetime.services.outcomes.completion_steps import CompletionSteps


_FIRST_JOB_SEARCH = 10 * SECOND
"""Delay before the first search for a job whose start got no response; its service may list the job by then."""


@frozen
class OutcomeWriter:
    """Ends attempts, each with one conditional write on its fence.

    Attributes:
        retention: how long a finished task is kept.
        order_lines: returns the lines of ordered keys.
    """

    stores: Stores
    enqueuer: Enqueuer
    completion: CompletionSteps
    runtime: Runtime
    retention: RetentionPolicy
    order_lines: Callable[[], OrderLines]

    def finish(self, run: Run, ending: Ending, phases: frozenset[Phase]) -> WriteResult:
        """Record the end of a run; the write is rejected if the task has another fence by now.

        Args:
            run: the run and its times.
            ending: how the run ended.
            phases: phases that the target offers; a final failure is rolled back only if these phases include the
                rollback.

        Raises:
            Unavailable: the store did not answer; the write can be repeated.
        """
        match ending:
            case Succeeded(result):
                return self._succeed(run, result, phases)
            case Failed():
                return self.fail(run, ending, phases)
            case Deferred(job):
                return self._defer(run, job)
            case Yielded(checkpoint):
                return self._pause(run, checkpoint, phases)
            case Stopped(error):
                return self.end(run, Move.STOP, AttemptOutcome.CANCELLED, {"error": error} if error else {})
            case Postponed():
                return self.postpone(run.task, ending)
            case Skipped():
                return self.skip(run.task, ending)
            case Expired():
                return self.expire(run.task, ending, phases)

    def postpone(self, task: Task, held: Postponed) -> WriteResult:
        """Put back a claimed task before its target is called; the task is checked later, and no attempt is recorded.

        Args:
            task: the claimed record, for a run or a rollback, or a topology without an execution.
            held: when the wait ends, and its reason.
        """
        sets: TaskChanges = {
            **claim_undone(task),
            "waiting_for": held.reason[:MAX_WAIT_REASON_LENGTH],
            "waits": waits_with(task, held.reason, self.runtime.now()),
            "lease_expires_at": None,
        }
        if held.rate_places is not None:
            sets["rate_places"] = held.rate_places
        held = replace(held, until=checked_by(task, held.until))
        task_telemetry.count_postponed(self.runtime, held)
        if task.state is State.ROLLING_BACK:
            end = self.enqueuer.move(task, Move.RETRY_ROLLBACK, held.until, Guard(fence=task.fence), sets)
            if task.order is not None and isinstance(end, Applied):
                self.order_lines().check_again(end.task)
            return end
        # A topology is postponed even if a cancellation is requested, because its next attempt stops the nodes.
        guard = Guard(fence=task.fence, not_cancelled=not isinstance(task.target, TopologyTarget))
        end = self.enqueuer.move(task, Move.POSTPONE, held.until, guard, sets)
        if not is_cancelled(task, end):
            if task.order is not None and isinstance(end, Applied):
                self.order_lines().check_again(end.task)
            return end
        del sets["lease_expires_at"]
        return self.write_outcome(
            task, Move.STOP, {**sets, "waiting_for": None, "requested_action": None}, self.runtime.now()
        )

    def skip(self, task: Task, skipped: Skipped) -> WriteResult:
        """Skip a claimed occurrence for good before its target is called."""
        end = skip(self.stores, self.runtime, self.retention, task, skipped)
        if task.order is not None and isinstance(end, Applied):
            self.order_lines().release_if_possible(end.task)
        return end

    def expire(self, task: Task, expired: Expired, phases: frozenset[Phase]) -> WriteResult:
        """Fail a claimed task whose target was not called in time; if the task had earlier attempts, roll them back."""
        now = self.runtime.now()
        changes = expiry_changes(task, expired)
        if not is_first_start(task):
            # The records of earlier attempts are kept, with their errors or marked as crashed.
            changes["attempt_history"] = self.inline_attempts(task, Run(task, now, now).history_before)
        if task.rollback_on_failure and Phase.ROLLBACK in phases and not is_first_start(task):
            return self.undo(task, changes)
        end = self.write_outcome(task, Move.FAIL, changes, now)
        if isinstance(end, Applied):
            self.runtime.telemetry.count("tasks_expired", type=task.type)
        return end

    def write_outcome(
        self,
        task: Task,
        move: Move,
        sets: TaskChanges,
        ended_at: Millis,
        guard: Guard | None = None,
        process_ends_at: Millis | None = None,
    ) -> WriteResult:
        """Write an outcome; if steps follow the outcome, the task is not finished yet, and the caller must close it.

        Args:
            task: the record as claimed or read.
            move: the move to the outcome.
            sets: other fields to change.
            ended_at: time of the outcome.
            guard: condition for the write; by default, the fence of `task`.
            process_ends_at: latest end of a target that is still working; the task is closed after that time.
        """
        # A result in `sets` was written with an expiry, so no later step has to set one.
        result: Content | None = None if "result" in sets else task.result
        history = sets.get("attempt_history", task.attempt_history)
        state, error = LEGAL[move].to or task.state, sets.get("error", task.error)
        ended = replace(task, state=state, error=error, result=result, attempt_history=history)
        follows = process_ends_at is not None or self.completion.is_needed(ended)
        # A node is kept as long as its topology; the end of the topology sets the node's expiry.
        sets["expires_at"] = None if task.node_ref is not None else ended_at + self.retention.of(task.type)
        sets["finished_at"] = None if follows else ended_at
        if (task.awaiting_notification or task.pull_queue) and not self.completion.is_here:
            # No worker uses this lease. The lease of a worker that still waits for its target is kept, so that the
            # steps do not start yet.
            sets["lease_expires_at"] = None
        if process_ends_at is not None:
            sets["lease_expires_at"] = process_ends_at
        condition = replace(guard or Guard(fence=task.fence), unawaited=not follows)
        end = self.stores.tasks.apply(Write(task.id, move, self.runtime.nonce(), condition, sets))
        if isinstance(end, Applied):
            task_telemetry.count_outcome(self.runtime.telemetry, end.task)
            note_end(self.stores, self.enqueuer, self.runtime, end.task)
        elif is_awaited_since(task, end):
            # Since this task was read, another task has begun to wait for it, so steps follow.
            awaited = replace(task, has_dependents=True)
            return self.write_outcome(awaited, move, sets, ended_at, guard, process_ends_at)
        return end

    def store_old_attempts(self, run: Run, outcome: AttemptOutcome) -> None:
        """Move the attempt records that no longer fit into the task's record."""
        self.inline_attempts(run.task, run.attempt_history(outcome))

    def inline_attempts(self, task: Task, history: tuple[AttemptRecord, ...]) -> tuple[AttemptRecord, ...]:
        """The latest attempt records, which fit into the task's record; stores earlier ones outside it."""
        for line in history[:-ATTEMPTS_INLINE]:
            self.stores.contents.store_attempt(task.id, line)
        return history[-ATTEMPTS_INLINE:]

    def _succeed(self, run: Run, result: bytes, phases: frozenset[Phase]) -> WriteResult:
        if len(result) > MAX_RESULT_BYTES:
            message = f"the result has {len(result)} bytes; {MAX_RESULT_BYTES} are allowed"
            return self.fail(run, failure("ResultTooLarge", message, retriable=False), phases)
        # The result is written with the expiry that the record will have, so it expires even if no record refers to it.
        # A node's result does not expire while its topology runs.
        is_node = run.task.node_ref is not None
        expiry = (
            unless_referenced(run.ended_at)
            if is_node
            else after_record(run.ended_at + self.retention.of(run.task.type))
        )
        kept = self.stores.contents.keep(run.task.id, f"result.{self.runtime.nonce()}", result, expiry)
        end = self.end(run, Move.SUCCEED, AttemptOutcome.SUCCEEDED, {"result": kept, "error": None})
        if is_node and kept.is_outside and isinstance(end, Applied):
            self.stores.contents.retain(run.task.id, kept, expiry)
        return end

    def fail(self, run: Run, ending: Failed, phases: frozenset[Phase]) -> WriteResult:
        """Record a failure: schedule the next attempt or the rollback, or end the task."""
        task = run.task
        self.runtime.telemetry.count("attempts_failed")
        if ending.retriable and task.retry.allows_after(task.attempt):
            at = ending.retry_at(run.ended_at, task.retry.wait(task.attempt, self.runtime.random_source.fraction()))
            if task.retry_by is None or at <= task.retry_by:
                return self._retry(run, ending, at)
        if task.rollback_on_failure and Phase.ROLLBACK in phases:
            self.store_old_attempts(run, AttemptOutcome.FAILED)
            sets: TaskChanges = {**run.changes(AttemptOutcome.FAILED), "error": ending.error}
            return self.undo(task, sets, ending.process_ends_at)
        return self.end(run, Move.FAIL, AttemptOutcome.FAILED, {"error": ending.error}, ending.process_ends_at)

    def _retry(self, run: Run, ending: Failed, at: Millis) -> WriteResult:
        task = run.task
        self.store_old_attempts(run, AttemptOutcome.RETRIED)
        changes = run.changes(AttemptOutcome.RETRIED)
        # A requested pause is kept, so that the next attempt pauses before it calls anything.
        del changes["requested_action"]
        sets: TaskChanges = {
            **changes,
            "error": ending.error,
            "progress": None,
            "lease_expires_at": ending.process_ends_at,
        }
        result = self.enqueuer.move(task, Move.RETRY, at, Guard(fence=task.fence, not_cancelled=True), sets)
        if is_cancelled(task, result):
            return self.end(run, Move.STOP, AttemptOutcome.FAILED, {"error": ending.error}, ending.process_ends_at)
        task_telemetry.count_retry(self.runtime, at)
        return result

    def undo(self, task: Task, sets: TaskChanges, process_ends_at: Millis | None = None) -> WriteResult:
        """Start the target's rollback: reset the attempt count, and end the lease unless the target still works."""
        sets = {**sets, "attempt": 0, "progress": None, "lease_expires_at": process_ends_at}
        at = self.runtime.now() if process_ends_at is None else process_ends_at + LEASE_RETURN_MARGIN
        return self.enqueuer.move(task, Move.UNDO, at, Guard(fence=task.fence), sets)

    def _defer(self, run: Run, job: str) -> WriteResult:
        """Set reminders, then a lease until the deadline, during which the task waits for the target's notification.

        Args:
            run: the run and its times.
            job: ARN of the job that AWS runs for the task; empty for other targets, and until the job is found.
        """
        task, now = run.task, self.runtime.now()
        deadline = deferred_until(task, run.started_at)
        for at in reminders(task, deadline, now, self.enqueuer.look_ahead):
            self.enqueuer.remind(task, at)
        self.enqueuer.watch_long_run(task)
        sets: TaskChanges = {"lease_expires_at": deadline, "deferred_fence": task.fence}
        sets |= late_start(task, task.started_at)
        if is_job(task.target):
            # A worker that crashed before this write may have started the job, so both attempts count as a single
            # attempt.
            sets |= {"job": job or None, "attempt": recorded_attempts(task) + 1}
            if not job:
                self.enqueuer.remind(task, now + _FIRST_JOB_SEARCH)
        write = Write(task.id, Move.DEFER, self.runtime.nonce(), Guard(fence=task.fence), sets)
        end = self.stores.tasks.apply(write)
        if is_job(task.target) and isinstance(end, Applied) and end.task.requested_action is RequestedAction.CANCEL:
            # The stop was requested before the job was known, so the job is checked at once.
            self.enqueuer.remind(end.task, self.runtime.now())
        self.runtime.telemetry.count("tasks_deferred")
        return end

    def _pause(self, run: Run, checkpoint: bytes | None, phases: frozenset[Phase]) -> WriteResult:
        """Pause the task: the attempt is not counted, and its checkpoint replaces an earlier checkpoint.

        If the user has requested a cancellation, the task is cancelled instead.
        """
        if checkpoint is not None and len(checkpoint) > MAX_CHECKPOINT_BYTES:
            message = f"the checkpoint has {len(checkpoint)} bytes; {MAX_CHECKPOINT_BYTES} are allowed"
            return self.fail(run, failure("CheckpointTooLarge", message, retriable=False), phases)
        self.store_old_attempts(run, AttemptOutcome.PAUSED)
        end = self._write_pause(run, checkpoint)
        return self.end(run, Move.STOP, AttemptOutcome.CANCELLED, {}) if is_cancelled(run.task, end) else end

    def _write_pause(self, run: Run, checkpoint: bytes | None) -> WriteResult:
        task, tasks, contents = run.task, self.stores.tasks, self.stores.contents
        changes = run.changes(AttemptOutcome.PAUSED)
        sets: TaskChanges = {**changes, "attempt": task.attempt - 1, "lease_expires_at": None}
        guard = Guard(fence=task.fence, not_cancelled=True)
        write = Write(task.id, Move.YIELD, self.runtime.nonce(), guard, sets)
        if checkpoint is None:
            return tasks.apply(write)
        return write_checkpoint((tasks, contents), self.runtime, task, checkpoint, write)

    def end(
        self, run: Run, move: Move, outcome: AttemptOutcome, sets: TaskChanges, process_ends_at: Millis | None = None
    ) -> WriteResult:
        """Record the last attempt of a task together with its outcome."""
        self.store_old_attempts(run, outcome)
        changes: TaskChanges = {**run.changes(outcome), **sets}
        return self.write_outcome(run.task, move, changes, run.ended_at, process_ends_at=process_ends_at)


def skip(stores: Stores, runtime: Runtime, retention: RetentionPolicy, task: Task, skipped: Skipped) -> WriteResult:
    """Skip a claimed task for good, without an attempt, an attempt record or another check.

    As with a cancelled task, no steps follow unless other tasks wait for this task, so this call lets the contents
    outside the record expire.

    Args:
        stores: stores of the record and of the contents outside it.
        runtime: clock, nonces and metrics.
        retention: how long a finished task is kept.
        task: the record, claimed for a run.
        skipped: the reason.
    """
    now, is_awaited = runtime.now(), task.has_dependents
    expires = now + retention.of(task.type)
    sets: TaskChanges = {
        **claim_undone(task),
        "error": failure(SKIPPED, skipped.reason).error,
        "waiting_for": None,
        "finished_at": None if is_awaited else now,
        "expires_at": expires,
    }
    guard = Guard(fence=task.fence, unawaited=not is_awaited)
    end = stores.tasks.apply(Write(task.id, Move.SKIP, runtime.nonce(), guard, sets))
    if is_awaited_since(task, end):
        return skip(stores, runtime, retention, replace(task, has_dependents=True), skipped)
    if isinstance(end, Applied):
        runtime.telemetry.count("tasks_skipped", reason=skipped.code)
        let_expire(stores.contents, end.task, expires)
    return end


def expiry_changes(task: Task, expired: Expired) -> TaskChanges:
    """Return the changes that end an expired task with an error; the attempt does not count and leaves no record.

    Args:
        task: the record, claimed for a run.
        expired: the reason.
    """
    return {
        **claim_undone(task),
        "error": failure(expired.kind, expired.reason).error,
        "waiting_for": None,
        "requested_action": None,
    }


@frozen
class RollbackWriter:
    """Records the ends of rollbacks, which have their own lease, retries and outcome."""

    outcome_writer: OutcomeWriter
    enqueuer: Enqueuer
    runtime: Runtime

    def finish(self, run: Run, ending: Ending) -> WriteResult:
        """Record the end of a rollback; the write is rejected if the task has another fence by now."""
        task = run.task
        if isinstance(ending, Succeeded):
            return self._end(run, Move.ROLL_BACK, AttemptOutcome.ROLLED_BACK, {})
        if isinstance(ending, Postponed):
            return self.outcome_writer.postpone(task, ending)
        failed = ending if isinstance(ending, Failed) else _unfit()
        if failed.retriable and task.retry.allows_after(task.attempt):
            self.outcome_writer.store_old_attempts(run, AttemptOutcome.RETRIED)
            at = failed.retry_at(run.ended_at, task.retry.wait(task.attempt, self.runtime.random_source.fraction()))
            changes = run.changes(AttemptOutcome.RETRIED)
            again: TaskChanges = {**changes, "error": failed.error, "lease_expires_at": failed.process_ends_at}
            return self.enqueuer.move(task, Move.RETRY_ROLLBACK, at, Guard(fence=task.fence), again)
        sets: TaskChanges = {"error": failed.error}
        if task.node_ref is not None:
            sets["node_ref"] = replace(task.node_ref, note=ROLLBACK_FAILED)
        return self._end(run, Move.FAIL_ROLLBACK, AttemptOutcome.FAILED, sets, failed.process_ends_at)

    def leave(self, task: Task) -> WriteResult:
        """Fail a task that should be rolled back but whose target offers no rollback; the task keeps its error."""
        return self.outcome_writer.write_outcome(
            task, Move.FAIL_ROLLBACK, {"attempt": task.attempt_history[-1].attempt}, self.runtime.now()
        )

    def give_up(self, task: Task) -> WriteResult:
        """Fail a rollback whose last worker crashed."""
        now = self.runtime.now()
        error = failure("RollbackLost", "the worker of the last allowed rollback was lost", retriable=False)
        return self.finish(Run(task, now, now, was_called=False), error)

    def _end(
        self,
        run: Run,
        move: Move,
        outcome: AttemptOutcome,
        sets: TaskChanges,
        process_ends_at: Millis | None = None,
    ) -> WriteResult:
        self.outcome_writer.store_old_attempts(run, outcome)
        changes: TaskChanges = {**run.changes(outcome), **sets}
        return self.outcome_writer.write_outcome(run.task, move, changes, run.ended_at, process_ends_at=process_ends_at)


def _unfit() -> Failed:
    return failure("RollbackUnfit", "a rollback can neither be deferred, paused nor cancelled", retriable=False)


def fail_claimed(writer: OutcomeWriter, task: Task, phases: frozenset[Phase]) -> WriteResult:
    """Fail or cancel a task whose last allowed attempt was lost; the target is not called again.

    Args:
        writer: writes the outcome.
        task: the record as just claimed, for one attempt more than its retry policy allows.
        phases: phases that the target offers.
    """
    last = task.retry.max_attempts
    error = _error(task, last).error
    now = writer.runtime.now()
    sets: TaskChanges = {
        "error": error,
        "attempt": last,
        "attempt_history": writer.inline_attempts(task, Run(task, now, now).history_before),
        "deferred_fence": None,
        **acknowledged(task),
    }
    if task.requested_action is RequestedAction.CANCEL:
        return writer.write_outcome(task, Move.STOP, {**sets, "requested_action": None}, now)
    if task.rollback_on_failure and Phase.ROLLBACK in phases:
        return writer.undo(task, sets)
    return writer.write_outcome(task, Move.FAIL, sets, now)


def fail_unwatched(writer: OutcomeWriter, task: Task) -> WriteResult:
    """Fail or cancel a task whose last attempt was lost, and which no longer has a message.

    Args:
        writer: writes the outcome.
        task: the record as read; if a concurrent write changed it, this write is rejected.
    """
    now = writer.runtime.now()
    line = AttemptRecord(task.attempt, task.fence, task.lease_worker or "", 0, 0, 0, AttemptOutcome.LOST)
    lines = (*Run(task, now, now).history_before, line)
    sets: TaskChanges = {
        "error": _error(task, task.attempt).error,
        "attempt_history": writer.inline_attempts(task, lines),
        "requested_action": None,
        **acknowledged(task),
    }
    move = Move.STOP if task.requested_action is RequestedAction.CANCEL else Move.GIVE_UP
    return writer.write_outcome(task, move, sets, now, Guard(version=task.version))


def _error(task: Task, last: int) -> Failed:
    if task.deferred_fence is not None:
        return failure("DeadlineExceeded", f"attempt {last}, the last one allowed, reported no outcome in time")
    return failure("WorkerLost", f"the worker of attempt {last}, the last one allowed, was lost")


def says_the_same(contents: ContentStore, task: Task, ending: Ending) -> bool:
    """Whether the last attempt in a task's attempt history ended as `ending` says."""
    outcome = task.attempt_history[-1].outcome if task.attempt_history else None
    match ending:
        case Succeeded(result):
            return outcome is AttemptOutcome.SUCCEEDED and _bytes(contents, task, task.result) == result
        case Failed(error):
            return outcome in {AttemptOutcome.RETRIED, AttemptOutcome.FAILED} and task.error == error
        case Yielded(checkpoint):
            kept = _bytes(contents, task, task.checkpoint)
            # A cancellation requested before the pause was recorded takes precedence.
            is_paused = outcome is AttemptOutcome.PAUSED and checkpoint in (None, kept)
            return is_paused or outcome is AttemptOutcome.CANCELLED
        case Stopped():
            return outcome is AttemptOutcome.CANCELLED
        case _:
            return False


def _bytes(contents: ContentStore, task: Task, content: Content | None) -> bytes | None:
    if content is None:
        return None
    return contents.fetch(task.id, content) if content.data is None else content.data
