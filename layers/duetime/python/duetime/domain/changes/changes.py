"""A write of a record, as the table's stream tells of it: what was there before, and what is there now.

A change holds what others may be told, never a payload or a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from duetime.domain.changes.snapshots import ScheduleSnapshot, TaskSnapshot
    from duetime.domain.times import Millis

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    """One write of one record. It may be told more than once, and writes of different records in any order.

    Attributes:
        id: of this write: the same each time it is delivered.
        at: when it was written, in whole seconds.
        before: the record before it; `None` if there was none.
        after: the record after it; `None` if it was removed.
    """

    id: str
    at: Millis
    before: S | None
    after: S | None


TaskChange: TypeAlias = "Change[TaskSnapshot]"
ScheduleChange: TypeAlias = "Change[ScheduleSnapshot]"


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """What one delivery of the stream tells; of each record, its writes are in their order.

    Attributes:
        tasks: the writes of tasks, those that run topologies and their nodes included.
        schedules: the writes of schedules.
    """

    tasks: tuple[TaskChange, ...] = ()
    schedules: tuple[ScheduleChange, ...] = ()
