"""Computes the interval for polling a task that has no outcome yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.states import LEASED, STARTABLE
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

SHORTEST: Millis = SECOND
LONGEST: Millis = 30 * SECOND
"""Longest interval, within which a manual cancellation, change or start is detected."""
_SHARE = 10
"""The interval is the time so far divided by this number, so the delay in seeing a result is at most a tenth of the
task's duration."""


def poll_interval(task: Task, now: Millis) -> Millis | None:
    """How long to wait before the next poll; `None` if the task has an outcome."""
    if task.is_terminal:
        return None
    is_early = task.state in STARTABLE and task.next_at > now
    wait = task.next_at - now if is_early else _of_its_age(task, now)
    return min(max(wait, SHORTEST), LONGEST)


def _of_its_age(task: Task, now: Millis) -> Millis:
    """The wait until the next poll, which grows with the time so far and is shorter if the attempt is near its end."""
    if task.state not in LEASED or task.run_at is None:
        return (now - (task.next_at if task.state in STARTABLE else task.created_at)) // _SHARE
    elapsed = now - task.run_at
    if task.progress is None or task.progress.percent == 0:
        return elapsed // _SHARE
    return min(elapsed // _SHARE, elapsed * (100 - task.progress.percent) // task.progress.percent)
