"""Times of the periodic checks of what runs elsewhere and is waited for: topologies, and jobs that AWS runs."""

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
"""The graph's time counts from its plan, which begins a moment after the attempt."""
_CHECKS_A_RUN = 20
_SHORTEST_PAUSE, _USUAL_PAUSE = 2, 60
_MANY_CHECKS = 300
_GROWTH = 1.05


def pause_before_check(checks: int, took: Millis) -> int:
    """Seconds until an execution, whose nodes have all been waited for, checks again whether the run is at its end.

    A twentieth of what the run has taken, and a minute at most. Each check writes nine events into the execution's
    history, which has room for 25 000: after hours of looking, the pause grows to an hour.

    Args:
        checks: how often it has checked before.
        took: for how long the run has been going.
    """
    if checks < _MANY_CHECKS:
        return max(_SHORTEST_PAUSE, min(int(took // (_CHECKS_A_RUN * SECOND)), _USUAL_PAUSE))
    longest = LONGEST_CHECK_INTERVAL // SECOND
    # Beyond this many the power would not fit into a float; it is long past the longest by then.
    return min(longest, round(_USUAL_PAUSE * _GROWTH ** min(checks - _MANY_CHECKS, 1000)))


def deferred_until(task: Task, started_at: Millis) -> Millis:
    """Until when a deferred attempt's lease lasts: its target's deadline.

    A topology is given longer than its graph's time: what runs then must end, and the run be brought to its end. So is
    a job, which must be stopped.
    """
    return started_at + task.notify_within_seconds * SECOND + _room(task)


def job_deadline(task: Task) -> Millis:
    """When the job of a deferred attempt is stopped if it still runs."""
    return (task.lease_expires_at or 0) - JOB_MARGIN


def search_ends_at(task: Task) -> Millis:
    """Until when the job of a deferred attempt is looked for whose start got no response; its lease began then."""
    return job_deadline(task) - task.notify_within_seconds * SECOND + JOB_SEARCH


def _room(task: Task) -> Millis:
    if isinstance(task.target, TopologyTarget):
        return TOPOLOGY_MARGIN
    return JOB_MARGIN if is_job(task.target) else 0


def reminders(task: Task, leased_until: Millis, now: Millis, look_ahead: Millis) -> tuple[Millis, ...]:
    """When a deferred task must be checked: after its lease; topologies and jobs also on the way there, repeatedly.

    Args:
        task: as it was claimed.
        leased_until: the end of its lease.
        now: the time.
        look_ahead: how far ahead of the clock the trigger reads.
    """
    last = leased_until + LEASE_RETURN_MARGIN
    if not isinstance(task.target, TopologyTarget) and not is_job(task.target):
        return (last,)
    began_at = task.run_at or now
    longest = LONGEST_JOB_CHECK_INTERVAL if is_job(task.target) else LONGEST_CHECK_INTERVAL
    # Only what the trigger is still to read cannot be lost: a message that is sent beside it can.
    check = min(last, max(_next_check(began_at, now, longest), first_unread(now, look_ahead)))
    # A job's own reports put its deadline off.
    deadline = leased_until - JOB_MARGIN if is_job(task.target) else began_at + task.notify_within_seconds * SECOND
    overdue = deadline + _AFTER_THE_DEADLINE
    # A check begins a moment before its time: it must not ask for itself again.
    return (overdue, check) if now + SECOND < overdue < check else (check,)


def _next_check(began_at: Millis, now: Millis, longest: Millis) -> Millis:
    """The next of the checks, each when the run is older by a quarter: whoever reckons gets the same ones."""
    age = SHORTEST_CHECK_INTERVAL
    while began_at + age <= now:
        age += max(SHORTEST_CHECK_INTERVAL, min(age // _AGE_PER_CHECK, longest))
    return began_at + age
