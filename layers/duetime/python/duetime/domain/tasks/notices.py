"""Decides when to send notices that a task failed for good, is late, or runs long; users need no code for this."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import (
    CALLBACK_ATTEMPTS,
    CALLBACK_FIRST_WAIT,
    CALLBACK_LONGEST_WAIT,
    CALLBACK_TIMEOUT,
    NOTICE_MARGIN,
)
from duetime.domain.tasks.action_history import Action
from duetime.domain.tasks.creation import Origin
from duetime.domain.tasks.states import GOING_ON, LEASED, State
from duetime.domain.tasks.targets import AwsService, CallbackTarget, service_of
from duetime.domain.tasks.task_options import RetryPolicy
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


NOTICE_SERVICES = frozenset({AwsService.SNS, AwsService.EVENTBRIDGE})
"""AWS services to whose resources notices may be sent."""
_FIFO = ".fifo"
_REOPENING = frozenset({Action.RETRIED, Action.ROLLBACK_REQUESTED})


class NoticeKind(StrEnum):
    """The kind of notice; the value is the notice's `type`.

    Attributes:
        FAILED: the task has failed for good, and no attempts are left.
        LATE: the task has not started by the requested time.
        LONG: an attempt has not ended within the requested time.
    """

    FAILED = "task.failed"
    LATE = "task.late"
    LONG = "task.running_long"


@frozen
class Notice:
    """A notice that is sent to one address.

    Attributes:
        id: id that is the same in every copy, because a notice may be sent more than once.
        at: when the event happened, in milliseconds.
    """

    kind: NoticeKind
    id: str
    at: Millis


def is_notice_arn(address: str) -> bool:
    """Whether an address is an ARN to which notices may be sent.

    FIFO topics are excluded, because these topics deduplicate by message id, and a task has only one id.
    """
    return service_of(address) in NOTICE_SERVICES and not address.endswith(_FIFO)


def failure_notice(task: Task) -> Notice | None:
    """The notice for a task that has just ended; `None` if it has not failed for good, or if no notice was requested.

    A rollback after the last failed attempt counts as a failure. A requested rollback does not count, because the
    failure before the rollback was already reported.
    """
    if task.notify_on is None or not task.notify_on.failed:
        return None
    is_undone = task.state is State.ROLLED_BACK and task.rollback_on_failure and task.error is not None
    was_undone = is_undone and not _was_asked_to_roll_back(task)
    if task.state is not State.FAILED and not was_undone:
        return None
    return Notice(NoticeKind.FAILED, f"{task.outcome_id}-failed", task.outcome_at)


def _was_asked_to_roll_back(task: Task) -> bool:
    """Whether the task's last rollback was requested by a user, rather than started automatically after a failure."""
    asked = [each.action for each in task.actions.records if each.action in _REOPENING]
    return bool(asked) and asked[-1] is Action.ROLLBACK_REQUESTED


def time_to_tell(task: Task) -> Millis:
    """Maximum time for sending the notices about an outcome, in milliseconds."""
    return NOTICE_MARGIN * (failure_notice(task) is not None)


def lateness_notice(task: Task, late_at: Millis, now: Millis) -> Notice | None:
    """The notice for a task that had not started by `late_at`; `None` if it started in time or wants no notice.

    Args:
        task: the current record.
        late_at: the stored time; if the due time has changed since then, another check sends the notice.
        now: the time.
    """
    if task.late_at != late_at or task.erased:
        return None
    has_waited = now >= late_at and task.state in GOING_ON and task.started_at is None
    has_started_late = task.started_at is not None and task.started_at >= late_at
    if not (has_waited or has_started_late):
        return None
    return Notice(NoticeKind.LATE, f"{task.id}-{late_at}-late", late_at)


def long_run_notice(task: Task, long_at: Millis) -> Notice:
    """The notice for an attempt that has not ended by `long_at`; the notice is the same, whichever process sends it."""
    return Notice(NoticeKind.LONG, f"{task.id}-{task.fence}-running", long_at)


def timed_notice(task: Task, at: Millis, now: Millis) -> Notice | None:
    """The notice that is due at a stored time, for a late start or for an attempt that runs long.

    Args:
        task: the current record.
        at: the stored time; if the task's times have changed since then, another check sends the notice.
        now: the time.
    """
    if task.long_at == at and now >= at and task.state in LEASED and not task.erased:
        return long_run_notice(task, at)
    return lateness_notice(task, at, now)


CALLBACK_TYPE = "duetime.callback"
CALLBACK_RETRY = RetryPolicy(CALLBACK_ATTEMPTS, CALLBACK_FIRST_WAIT / SECOND, 2.0, CALLBACK_LONGEST_WAIT / SECOND)
"""How calls to a callback URL are retried."""


def callback_spec(task: Task, url: str, event: bytes) -> TaskSpec:
    """The callback task that posts an outcome; its name contains the ended task's id.

    Args:
        task: the ended task.
        url: URL to which the outcome is posted.
        event: JSON text in UTF-8.
    """
    return TaskSpec(
        CALLBACK_TYPE,
        event,
        target=CallbackTarget(url),
        priority=task.priority,
        retry=CALLBACK_RETRY,
        timeout_seconds=CALLBACK_TIMEOUT // SECOND,
        name=task.id.text,
        tags=task.tags,
        fair_key=task.fair_key,
        fair_weight=task.fair_weight,
    )


def outcome_origin(task: Task) -> Origin:
    """The event that creates an outcome's callback task, so that a repeated creation leads to the same task."""
    return Origin(CALLBACK_TYPE, f"{task.outcome_id}-{task.state}", task.outcome_at)


@frozen
class ConsolePages:
    """Pages of a deployment's console.

    Attributes:
        url: URL of the console; empty if the deployment has no console.
    """

    url: str = ""

    def link(self, task: Task) -> Mapping[str, str]:
        """The URL of a task's page, for `console_url`; empty if there is no console."""
        return {"console_url": f"{self.url}#/tasks/{task.id}"} if self.url else {}
