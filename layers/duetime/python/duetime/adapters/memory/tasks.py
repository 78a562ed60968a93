"""The records of tasks and their timers, in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, ConditionFailed, applied, permits
from duetime.domain.dispatch.timers import Entry
from duetime.domain.ids import partition_of
from duetime.domain.limits import MINUTE_PAGE
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Task
from duetime.domain.times import SECOND, minute_of
from duetime.ports.tasks import MinutePage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.dispatch.timers import BulkTimer, ScheduleTimer, Timer
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.content import Content
    from duetime.ports.tasks import ListQuery


class MemoryTaskStore:
    """`duetime.ports.tasks.TaskStore` in memory; `permits` and `applied` are its whole meaning."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._partitions: dict[str, dict[str, Task | Timer | ScheduleTimer | BulkTimer]] = {}
        self._tasks: dict[TaskId, Task] = {}

    def create(self, task: Task) -> bool:
        """Write a new record, unless one of that id exists."""
        with self._lock:
            existing = self._tasks.get(task.id)
            if existing is not None:
                return existing.nonce == task.nonce
            self._put(task)
            return True

    def read(self, task_id: TaskId) -> Task | None:
        """Read one record; `None` if there is none."""
        with self._lock:
            return self._tasks.get(task_id)

    def read_many(self, task_ids: Sequence[TaskId], *, consistent: bool = False) -> dict[TaskId, Task]:
        """Read many records; those that do not exist are left out."""
        del consistent  # memory always is
        with self._lock:
            return {task_id: self._tasks[task_id] for task_id in task_ids if task_id in self._tasks}

    def apply(self, write: Write) -> WriteResult:
        """Make one conditional write."""
        with self._lock:
            task = self._tasks.get(write.task_id)
            if task is None:
                return ConditionFailed(None)
            if task.nonce == write.nonce:
                return Applied(task)
            if not permits(write, task):
                return ConditionFailed(task)
            return Applied(self._put(applied(write, task)))

    def add_timer(self, timer: Timer) -> None:
        """Write a timer into the minute of its look; writing it twice is writing it once."""
        partition = partition_of(minute_of(timer.at), timer.task_id.shard)
        with self._lock:
            self._partitions.setdefault(partition, {})[f"{timer.task_id} {timer}"] = timer

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer into the minute of its look; writing it twice is writing it once."""
        partition = partition_of(minute_of(timer.at), timer.uid.shard)
        with self._lock:
            self._partitions.setdefault(partition, {})[f"{timer.uid} schedule {timer}"] = timer

    def add_bulk_timer(self, timer: BulkTimer) -> None:
        """Write the timer of a bulk operation into its minute; writing it twice is writing it once."""
        partition = partition_of(minute_of(timer.at), timer.operation.shard)
        with self._lock:
            self._partitions.setdefault(partition, {})[f"{timer.operation} bulk"] = timer

    def read_page(self, minute: int, shard: int, after: str, *, consistent: bool) -> MinutePage:
        """What the trigger needs of the next records and timers in one shard of one minute."""
        del consistent  # memory always is
        with self._lock:
            partition = self._partitions.get(partition_of(minute, shard), {})
            found = [(key, partition[key]) for key in sorted(partition) if key > after]
        page = [(key, Entry.of(item) if isinstance(item, Task) else item) for key, item in found[:MINUTE_PAGE]]
        return MinutePage(page, page[-1][0] if len(found) > MINUTE_PAGE else None)

    def list_ids(self, query: ListQuery) -> list[TaskId]:
        """Ids of an owner's tasks in order of their home times."""
        with self._lock:
            tasks = list(self._tasks.values())
        ids = sorted(
            (
                task.id
                for task in tasks
                if task.owner == query.owner and (task.state is State.FAILED or not query.failed_only)
            ),
            reverse=query.descending,
        )
        if query.after is not None:
            last = query.after
            ids = [each for each in ids if (each < last if query.descending else each > last)]
        return ids[: query.limit]

    def _put(self, task: Task) -> Task:
        stored = _stored(task)
        self._tasks[task.id] = stored
        self._partitions.setdefault(task.id.partition, {})[task.id.text] = stored
        return stored


def _stored(task: Task) -> Task:
    """The record as every store hands it back.

    Its end is in whole seconds; content in the record is called as its field, content outside has no bytes.
    """
    expires_at = None if task.expires_at is None else -(-task.expires_at // SECOND) * SECOND
    result = None if task.result is None else _held(task.result, "result")
    checkpoint = None if task.checkpoint is None else _held(task.checkpoint, "checkpoint")
    payload = _held(task.payload, "payload")
    return replace(task, expires_at=expires_at, payload=payload, result=result, checkpoint=checkpoint)


def _held(content: Content, field: str) -> Content:
    return replace(content, data=None) if content.is_outside else replace(content, name=field)
