"""Job starts with an unknown result: the worker was lost, or the service did not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_results import Deferred
from duetime.domain.tasks.attempt_run import recorded_attempts
from duetime.domain.tasks.aws_jobs import is_job

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task


def start_is_open(task: Task) -> bool:
    """Whether an earlier claim for the present attempt of a task may have started a job that is running.

    A claim that started nothing is undone, and one that ended is in the history. So if an additional claim is counted,
    its worker was lost, or its start got no response.
    """
    return is_job(task.target) and task.attempt > recorded_attempts(task) + 1


def known_job(task: Task) -> str:
    """The ARN of the job that was started for the present attempt of a claimed task; empty if unknown."""
    # Every end of an attempt removes the deferral, but not the job.
    return (task.job or "") if task.deferred_fence is not None else ""


def unless_open(task: Task, ending: Ending) -> Ending:
    """Replaces the end of a claim if its job may be running.

    An attempt whose job may be running must not end, whether by a cancel, a failure or a missing lock: the job is
    searched for first.
    """
    return Deferred(known_job(task)) if start_is_open(task) and not isinstance(ending, Deferred) else ending
