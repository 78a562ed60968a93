"""Starts of jobs that nobody knows the outcome of: their workers were lost, or the services did not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_results import Deferred
from duetime.domain.tasks.attempt_run import attempts_told_of
from duetime.domain.tasks.aws_jobs import is_job

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task


def start_is_open(task: Task) -> bool:
    """Whether a job may run that a claim before this one has started for the present attempt of a task.

    A claim that has started nothing is taken back, and one that has ended is in the history. So one that is counted
    beside the present one was a lost worker's, or its start got no response.
    """
    return is_job(task.target) and task.attempt > attempts_told_of(task) + 1


def known_job(task: Task) -> str:
    """The ARN of the job that was started for the present attempt of a claimed task; empty if it is not known."""
    # Every end of an attempt forgets that it was deferred, but not which job it had.
    return (task.job or "") if task.deferred_fence is not None else ""


def unless_open(task: Task, ending: Ending) -> Ending:
    """How a claim of a task ends that has come to this end.

    Nothing ends an attempt whose job may run, be it a cancel, a failure or a lock that is not to be had: its job is
    looked for first.
    """
    return Deferred(known_job(task)) if start_is_open(task) and not isinstance(ending, Deferred) else ending
