"""Dispatch status, for operators: shows whether dispatch lags for tasks of all owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch.cursors import DISPATCH
from duetime.domain.times import start_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.dispatch.cursors import Cursors
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Approximate number of messages in a queue.

    Attributes:
        waiting: can be received now.
        delayed: can be received later: their tasks are not due yet, or will be retried.
        in_flight: received, and neither deleted nor returned.
    """

    waiting: int
    delayed: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """A queue of tasks.

    Attributes:
        priority: of its tasks.
        pulled_type: the type of its tasks if pull workers lease them; `None` for the queue of a priority.
    """

    priority: Priority
    depth: QueueDepth
    pulled_type: str | None = None


@dataclass(frozen=True, slots=True)
class DispatchStatus:
    """Dispatch status.

    Attributes:
        last_tick_at: the last minute in which the trigger read everything that it should have; `None` if there is none
            yet.
        dispatched_until: all tasks due before this time were put on queues; `None` before the first run.
        queues: the work queues.
    """

    last_tick_at: Millis | None
    dispatched_until: Millis | None
    queues: Sequence[WorkQueue]


def dispatch_status(
    groups: Sequence[Cursors | None], look_ahead: Millis, queues: Sequence[WorkQueue]
) -> DispatchStatus:
    """The status of all groups of shards, determined by the one that is furthest behind.

    Args:
        groups: the cursors of each group; `None` for a group that was never read.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        queues: the work queues.
    """
    read = [cursors.floors[DISPATCH] for cursors in groups if cursors is not None]
    if not read or len(read) < len(groups):
        return DispatchStatus(None, None, queues)
    minute = min(read)
    return DispatchStatus(start_of(minute) - look_ahead, start_of(minute + 1), queues)
