"""Computes when to check external work that a task waits for, which is a topology or an AWS job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import first_unread
from duetime.domain.operating_parameters import (
    JOB_MARGIN,
    JOB_SEARCH,
    LEASE_RETURN_MARGIN,
    LONGEST_CHECK_INTERVAL,
    LONGEST_JOB_CHECK_INTERVAL,
    SHORTEST_CHECK_INTERVAL,
    TOPOLOGY_MARGIN,
)
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

_AGE_PER_CHECK = 4
_AFTER_THE_DEADLINE = 5 * SECOND
"""The graph's time limit starts when the run is planned, which is shortly after the attempt's start."""
_CHECKS_A_RUN = 20
_SHORTEST_PAUSE, _USUAL_PAUSE = 2, 60
_MANY_CHECKS = 300
_GROWTH = 1.05


def pause_before_check(checks: int, took: Millis) -> int:
    """Seconds until an execution whose nodes have ended checks again whether the run has ended.

    The interval is a twentieth of the run's duration so far, but at most a minute. Each check adds nine events to the
    execution's history, which is limited to 25,000 events, so the interval grows to an hour after hours of checks.

    Args:
        checks: number of earlier checks.
        took: duration of the run so far.
    """
    if checks < _MANY_CHECKS:
        return max(_SHORTEST_PAUSE, min(int(took // (_CHECKS_A_RUN * SECOND)), _USUAL_PAUSE))
    longest = LONGEST_CHECK_INTERVAL // SECOND
    # A larger exponent would overflow a float, and the longest interval is reached long before then.
    return min(longest, round(_USUAL_PAUSE * _GROWTH ** min(checks - _MANY_CHECKS, 1000)))


def deferred_until(task: Task, started_at: Millis) -> Millis:
    """End of a deferred attempt's lease, which is the deadline for its target.

    A topology gets more time than its graph's limit, so that running nodes and the run can end. A job also gets more
    time, so that it can be stopped.
    """
    return started_at + task.notify_within_seconds * SECOND + _room(task)


def job_deadline(task: Task) -> Millis:
    """When the job of a deferred attempt is stopped if the job is still running."""
    return (task.lease_expires_at or 0) - JOB_MARGIN


def search_ends_at(task: Task) -> Millis:
    """When to stop searching for the job of a deferred attempt whose start request got no response."""
    return job_deadline(task) - task.notify_within_seconds * SECOND + JOB_SEARCH


def _room(task: Task) -> Millis:
    if isinstance(task.target, TopologyTarget):
        return TOPOLOGY_MARGIN
    return JOB_MARGIN if is_job(task.target) else 0


def reminders(task: Task, leased_until: Millis, now: Millis, look_ahead: Millis) -> tuple[Millis, ...]:
    """When to check a deferred task: after its lease, and, for topologies and jobs, also repeatedly before then.

    Args:
        task: task as claimed.
        leased_until: the end of its lease.
        now: the time.
        look_ahead: how far ahead of the current time the trigger reads.
    """
    last = leased_until + LEASE_RETURN_MARGIN
    if not isinstance(task.target, TopologyTarget) and not is_job(task.target):
        return (last,)
    began_at = task.run_at or now
    longest = LONGEST_JOB_CHECK_INTERVAL if is_job(task.target) else LONGEST_CHECK_INTERVAL
    # Only a timer that the trigger has not read yet is reliable, because a message that is sent directly can be lost.
    check = min(last, max(_next_check(began_at, now, longest), first_unread(now, look_ahead)))
    # Reports by a job extend the job's deadline.
    deadline = leased_until - JOB_MARGIN if is_job(task.target) else began_at + task.notify_within_seconds * SECOND
    overdue = deadline + _AFTER_THE_DEADLINE
    # A check starts shortly before its time, and must not schedule itself again.
    return (overdue, check) if now + SECOND < overdue < check else (check,)


def _next_check(began_at: Millis, now: Millis, longest: Millis) -> Millis:
    """When the next check comes: the run's age has then grown by a quarter, so all processes compute the same times."""
    age = SHORTEST_CHECK_INTERVAL
    while began_at + age <= now:
        age += max(SHORTEST_CHECK_INTERVAL, min(age // _AGE_PER_CHECK, longest))
    return began_at + age
