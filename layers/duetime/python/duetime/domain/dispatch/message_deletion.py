"""Decides whether a message may be deleted, which requires that the task's record no longer needs the message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import (
    EARLY_MESSAGE_RETURN,
    LEASE_RETURN_MARGIN,
    MAX_CLOCK_DIFFERENCE,
    MAX_DELAY,
)
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.states import LEASED, STARTABLE, State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import SECOND, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.task import Task


@frozen
class DeleteMessage:
    """The message may be deleted."""

    reason: str


@frozen
class RedeliverMessage:
    """The message must be delivered again, no earlier than `at`."""

    at: Millis
    reason: str


@frozen
class FollowUp:
    """The task has an outcome, but its follow-ups are unfinished, so the worker must take them over."""

    task: Task


@frozen
class Undo:
    """The task waits for its rollback, or its rollback was interrupted, so the worker must take the rollback over."""

    task: Task


@frozen
class CheckTopology:
    """The task is a running topology, so the worker must check whether its execution is still running."""

    task: Task


@frozen
class CheckJob:
    """AWS runs a job for the task, so the worker must check whether the job is still running."""

    task: Task


@frozen
class TakeOver:
    """The task's lease has ended and its client never acknowledged it, so the worker must take the task over."""

    task: Task


@frozen
class CheckDependencies:
    """The task waits for other tasks, so the worker must check whether they have ended."""

    task: Task


Redelivery = (
    DeleteMessage | RedeliverMessage | FollowUp | Undo | CheckTopology | CheckJob | TakeOver | CheckDependencies
)


def before_due(message: Message, now: Millis) -> RedeliverMessage:
    """Handles a message that arrives long before its due time by this worker's clock.

    The queue delays messages until they are due, so this clock is slow, or the sender's clock was fast. The message
    must not be invisible until its due time, because the next worker may have the correct time.
    """
    return RedeliverMessage(min(message.due - SECOND, now + EARLY_MESSAGE_RETURN), "not due")


def after_refusal(task: Task | None, message: Message, now: Millis) -> Redelivery:
    """Handles a message whose claim was rejected because of the record's current state."""
    if task is None:
        return DeleteMessage("unknown task")
    if task.finished_at is not None:
        return DeleteMessage(f"already {task.state}")
    if task.is_terminal or task.state is State.ROLLING_BACK:
        return _after_the_attempt(task, now)
    if task.generation != message.generation:
        return DeleteMessage("another generation")
    if task.state in LEASED:
        return _runs_elsewhere(task) or _while_leased(task, message, now)
    if task.state in STARTABLE:
        return _until_due(task, max(task.next_at, (task.lease_expires_at or 0) + LEASE_RETURN_MARGIN), now)
    if task.state is State.BLOCKED and task.after is not None:
        return CheckDependencies(task)
    return DeleteMessage(f"{task.state}")


def _runs_elsewhere(task: Task) -> CheckTopology | CheckJob | None:
    """The check for a task whose target has accepted the work and runs it outside duetime; `None` for other tasks."""
    if task.state is not State.RUNNING or not task.awaiting_notification:
        return None
    if isinstance(task.target, TopologyTarget):
        return CheckTopology(task)
    return CheckJob(task) if is_job(task.target) else None


def _while_leased(task: Task, message: Message, now: Millis) -> Redelivery:
    if task.unacknowledged:
        if (task.lease_expires_at or 0) + MAX_CLOCK_DIFFERENCE <= now:
            return TakeOver(task)
    elif task.pull_queue and not message.pull_queue:
        # This message was for the expiry check; the attempt's own message is on the queue of the task's type.
        return DeleteMessage("a pull worker has leased it")
    return RedeliverMessage((task.lease_expires_at or now) + LEASE_RETURN_MARGIN, "leased")


def _after_the_attempt(task: Task, now: Millis) -> Redelivery:
    """Handles a message whose task has an outcome or must be rolled back."""
    over_at = (task.lease_expires_at or 0) + MAX_CLOCK_DIFFERENCE
    if over_at > now:
        return RedeliverMessage((task.lease_expires_at or 0) + LEASE_RETURN_MARGIN, "leased")
    if task.next_at > now:
        return _until_due(task, task.next_at, now)
    return FollowUp(task) if task.is_terminal else Undo(task)


def _until_due(task: Task, at: Millis, now: Millis) -> Redelivery:
    """Handles a message that is not due by this worker's clock.

    If the check is farther ahead than the queue's longest delay, the message is deleted, because a timer starts the
    check.
    """
    if task.next_at - now > MAX_DELAY:
        return DeleteMessage("not due for a long time")
    return RedeliverMessage(max(at, now + SECOND), "not due")
