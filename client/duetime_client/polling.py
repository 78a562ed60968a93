"""How often to poll a task until it has ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime_client.task import Task

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 3.0
GROWTH = 1.5
# A task that waits for its time is polled too, because it may be cancelled or started earlier.
LONGEST_WAIT = 5.0


def pause_after(task: Task, last_pause: float, now: datetime) -> float:
    """Seconds until the next poll of a task: short once it is due, then growing."""
    until_due = (task.due_at - now).total_seconds()
    if until_due > 0:
        return min(until_due + FIRST_PAUSE, LONGEST_WAIT)
    return min(max(last_pause * GROWTH, FIRST_PAUSE), LONGEST_PAUSE)


def utc_now() -> datetime:
    """The current time."""
    return datetime.now(UTC)
