"""Expiry: a task whose first attempt has not started in the time that its user gave it is not started any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_results import Expired
from duetime.domain.tasks.states import State
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


def expired(task: Task, now: Millis) -> Expired | None:
    """Whether the first attempt at a task must not start any more; later attempts, and a rollback, may.

    Args:
        task: the record as it was claimed.
        now: the time at which its target would be called.
    """
    if task.start_by is None or now <= task.start_by or not _is_first_start(task):
        return None
    return Expired(f"it had not started by {to_iso(task.start_by)}")


def checked_by(task: Task, until: Millis) -> Millis:
    """When a task that is put back is checked again, given when it would be otherwise: it ends when it expires.

    Args:
        task: the record as it was claimed.
        until: when what it waits for is worth another check.
    """
    if task.start_by is None or not _is_first_start(task):
        return until
    return min(until, task.start_by + 1)


def _is_first_start(task: Task) -> bool:
    """Whether the claim is that of a first attempt: the claim itself has entered when it starts."""
    return task.state is not State.ROLLING_BACK and task.started_at == task.run_at
