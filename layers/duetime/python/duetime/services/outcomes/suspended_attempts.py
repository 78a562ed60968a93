"""Attempts that end without an outcome: paused, or accepted by a target that notifies later."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_run import attempts_told_of, late_start
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.content_expiry import unless_referenced
from duetime.domain.tasks.states import Move
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND
from duetime.domain.topologies.watchdog_times import deferred_until, reminders
from duetime.services.content_retention import replace_content

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.attempt_run import Run
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer

_FIRST_SEARCH = 10 * SECOND
"""After this, a job is first looked for whose start got no response: its service may list it by then."""


def write_deferral(stores: Stores, enqueuer: Enqueuer, runtime: Runtime, run: Run, job: str) -> WriteResult:
    """Wait for the target's notification until its deadline: the reminders first, then the long lease.

    Args:
        stores: where it is written.
        enqueuer: sets the reminders.
        runtime: clock and chance.
        run: what ran, and when.
        job: the ARN of the job that AWS runs for it; empty for other targets, and for a job that is looked for.
    """
    task, now = run.task, runtime.now()
    deadline = deferred_until(task, run.started_at)
    for at in reminders(task, deadline, now, enqueuer.look_ahead):
        enqueuer.remind(task, at)
    sets: TaskChanges = {"lease_expires_at": deadline, "deferred_fence": task.fence}
    sets |= late_start(task, task.started_at)
    if is_job(task.target):
        # A worker that was lost before this write may have started it: that is the same attempt.
        sets |= {"job": job or None, "attempt": attempts_told_of(task) + 1}
        if not job:
            enqueuer.remind(task, now + _FIRST_SEARCH)
    result = stores.tasks.apply(Write(task.id, Move.DEFER, runtime.nonce(), Guard(fence=task.fence), sets))
    if is_job(task.target) and isinstance(result, Applied) and result.task.requested_action is RequestedAction.CANCEL:
        # It was requested before there was a job to stop.
        enqueuer.remind(result.task, runtime.now())
    return result


def write_pause(stores: Stores, runtime: Runtime, run: Run, checkpoint: bytes | None) -> WriteResult:
    """Pause: the attempt counts for nothing, and its checkpoint takes the place of an earlier one.

    A task whose user has asked for its cancellation is not paused: the write is rejected.
    """
    task = run.task
    sets: TaskChanges = {**run.changes(AttemptOutcome.PAUSED), "attempt": task.attempt - 1, "lease_expires_at": None}
    guard = Guard(fence=task.fence, not_cancelled=True)
    write = Write(task.id, Move.YIELD, runtime.nonce(), guard, sets)
    if checkpoint is None:
        return stores.tasks.apply(write)
    expiry = unless_referenced(max(run.ended_at, task.due_at))
    kept = stores.contents.keep(task.id, f"checkpoint.{runtime.nonce()}", checkpoint, expiry)
    write = replace(write, sets={**write.sets, "checkpoint": kept})
    return replace_content(
        (stores.tasks, stores.contents), task, task.checkpoint, kept, expiry, partial(stores.tasks.apply, write)
    )
