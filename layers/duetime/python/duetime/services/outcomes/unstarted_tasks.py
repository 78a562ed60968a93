"""Ending claimed tasks whose target is not called, now or later: skipped occurrences and expired tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.record_limits import ATTEMPTS_INLINE
from duetime.domain.tasks.attempt_results import SKIPPED, failure
from duetime.domain.tasks.attempt_run import Run, claim_undone
from duetime.domain.tasks.expiry import is_first_start
from duetime.domain.tasks.states import Move
from duetime.services.content_retention import let_expire

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.attempt_results import Expired, Skipped
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores


def skip(stores: Stores, runtime: Runtime, retention: Millis, task: Task, skipped: Skipped) -> WriteResult:
    """Take a claimed task back for good: no attempt, no attempt record, and no check.

    Nothing follows, as with a task that its user took back: what lies outside the record is let expire here.

    Args:
        stores: where the record is, and what lies outside it.
        runtime: the time, the nonces and the metrics.
        retention: how long a finished task is kept, in milliseconds.
        task: the record as it was claimed for its work.
        skipped: why.
    """
    now = runtime.now()
    sets: TaskChanges = {
        **claim_undone(task),
        "error": failure(SKIPPED, skipped.reason).error,
        "waiting_for": None,
        "finished_at": now,
        "expires_at": now + retention,
    }
    end = stores.tasks.apply(Write(task.id, Move.SKIP, runtime.nonce(), Guard(fence=task.fence), sets))
    if isinstance(end, Applied):
        runtime.telemetry.count("tasks_skipped", reason=skipped.code)
        let_expire(stores.contents, end.task, now + retention)
    return end


def expiry_changes(task: Task, expired: Expired, now: Millis) -> TaskChanges:
    """What the end of a task changes whose attempt has expired: it was none, leaves no record, and has an error.

    Args:
        task: the record as it was claimed for its work.
        expired: why.
        now: the time.
    """
    # Attempts before it keep their records: their errors, and those whose workers were lost.
    history: TaskChanges = {}
    if not is_first_start(task):
        history["attempt_history"] = Run(task, now, now).history_before[-ATTEMPTS_INLINE:]
    return {
        **claim_undone(task),
        **history,
        "error": failure(expired.kind, expired.reason).error,
        "waiting_for": None,
        "requested_action": None,
    }
