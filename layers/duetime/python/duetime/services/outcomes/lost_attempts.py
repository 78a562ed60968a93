"""Failing tasks whose last attempt was lost with its worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Guard
from duetime.domain.record_limits import ATTEMPTS_INLINE
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.tasks.attempt_run import Run, acknowledged
from duetime.domain.tasks.states import Move
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import RequestedAction

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.services.outcomes.outcome import OutcomeWriter


def fail_claimed(writer: OutcomeWriter, task: Task, phases: frozenset[Phase]) -> WriteResult:
    """Fail a task whose last attempt was lost: no attempt is left, so nothing is run. It may also be cancelled.

    Args:
        writer: writes the outcome.
        task: the record as it was just claimed, one attempt beyond its policy.
        phases: what the target offers.
    """
    last = task.retry.max_attempts
    error = _error(task, last).error
    now = writer.runtime.now()
    lines = Run(task, now, now).history_before
    sets: TaskChanges = {
        "error": error,
        "attempt": last,
        "attempt_history": lines[-ATTEMPTS_INLINE:],
        "deferred_fence": None,
        **acknowledged(task),
    }
    if task.requested_action is RequestedAction.CANCEL:
        return writer.write_outcome(task, Move.STOP, {**sets, "requested_action": None}, now)
    if task.rollback_on_failure and Phase.ROLLBACK in phases:
        return writer.undo(task, sets)
    return writer.write_outcome(task, Move.FAIL, sets, now)


def fail_unwatched(writer: OutcomeWriter, task: Task) -> WriteResult:
    """Fail a task whose last attempt was lost and which no message watches any more.

    Args:
        writer: writes the outcome.
        task: the record as it was read; somebody's write in between is a rejection.
    """
    now = writer.runtime.now()
    line = AttemptRecord(task.attempt, task.fence, task.lease_worker or "", 0, 0, 0, AttemptOutcome.LOST)
    lines = (*Run(task, now, now).history_before, line)
    sets: TaskChanges = {
        "error": _error(task, task.attempt).error,
        "attempt_history": lines[-ATTEMPTS_INLINE:],
        "requested_action": None,
        **acknowledged(task),
    }
    move = Move.STOP if task.requested_action is RequestedAction.CANCEL else Move.GIVE_UP
    return writer.write_outcome(task, move, sets, now, Guard(version=task.version))


def _error(task: Task, last: int) -> Failed:
    if task.deferred_fence is not None:
        return failure("DeadlineExceeded", f"attempt {last}, the last one allowed, was not notified of in time")
    return failure("WorkerLost", f"the worker of attempt {last}, the last one allowed, vanished")
