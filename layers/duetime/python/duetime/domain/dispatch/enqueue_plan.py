"""From due to queue: when a task needs a timer, a message, and with which delay. Decisions as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import (
    DIRECT_SLACK,
    LATEST_ARRIVAL,
    MAX_CLOCK_DIFFERENCE,
    MAX_DELAY,
    RECOVERY_SCAN_DELAYS,
)
from duetime.domain.tasks.states import LEASED, STARTABLE, TERMINAL, State
from duetime.domain.times import SECOND, Millis, minute_of, start_of

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Priority


class Precision(StrEnum):
    """How a wait is shared between the queue's delay, which counts whole seconds, and the worker's hold."""

    NORMAL = "normal"
    """The queue delivers up to 1.35 s early; the worker holds the rest."""
    EXACT = "exact"
    """The queue delivers one to two seconds early, so that transport never makes a task late."""
    RELAXED = "relaxed"
    """The queue delivers at the due time or up to a second later; nothing is held: the cheapest."""


_HEADROOM: dict[Precision, Millis] = {Precision.NORMAL: 350, Precision.EXACT: 1_000, Precision.RELAXED: -999}


def delay_seconds(due: Millis, now: Millis, precision: Precision) -> int:
    """Delay of a message sent now, in whole seconds from 0 to 900."""
    wait = due - now - _HEADROOM[precision]
    return max(0, min(wait, MAX_DELAY)) // SECOND


SCHEDULES = "schedules"
"""What stands for a queue's name where schedules are expanded."""
BULK_OPERATIONS = "bulk operations"
"""What stands for a queue's name where bulk operations are resumed."""
_PULLED = "pulled:"


@dataclass(frozen=True, slots=True)
class Message:
    """What a queue carries: check this task, in this generation, no earlier than `due`.

    Attributes:
        pull_queue: the pulled type on whose queue it is; empty for the queue of its priority.
    """

    task_id: TaskId
    generation: int
    due: Millis
    priority: Priority
    owner: str
    pull_queue: str = ""


@dataclass(frozen=True, slots=True)
class Timer:
    """A reminder in the minute of `at` to check a task whose record lives in another minute.

    Attributes:
        sent: whoever placed it sends the message too, so the trigger's first reading need not.
        pull_queue: as of `Message`.
    """

    task_id: TaskId
    generation: int
    at: Millis
    priority: Priority
    owner: str
    sent: bool = False
    pull_queue: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleTimer:
    """A reminder in the minute of `at` to check a schedule.

    Attributes:
        uid: the schedule's own; says the shard.
        generation: of the schedule; another one is stale.
    """

    uid: TaskId
    owner: str
    name: str
    generation: int
    at: Millis


@dataclass(frozen=True, slots=True)
class BulkTimer:
    """A reminder in the minute of `at` to see whether somebody runs a bulk operation.

    Attributes:
        operation: its id; says the shard.
    """

    operation: TaskId
    at: Millis


@dataclass(frozen=True, slots=True)
class EnqueuePlan:
    """What it takes for a task to be checked in time.

    Attributes:
        timer: a timer must be written, before the record.
        direct: a message must be sent, after the record: the trigger may have read that minute already.
    """

    timer: bool
    direct: bool


def enqueue_plan(task_id: TaskId, at: Millis, now: Millis, look_ahead: Millis) -> EnqueuePlan:
    """Decide how a task is placed for a check `at`.

    A record is its own timer in its home minute. Its home also serves for a check soon after that is sent
    directly, as long as the first recovery scan of the home minute comes after it and after the write, which may
    be long under way: that recovery scan would find it.
    """
    direct = is_direct(at, now, look_ahead)
    recovered_at = start_of(task_id.minute + 1) + RECOVERY_SCAN_DELAYS[0] - 2 * MAX_CLOCK_DIFFERENCE
    is_patrolled = start_of(task_id.minute) <= at and max(at, now + LATEST_ARRIVAL) < recovered_at
    in_own_minute = minute_of(at) == task_id.minute or (direct and is_patrolled)
    return EnqueuePlan(timer=not in_own_minute, direct=direct)


def first_unread(now: Millis, look_ahead: Millis) -> Millis:
    """The start of the first minute that the trigger has surely not read yet, by whoever's clock."""
    return start_of(minute_of(now + look_ahead + DIRECT_SLACK) + 1)


def is_direct(at: Millis, now: Millis, look_ahead: Millis) -> bool:
    """Whether the trigger may already have read the minute of `at`."""
    return minute_of(at) <= minute_of(now + look_ahead + DIRECT_SLACK)


def on_the_minute(at: Millis, now: Millis, look_ahead: Millis) -> Millis:
    """The end of the minute of `at`, if the trigger will read it: so all the checks of one minute share one timer."""
    return at if is_direct(at, now, look_ahead) else start_of(minute_of(at - 1) + 1)


@dataclass(frozen=True, slots=True)
class Entry:
    """What the trigger reads of a record.

    The fields are those of `Task`; `leased_until` is its `lease_expires_at`.
    """

    task_id: TaskId
    owner: str
    state: State
    priority: Priority
    generation: int
    next_at: Millis
    sent: bool
    leased_until: Millis | None
    finished: bool
    pull_queue: str = ""

    @classmethod
    def of(cls, task: Task) -> Entry:
        """The entry of a whole record."""
        return cls(
            task_id=task.id,
            owner=task.owner,
            state=task.state,
            priority=task.priority,
            generation=task.generation,
            next_at=task.next_at,
            sent=task.sent,
            leased_until=task.lease_expires_at,
            finished=task.finished_at is not None,
            pull_queue=task.pull_queue,
        )

    def message(self, due: Millis) -> Message:
        """The message that makes a worker check this task."""
        return Message(self.task_id, self.generation, due, self.priority, self.owner, self.pull_queue)


def queue_of(item: Entry | Message) -> str:
    """The name of the queue that a task waits on: that of its priority, or of its pulled type."""
    return f"{_PULLED}{item.pull_queue}" if item.pull_queue else item.priority.value


def at_first_reading(item: Entry | Timer, minute: int) -> Message | None:
    """The message to send for an item that the trigger meets when it reads a minute for the first time."""
    if item.sent:
        return None
    if isinstance(item, Timer):
        return Message(item.task_id, item.generation, item.at, item.priority, item.owner, item.pull_queue)
    waits = item.state in STARTABLE or (item.state in LEASED and item.leased_until is None)
    return item.message(item.next_at) if waits and minute_of(item.next_at) == minute else None


def is_left_behind(entry: Entry, now: Millis) -> bool:
    """Whether a recovery scan must send a task again: overdue, its lease over, or its outcome unfinished."""
    if entry.state in STARTABLE:
        return entry.next_at <= now
    if entry.state not in LEASED and (entry.state not in TERMINAL or entry.finished):
        return False
    # What follows an outcome is done under the attempt's lease too.
    return entry.next_at <= now and (entry.leased_until or 0) + MAX_CLOCK_DIFFERENCE <= now


def is_open_past_due(entry: Entry, now: Millis) -> bool:
    """Whether the last recovery scan must give a task a timer for another day: open, and with no check ahead of it."""
    is_followed_up = entry.state in TERMINAL and not entry.finished
    return entry.next_at <= now and (entry.state in LEASED or is_followed_up or is_left_behind(entry, now))
