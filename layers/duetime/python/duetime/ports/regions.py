"""The replicated table, as two Regions see it: which one is active, and what a takeover reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.dispatch.enqueue_plan import ScheduleTimer, Timer
    from duetime.domain.ids import TaskId
    from duetime.domain.regions import ActiveRegion
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


class RegionStore(Protocol):
    """The record of the active Region in one replica of the table."""

    def read(self) -> ActiveRegion | None:
        """The record, read consistently; `None` before the first takeover."""
        ...

    def save(self, region: ActiveRegion) -> bool:
        """Store the record, unless it is of a later epoch."""
        ...

    def put_probe(self, probe: str) -> None:
        """Write an item whose arrival in the other replica shows that replication works."""
        ...

    def read_probe(self) -> str:
        """The last probe that has arrived; empty before the first one."""
        ...


@dataclass(frozen=True, slots=True)
class TakeoverPage:
    """Some items of a segment of the table.

    Attributes:
        tasks: the readable ones.
        schedules: schedules.
        unreadable: sort keys of records that cannot be read.
        cursor: where the next page begins; empty on the last page.
        scanned: number of items of any kind that were read for it.
    """

    tasks: Sequence[Task]
    schedules: Sequence[StoredSchedule]
    unreadable: Sequence[str]
    cursor: str
    scanned: int


class RegionRecords(Protocol):
    """The records of one replica of the table."""

    def takeover_page(self, segment: int, segments: int, cursor: str, ended_since: Millis) -> TakeoverPage:
        """The next open tasks, tasks that have ended since a time, and schedules, read consistently."""
        ...

    def running_tasks(self, now: Millis) -> int:
        """The number of tasks with a running attempt, without topologies; reads the whole table."""
        ...

    def read_many(self, task_ids: Sequence[TaskId]) -> dict[TaskId, Task]:
        """Read records, consistently; missing and unreadable ones are left out."""
        ...

    def rewrite(self, before: Task, after: Task) -> bool:
        """Change a record to another form, if nobody has written it since it was read; unknown attributes stay."""
        ...

    def add_timer(self, timer: Timer) -> None:
        """Write a timer; writing it again changes nothing."""
        ...

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer; writing it again changes nothing."""
        ...
