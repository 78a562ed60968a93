"""Ending claimed tasks whose target is not called, now or later: skipped occurrences and expired tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.tasks.attempt_results import EXPIRED, SKIPPED, failure
from duetime.domain.tasks.attempt_run import claim_undone
from duetime.domain.tasks.states import Move
from duetime.services.content_retention import let_expire

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.attempt_results import Expired, Skipped
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.services.outcomes.outcome import OutcomeWriter


def skip(writer: OutcomeWriter, task: Task, skipped: Skipped) -> WriteResult:
    """Take a claimed task back for good: no attempt, no attempt record, and no check.

    Nothing follows, as with a task that its user took back: what lies outside the record is let expire here.

    Args:
        writer: writes outcomes.
        task: the record as it was claimed for its work.
        skipped: why.
    """
    now = writer.runtime.now()
    sets: TaskChanges = {
        **claim_undone(task),
        "error": failure(SKIPPED, skipped.reason).error,
        "waiting_for": None,
        "finished_at": now,
        "expires_at": now + writer.retention,
    }
    write = Write(task.id, Move.SKIP, writer.runtime.nonce(), Guard(fence=task.fence), sets)
    end = writer.stores.tasks.apply(write)
    if isinstance(end, Applied):
        writer.runtime.telemetry.count("tasks_skipped", reason=skipped.code)
        let_expire(writer.stores.contents, end.task, now + writer.retention)
    return end


def expire(writer: OutcomeWriter, task: Task, expired: Expired) -> WriteResult:
    """Fail a claimed task that was not started in time: no attempt, no attempt record, and nothing to roll back.

    Args:
        writer: writes outcomes.
        task: the record as it was claimed for its work.
        expired: why.
    """
    sets: TaskChanges = {
        **claim_undone(task),
        "error": failure(EXPIRED, expired.reason).error,
        "waiting_for": None,
        "requested_action": None,
    }
    end = writer.write_outcome(task, Move.FAIL, sets, writer.runtime.now())
    if isinstance(end, Applied):
        writer.runtime.telemetry.count("tasks_expired", type=task.type)
    return end
