"""Callbacks: the outcome of a task is posted to a URL by a task of its own, which is retried for a day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import (
    CALLBACK_ATTEMPTS,
    CALLBACK_FIRST_WAIT,
    CALLBACK_LONGEST_WAIT,
    CALLBACK_TIMEOUT,
)
from duetime.domain.tasks.creation import Origin
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.targets import CallbackTarget
from duetime.domain.tasks.task_spec import TaskSpec
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

CALLBACK_TYPE = "duetime.callback"
_RETRY = RetryPolicy(CALLBACK_ATTEMPTS, CALLBACK_FIRST_WAIT / SECOND, 2.0, CALLBACK_LONGEST_WAIT / SECOND)


def callback_spec(task: Task, url: str, event: bytes) -> TaskSpec:
    """The task that posts an outcome: it is found by the name, which is the id of the task that has ended.

    Args:
        task: the one that has ended.
        url: where its outcome is posted.
        event: JSON text in UTF-8.
    """
    return TaskSpec(
        CALLBACK_TYPE,
        event,
        target=CallbackTarget(url),
        priority=task.priority,
        retry=_RETRY,
        timeout_seconds=CALLBACK_TIMEOUT // SECOND,
        name=task.id.text,
        tags=task.tags,
    )


def outcome_origin(task: Task) -> Origin:
    """The outcome as the event that its callback is made of: made again, it is the same task."""
    return Origin(CALLBACK_TYPE, f"{task.outcome_id}-{task.state}", task.outcome_at)
