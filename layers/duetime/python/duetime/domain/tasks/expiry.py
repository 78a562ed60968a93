"""Expiry: an attempt does not start after the time limit that the task's user has set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_records import LOCK_WAIT_EXPIRED, RETRY_DURATION_EXPIRED
from duetime.domain.tasks.attempt_results import Expired
from duetime.domain.tasks.attempt_run import waiting_since
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.times import SECOND, to_iso

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Postponed
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


def expired(task: Task, now: Millis) -> Expired | None:
    """Whether an attempt at a task has expired; rollbacks do not expire.

    Args:
        task: the record as claimed.
        now: the time at which its target would be called.
    """
    start_by = _start_by(task)
    if start_by is None or now <= start_by:
        return None
    if is_first_start(task):
        return Expired(f"it had not started by {to_iso(start_by)}")
    return Expired(f"no attempt could start after {to_iso(start_by)}", RETRY_DURATION_EXPIRED)


def checked_by(task: Task, until: Millis) -> Millis:
    """When a postponed task is checked again: at the given time, or earlier if it expires before.

    Args:
        task: the record as claimed.
        until: when to check again what it waits for.
    """
    start_by = _start_by(task)
    return until if start_by is None else min(until, start_by + 1)


def lock_wait(task: Task, held: Postponed, now: Millis) -> Postponed | Expired:
    """The result of an attempt that does not get a lock: it waits, but for its own lock only until the time limit.

    Args:
        task: the record as claimed.
        held: the lock, and until when to wait.
        now: the time.
    """
    lock = task.lock
    if lock is None or lock.wait_seconds is None or held.reason != f"lock {lock.key}":
        return held
    if task.state is State.ROLLING_BACK or task.state in TERMINAL:
        return held
    since = waiting_since(task, held.reason)
    ends = (now if since is None else since) + lock.wait_seconds * SECOND
    if now < ends:
        return replace(held, until=min(held.until, ends))
    return Expired(f"it had waited for the lock {lock.key} for {lock.wait_seconds} s", LOCK_WAIT_EXPIRED)


def is_first_start(task: Task) -> bool:
    """Whether the claim is of a first attempt; the claim itself has recorded its start."""
    return task.started_at == task.run_at


def _start_by(task: Task) -> Millis | None:
    """The last instant at which the claimed attempt may start; `None` if there is none."""
    if task.state is State.ROLLING_BACK:
        return None
    return task.start_by if is_first_start(task) else task.retry_by
