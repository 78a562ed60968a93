"""How far dispatch has come: what operators look at when tasks of all owners are late."""

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
    """About how many messages a queue has.

    Attributes:
        waiting: may be received now.
        delayed: may be received later: their tasks are not due yet, or are to be tried again.
        in_flight: are received, and neither deleted nor given back.
    """

    waiting: int
    delayed: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """A queue of tasks.

    Attributes:
        priority: of its tasks.
        pulled_type: the type whose tasks it has, for pull workers; `None` for the tasks of a priority.
    """

    priority: Priority
    depth: QueueDepth
    pulled_type: str | None = None


@dataclass(frozen=True, slots=True)
class DispatchStatus:
    """How far dispatch has come.

    Attributes:
        last_tick_at: the minute in which the trigger last read all that it should have read by then; `None` if it has
            not yet.
        dispatched_until: what was due before, the trigger has put on queues; `None` if it has not run yet.
        queues: the work queues.
    """

    last_tick_at: Millis | None
    dispatched_until: Millis | None
    queues: Sequence[WorkQueue]


def dispatch_status(
    groups: Sequence[Cursors | None], look_ahead: Millis, queues: Sequence[WorkQueue]
) -> DispatchStatus:
    """The status of all groups of shards: that of the one which is furthest behind.

    Args:
        groups: the cursors of each group; `None` for one that nobody has read yet.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        queues: the work queues.
    """
    read = [cursors.floors[DISPATCH] for cursors in groups if cursors is not None]
    if not read or len(read) < len(groups):
        return DispatchStatus(None, None, queues)
    minute = min(read)
    return DispatchStatus(start_of(minute) - look_ahead, start_of(minute + 1), queues)
