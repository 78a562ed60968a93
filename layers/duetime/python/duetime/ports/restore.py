"""Ports for replacing a table or a Region, which access restored tables and the record of the active Region."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol, Self

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.dispatch.enqueue_plan import ScheduleTimer, Timer
    from duetime.domain.ids import TaskId
    from duetime.domain.regions import ActiveRegion
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


class TableStatus(Enum):
    """The state of a table: whether it can be used."""

    MISSING = "missing"
    CREATING = "creating"
    READY = "ready"


class TableFailed(Exception):
    """AWS rejected the request to restore a table."""


@frozen
class RecordPage:
    """Some records from a segment of a table.

    Attributes:
        tasks: the readable records.
        unreadable: sort keys of the unreadable records.
        cursor: where the next page begins; empty on the last page.
        scanned: number of items of any kind that were read for the page.
    """

    tasks: Sequence[Task]
    unreadable: Sequence[str]
    cursor: str
    scanned: int


@frozen
class TakeoverPage:
    """Some items from a segment of the table.

    Attributes:
        tasks: the readable tasks.
        schedules: the readable schedules.
        unreadable: sort keys of records that cannot be read.
        cursor: where the next page begins; empty on the last page.
        scanned: number of items of any kind that were read for the page.
    """

    tasks: Sequence[Task]
    schedules: Sequence[StoredSchedule]
    unreadable: Sequence[str]
    cursor: str
    scanned: int


class TableRestore(Protocol):
    """Restores tables from their continuous backups."""

    def begin(self, source: str, target: str, at: Millis) -> None:
        """Start restoring a table to its state at a given time, unless the restore is already running or has finished.

        Raises:
            TableFailed: AWS rejected the restore.
        """
        ...

    def status(self, table: str) -> TableStatus:
        """Whether a table is missing, being created, or ready."""
        ...

    def epoch_of(self, table: str) -> int:
        """The epoch in which a table was restored; 0 if it was never restored."""
        ...

    def takeovers_of(self, table: str) -> int:
        """The epoch of the last takeover by another Region; 0 before the first takeover."""
        ...

    def complete(self, source: str, target: str, epoch: int) -> str:
        """Apply the settings that a restore omits to a restored table: stream, TTL, backup, tags, protection.

        The call may be repeated.

        Args:
            source: the table that the restored table replaces; empty if that table is lost.
            target: the restored table.
            epoch: the restored table's epoch, which is stored in a tag.

        Returns:
            The ARN of the restored table's stream.
        """
        ...


class RecordRewriter(Protocol):
    """Reads and rewrites records in one table in ways that deployed functions never use."""

    def read_many(self, task_ids: Sequence[TaskId]) -> dict[TaskId, Task]:
        """Read records consistently; missing and unreadable records are left out."""
        ...

    def rewrite(self, before: Task, after: Task) -> bool:
        """Replace a record, unless it has been written since it was read; unknown attributes are kept."""
        ...

    def add_timer(self, timer: Timer) -> None:
        """Write a timer; writing it again changes nothing."""
        ...

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer; writing it again changes nothing."""
        ...


class Records(RecordRewriter, Protocol):
    """All records of one table."""

    def open_page(self, segment: int, segments: int, cursor: str) -> TakeoverPage:
        """The next schedules and records with unfinished work in one segment of the table (strong consistency)."""
        ...

    def page_since(self, segment: int, segments: int, cursor: str, since: Millis) -> RecordPage:
        """The next records that were created, or retried after their end, since a given time."""
        ...

    def insert(self, task: Task) -> bool:
        """Write a record, unless its id already exists."""
        ...

    def copy_contents(self, task_id: TaskId, source: Self) -> None:
        """Copy a task's contents and old attempts that another table stores in separate items."""
        ...


class RegionStore(Protocol):
    """The record of the active Region in one replica of the table."""

    def read(self) -> ActiveRegion | None:
        """The record, read with strong consistency; `None` before the first takeover."""
        ...

    def save(self, region: ActiveRegion) -> bool:
        """Store the record, unless the stored record has a later epoch, or the same epoch with another Region."""
        ...

    def put_probe(self, probe: str) -> None:
        """Write an item whose arrival in the other replica shows that replication works."""
        ...

    def read_probe(self) -> str:
        """The last probe that has arrived; empty before the first probe."""
        ...


class RegionRecords(RecordRewriter, Protocol):
    """The records of one replica of the table."""

    def takeover_page(self, segment: int, segments: int, cursor: str, ended_since: Millis) -> TakeoverPage:
        """The next schedules, open tasks, and tasks that ended since the given time, read with strong consistency."""
        ...

    def running_tasks(self, now: Millis) -> int:
        """Count the tasks with a running attempt, except topologies. This method reads the entire table."""
        ...
