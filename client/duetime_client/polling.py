"""How often to poll a task until it has ended."""

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
    """Seconds until the next poll of a task: short once it is due, then growing.

    Args:
        task: as it was at the last poll.
        last_pause: seconds before that; 0 before the first.
        now: the time.
        suggested: the API's `Retry-After`, up to which pauses grow if it is longer than the usual longest.
    """
    until_due = (task.due_at - now).total_seconds()
    if until_due > 0:
        return min(until_due + FIRST_PAUSE, max(suggested or 0, LONGEST_WAIT))
    return min(max(last_pause * GROWTH, FIRST_PAUSE), max(suggested or 0, LONGEST_PAUSE))


def utc_now() -> datetime:
    """The current time."""
    return datetime.now(UTC)
