"""From due to queue: when a task needs a timer, a message, and with which delay. Decisions as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_LEASE_SECONDS
from duetime.domain.operating_parameters import (
    DIRECT_SLACK,
    FEWEST_WAITED_FOR,
    LATEST_ARRIVAL,
    MAX_CLOCK_DIFFERENCE,
    MAX_DELAY,
    MOST_SENT_IN_TIME,
    RECOVERY_SCAN_DELAYS,
    RESCAN_PATIENCE,
    SEND_STEP,
    SHORTEST_WAIT_SENT_IN_TIME,
)
from duetime.domain.tasks.states import LEASED, STARTABLE, TERMINAL, State
from duetime.domain.tasks.targets import pull_queue_of
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import SECOND, Millis, minute_of, start_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges


class Precision(StrEnum):
    """How a wait is shared between the queue's delay, which counts whole seconds, and the worker's hold."""

    NORMAL = "normal"
    """The queue delivers 0.15 s early, up to 1.15 s if it was not the trigger that sent; the worker holds the rest."""
    EXACT = "exact"
    """The queue delivers one to two seconds early, so that transport never makes a task late."""
    RELAXED = "relaxed"
    """The queue delivers at the due time or up to a second later; nothing is held: the cheapest."""


HEADROOM: dict[Precision, Millis] = {Precision.NORMAL: 150, Precision.EXACT: 1_000, Precision.RELAXED: -999}
"""How long before the due time a message arrives at the latest, if its way takes no time. Queue and poller took 16 ms
at the median and 105 ms at the 99th percentile where somebody measured it (Source: bitesizedserverless.com, "Serverless
Messaging: Latency Compared", 1 024 messages in eu-west-1 in 2022)."""


def delay_seconds(due: Millis, now: Millis, precision: Precision) -> int:
    """Delay of a message sent now, in whole seconds from 0 to 900."""
    wait = due - now - HEADROOM[precision]
    return max(0, min(wait, MAX_DELAY)) // SECOND


LATE_CHECKS = "late checks"
"""What stands for a queue's name where it is checked whether tasks are late."""
SCHEDULES = "schedules"
"""What stands for a queue's name where schedules are expanded."""
BULK_OPERATIONS = "bulk operations"
"""What stands for a queue's name where bulk operations are resumed."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a queue carries: check this task, in this generation, no earlier than `due`.

    Attributes:
        pull_queue: the pulled type on whose queue it is; empty for the queue of its priority.
        late_at: the time by which the task has not started, if that is to be told; else the task is to be run.
        traceparent: the task's creation context, as far as its sender knows it; no queue carries it.
        ended_job: AWS tells that a job has ended: its name, or its service, its region and what identifies it there;
            nothing else of the message is known then, nor is the task if there is no name.
    """

    task_id: TaskId
    generation: int
    due: Millis
    priority: Priority
    owner: str
    pull_queue: str = ""
    late_at: Millis | None = None
    traceparent: str | None = None
    ended_job: tuple[str, ...] = ()


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
class LateTimer:
    """A reminder in the minute of `at` to see whether a task has started by `late_at`.

    Attributes:
        at: the start of its minute, which is read once `late_at` is past.
        told: it has been told, or need not be.
    """

    task_id: TaskId
    owner: str
    late_at: Millis
    at: Millis
    told: bool = False

    def message(self) -> Message:
        """The message that makes a worker tell of it, ahead of the queue that its task may be stuck in."""
        return Message(self.task_id, 0, self.at, Priority.HIGH, self.owner, late_at=self.late_at)


def late_timer(task: Task, now: Millis, look_ahead: Millis) -> LateTimer | None:
    """The timer that checks whether a task is late; `None` if nobody asks, or its parents may not let it start yet."""
    if task.late_at is None or task.started_at is not None or task.state is State.BLOCKED:
        return None
    return LateTimer(task.id, task.owner, task.late_at, first_unread(max(task.late_at, now), look_ahead))


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
    is_scanned = start_of(task_id.minute) <= at and max(at, now + LATEST_ARRIVAL) < recovered_at
    in_own_minute = minute_of(at) == task_id.minute or (direct and is_scanned)
    return EnqueuePlan(timer=not in_own_minute, direct=direct)


def is_check_kept(task: Task, at: Millis, now: Millis, sets: TaskChanges) -> bool:
    """Whether the check that a task has already serves for one at `at`, so that its messages and timers stay valid.

    It does if it comes at the same time, by the same queue; and if both are due. A message of another priority than
    the task's is as good then, beside which one is sent on the queue of the new priority.

    Args:
        task: the record as it was last seen.
        at: when it shall be checked.
        now: the time.
        sets: what else is changed.
    """
    if task.state not in STARTABLE:
        return False
    if pull_queue_of(task.type, sets.get("target", task.target), task.state) != task.pull_queue:
        return False
    is_same_queue = bool(task.pull_queue) or sets.get("priority", task.priority) is task.priority
    return (task.next_at <= now and at <= now) or (task.next_at == at and is_same_queue)


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
class SendGroup:
    """Messages that are sent together.

    Attributes:
        at: when; their delays are counted from there.
    """

    at: Millis
    messages: tuple[Message, ...]


def send_groups(messages: Sequence[Message], now: Millis, precision: Precision) -> list[SendGroup]:
    """In which groups, and when within the next second, messages are sent; in the order of their times.

    All of them at once, if they are so many that workers are given full batches, which share their wait; or if the
    precision is not `normal`: `relaxed` waits for nothing, and `exact` is to be early. The last ones are not waited for
    if the trigger's own time would cost more than their workers'.
    """
    if precision is not Precision.NORMAL or len(messages) > MOST_SENT_IN_TIME:
        return [SendGroup(now, tuple(messages))]
    groups: dict[Millis, list[Message]] = {}
    last = 0
    waiting = len(messages)
    for step, message in sorted(((_step(each, now), each) for each in messages), key=lambda pair: pair[0]):
        # As many as are left wait for as long as the trigger waits.
        last = step if waiting >= FEWEST_WAITED_FOR else last
        groups.setdefault(last, []).append(message)
        waiting -= 1
    return [SendGroup(now + step, tuple(group)) for step, group in groups.items()]


def _step(message: Message, now: Millis) -> Millis:
    """How long until a message is best sent, in whole steps; 0 for one that cannot wait, or waits longer than SQS."""
    wait = message.due - now - HEADROOM[Precision.NORMAL]
    if not SHORTEST_WAIT_SENT_IN_TIME <= wait <= MAX_DELAY:
        return 0
    return wait % SECOND // SEND_STEP * SEND_STEP


_PULLED = "pulled:"


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
    traceparent: str | None = None

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
            traceparent=task.traceparent,
        )

    def message(self, due: Millis) -> Message:
        """The message that makes a worker check this task."""
        message = Message(self.task_id, self.generation, due, self.priority, self.owner, self.pull_queue)
        return replace(message, traceparent=self.traceparent)


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


def rescan_timer(entry: Entry, now: Millis) -> Timer | None:
    """The timer by which the first recovery scan meets an open task that is past due again: when its lease is over.

    Whoever works on it may vanish with its message at any time. It is in a minute whose scan comes a minute from now or
    later, so that it is there by then, whoever scans.

    Returns:
        `None` for a task that waits for its start so long that workers are busy or away, and for a lease that is no
        worker's: the end of an asynchronous attempt has a timer of its own.
    """
    if entry.state in STARTABLE:
        overdue = now - entry.next_at
        at = now + overdue
        is_watched = overdue <= RESCAN_PATIENCE
    else:
        at = (entry.leased_until or 0) + MAX_CLOCK_DIFFERENCE
        is_watched = at <= now + MAX_LEASE_SECONDS * SECOND + MAX_CLOCK_DIFFERENCE
    if not is_watched:
        return None
    minute = max(minute_of(at - RECOVERY_SCAN_DELAYS[0] - 1), minute_of(now) - 1)
    priority, owner, queue = entry.priority, entry.owner, entry.pull_queue
    return Timer(entry.task_id, entry.generation, start_of(minute), priority, owner, sent=True, pull_queue=queue)
