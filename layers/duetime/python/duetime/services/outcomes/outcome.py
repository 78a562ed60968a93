"""Writing down how an attempt ended: its outcome, or when it is tried again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write, WriteResult
from duetime.domain.limits import MAX_CHECKPOINT_BYTES, MAX_RESULT_BYTES
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN
from duetime.domain.record_limits import ATTEMPTS_INLINE, MAX_WAIT_REASON_LENGTH
from duetime.domain.tasks.attempt_records import AttemptOutcome
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
from duetime.domain.tasks.attempt_run import claim_undone, waits_with
from duetime.domain.tasks.cancellation import is_cancelled
from duetime.domain.tasks.content_expiry import after_record, unless_referenced
from duetime.domain.tasks.expiry import checked_by, is_first_start
from duetime.domain.tasks.states import LEGAL, Move, State
from duetime.domain.tasks.targets import Phase, TopologyTarget
from duetime.services.content_retention import let_key_expire
from duetime.services.outcomes import attempt_metrics, unstarted_tasks
from duetime.services.outcomes.suspended_attempts import write_deferral, write_pause

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_run import Run
    from duetime.domain.tasks.content import Content
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.outcomes.completion_steps import CompletionSteps


@dataclass(frozen=True, slots=True)
class OutcomeWriter:
    """Ends attempts, each with one conditional write on its fence.

    Attributes:
        retention: how long a finished task is kept, in milliseconds.
    """

    stores: Stores
    enqueuer: Enqueuer
    completion: CompletionSteps
    runtime: Runtime
    retention: Millis

    def finish(self, run: Run, ending: Ending, phases: frozenset[Phase]) -> WriteResult:
        """Write down the end of a run; a run whose fence is no longer the task's is rejected.

        Args:
            run: what ran, and when.
            ending: how it ended.
            phases: what the target offers: a final failure is undone only if it can be.

        Raises:
            Unavailable: the store did not answer; the write may be repeated.
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
        """Put a claimed task back before its target was called: no attempt, no attempt record, and a check later.

        Args:
            task: the record as it was claimed, for its work or for its rollback; or a topology without its execution.
            held: until when, and why.
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
        attempt_metrics.count_postponed(self.runtime, held)
        if task.state is State.ROLLING_BACK:
            return self.enqueuer.move(task, Move.RETRY_ROLLBACK, held.until, Guard(fence=task.fence), sets)
        # A topology's own run has its nodes stopped; its next attempt does what was requested of this one.
        guard = Guard(fence=task.fence, not_cancelled=not isinstance(task.target, TopologyTarget))
        end = self.enqueuer.move(task, Move.POSTPONE, held.until, guard, sets)
        if not is_cancelled(task, end):
            return end
        del sets["lease_expires_at"]
        return self.write_outcome(
            task, Move.STOP, {**sets, "waiting_for": None, "requested_action": None}, self.runtime.now()
        )

    def skip(self, task: Task, skipped: Skipped) -> WriteResult:
        """Take a claimed occurrence back for good before its target was called."""
        return unstarted_tasks.skip(self.stores, self.runtime, self.retention, task, skipped)

    def expire(self, task: Task, expired: Expired, phases: frozenset[Phase]) -> WriteResult:
        """Fail a claimed task whose target was not called in time; what earlier attempts did is rolled back."""
        now = self.runtime.now()
        changes = unstarted_tasks.expiry_changes(task, expired, now)
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
        """Write an outcome; if something follows it, the task is not finished yet, and must be closed.

        Args:
            task: the record as it was claimed or read.
            move: what leads to the outcome.
            sets: what else it changes.
            ended_at: when it came about.
            guard: what must hold; the fence, unless something else is named.
            process_ends_at: its target still works, until then at the latest: it is closed by somebody after that.
        """
        # A result of this very attempt was written with its expiry.
        result: Content | None = None if "result" in sets else task.result
        history = sets.get("attempt_history", task.attempt_history)
        state, error = LEGAL[move].to or task.state, sets.get("error", task.error)
        ended = replace(task, state=state, error=error, result=result, attempt_history=history)
        follows = process_ends_at is not None or self.completion.is_needed(ended)
        # A node is kept as long as its topology, whose end gives it its expiry.
        sets["expires_at"] = None if task.node_ref is not None else ended_at + self.retention
        sets["finished_at"] = None if follows else ended_at
        if (task.awaiting_notification or task.pull_queue) and not self.completion.is_here:
            # Nobody works under it; a worker that still waits for its target keeps its lease, so that nothing follows.
            sets["lease_expires_at"] = None
        if process_ends_at is not None:
            sets["lease_expires_at"] = process_ends_at
        write = Write(task.id, move, self.runtime.nonce(), guard or Guard(fence=task.fence), sets)
        end = self.stores.tasks.apply(write)
        if isinstance(end, Applied):
            attempt_metrics.count_outcome(self.runtime.telemetry, end.task)
            let_key_expire(self.stores, end.task)
        return end

    def store_old_attempts(self, run: Run, outcome: AttemptOutcome) -> None:
        """Move the attempt records that the record has no more room for."""
        for line in run.attempt_history(outcome)[:-ATTEMPTS_INLINE]:
            self.stores.contents.store_attempt(run.task.id, line)

    def _succeed(self, run: Run, result: bytes, phases: frozenset[Phase]) -> WriteResult:
        if len(result) > MAX_RESULT_BYTES:
            message = f"the result has {len(result)} bytes; {MAX_RESULT_BYTES} are allowed"
            return self.fail(run, failure("ResultTooLarge", message, retriable=False), phases)
        # Its record expires from this very write on: so does the result, also one that its write never refers to.
        # That of a node does not, as long as its topology goes on.
        is_node = run.task.node_ref is not None
        expiry = unless_referenced(run.ended_at) if is_node else after_record(run.ended_at + self.retention)
        kept = self.stores.contents.keep(run.task.id, f"result.{self.runtime.nonce()}", result, expiry)
        end = self.end(run, Move.SUCCEED, AttemptOutcome.SUCCEEDED, {"result": kept, "error": None})
        if is_node and kept.is_outside and isinstance(end, Applied):
            self.stores.contents.retain(run.task.id, kept, expiry)
        return end

    def fail(self, run: Run, ending: Failed, phases: frozenset[Phase]) -> WriteResult:
        """Write down a failure: the next attempt, the rollback or the end of the task."""
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
        # A pause that was requested of this attempt is done by the next one before it calls anything.
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
        attempt_metrics.count_retry(self.runtime, at)
        return result

    def undo(self, task: Task, sets: TaskChanges, process_ends_at: Millis | None = None) -> WriteResult:
        """Have the target roll back: attempts are counted again, and the lease is ended, unless it still works."""
        sets = {**sets, "attempt": 0, "lease_expires_at": process_ends_at}
        at = self.runtime.now() if process_ends_at is None else process_ends_at + LEASE_RETURN_MARGIN
        return self.enqueuer.move(task, Move.UNDO, at, Guard(fence=task.fence), sets)

    def _defer(self, run: Run, job: str) -> WriteResult:
        end = write_deferral(self.stores, self.enqueuer, self.runtime, run, job)
        self.runtime.telemetry.count("tasks_deferred")
        return end

    def _pause(self, run: Run, checkpoint: bytes | None, phases: frozenset[Phase]) -> WriteResult:
        if checkpoint is not None and len(checkpoint) > MAX_CHECKPOINT_BYTES:
            message = f"the checkpoint has {len(checkpoint)} bytes; {MAX_CHECKPOINT_BYTES} are allowed"
            return self.fail(run, failure("CheckpointTooLarge", message, retriable=False), phases)
        self.store_old_attempts(run, AttemptOutcome.PAUSED)
        end = write_pause(self.stores, self.runtime, run, checkpoint)
        return self.end(run, Move.STOP, AttemptOutcome.CANCELLED, {}) if is_cancelled(run.task, end) else end

    def end(
        self, run: Run, move: Move, outcome: AttemptOutcome, sets: TaskChanges, process_ends_at: Millis | None = None
    ) -> WriteResult:
        """Write down the last attempt of a task together with its outcome."""
        self.store_old_attempts(run, outcome)
        changes: TaskChanges = {**run.changes(outcome), **sets}
        return self.write_outcome(run.task, move, changes, run.ended_at, process_ends_at=process_ends_at)
