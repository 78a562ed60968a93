"""Computes how often a task is polled until it has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime_client.task import Task

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 3.0
GROWTH = 1.5
# A task that is not yet due is polled too, because it may be cancelled or started earlier.
LONGEST_WAIT = 5.0


def pause_after(task: Task, last_pause: float, now: datetime, suggested: float | None = None) -> float:
    """Seconds until the next poll of a task; the pause is short once the task is due, and then grows.

    Args:
        task: the task at the last poll.
        last_pause: how many seconds the last pause took; 0 if there was no pause.
        now: the current time.
        suggested: the API's `Retry-After`, which is the longest pause if it exceeds the usual maximum.
    """
    until_due = (task.due_at - now).total_seconds()
    if until_due > 0:
        return min(until_due + FIRST_PAUSE, max(suggested or 0, LONGEST_WAIT))
    return min(max(last_pause * GROWTH, FIRST_PAUSE), max(suggested or 0, LONGEST_PAUSE))


def utc_now() -> datetime:
    """The current time."""
    return datetime.now(UTC)
