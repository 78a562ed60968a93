"""Writing down how a rollback ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Guard, WriteResult
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_results import Ending, Failed, Postponed, Succeeded, failure
from duetime.domain.tasks.attempt_run import Run
from duetime.domain.tasks.states import Move
from duetime.domain.topologies.run_state import ROLLBACK_FAILED

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.services.enqueue import Enqueuer
    from duetime.services.outcomes.outcome import OutcomeWriter


@dataclass(frozen=True, slots=True)
class RollbackWriter:
    """Ends rollbacks: they have their own lease, their own retries and their own outcome."""

    outcome_writer: OutcomeWriter
    enqueuer: Enqueuer
    runtime: Runtime

    def finish(self, run: Run, ending: Ending) -> WriteResult:
        """Write down the end of a rollback; one whose fence is no longer the task's is rejected."""
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
        """Fail a task as it has failed: it was to be undone if its target offers that, and it does not."""
        return self.outcome_writer.write_outcome(
            task, Move.FAIL_ROLLBACK, {"attempt": task.attempt_history[-1].attempt}, self.runtime.now()
        )

    def give_up(self, task: Task) -> WriteResult:
        """Fail a rollback whose last worker vanished."""
        now = self.runtime.now()
        error = failure("RollbackLost", "the worker of the last rollback allowed vanished", retriable=False)
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
