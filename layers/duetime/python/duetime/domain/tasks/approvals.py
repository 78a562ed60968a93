"""Handles approvals, which are tasks that wait for a person's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_results import Postponed, Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import ApprovalTarget, OnTimeout
from duetime.domain.tasks.wait_reasons import APPROVAL_AWAITED
from duetime.domain.tasks.waits import awaits_target_since, waits_for_turn
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_records import TaskError
    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

REJECTED, TIMED_OUT = "Rejected", "ApprovalTimedOut"
"""Error types of a task that was rejected, and of a task about which nobody decided in time."""


def is_awaited(task: Task, now: Millis) -> bool:
    """Whether a task can be approved or rejected now, because it waits for approval, or is due and not yet claimed.

    A task that its user has moved to a later time can be approved or rejected from that time on. A task that may have
    to wait for its turn can be decided only after a worker has found that its turn has come.
    """
    was_asked = task.state is State.WAITING and task.waiting_for == APPROVAL_AWAITED
    is_waiting = was_asked and task.is_postponed
    is_due = (task.state is State.SCHEDULED or was_asked) and task.due_at <= now
    has_turn = was_asked or not waits_for_turn(task)
    return (is_waiting or is_due) and has_turn and isinstance(task.target, ApprovalTarget)


def is_being_checked(task: Task) -> bool:
    """Whether a worker has just claimed an approval, in order to let the task wait or to end it on timeout."""
    return task.state is State.RUNNING and isinstance(task.target, ApprovalTarget)


def was_decided(task: Task) -> bool:
    """Whether a person approved or rejected a task, which then ended without an attempt."""
    was_rejected = task.state is State.FAILED and task.error is not None and task.error.type == REJECTED
    return (task.state is State.SUCCEEDED or was_rejected) and isinstance(task.target, ApprovalTarget)


def waiting_time(task: Task, now: Millis) -> Postponed | None:
    """How long a due task will still wait for an approval; `None` if it needs no approval, or has timed out."""
    if not isinstance(task.target, ApprovalTarget) or task.state is State.ROLLING_BACK:
        return None
    until = awaits_target_since(task, now) + task.target.timeout_seconds * SECOND
    return Postponed(until, APPROVAL_AWAITED) if now < until else None


def after_timeout(target: ApprovalTarget) -> Succeeded | Failed:
    """The result of a task about which nobody decided in time."""
    reason = f"nobody has decided within {target.timeout_seconds} s"
    match target.on_timeout:
        case OnTimeout.APPROVE:
            return Succeeded(b"null")
        case OnTimeout.REJECT:
            return failure(REJECTED, reason, retriable=False)
        case OnTimeout.FAIL:
            return failure(TIMED_OUT, reason, retriable=False)


def rejection(reason: str) -> TaskError:
    """The error of a rejected task."""
    return failure(REJECTED, reason or "it was rejected").error
