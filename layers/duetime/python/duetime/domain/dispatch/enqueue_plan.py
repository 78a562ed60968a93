"""Decides when a task needs a timer or a queue message, and with which delay."""

from __future__ import annotations

from dataclasses import replace
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
from duetime.domain.tasks.task_options import Priority, fair_share
from duetime.domain.times import SECOND, Millis, minute_of, start_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges


class Precision(StrEnum):
    """How a wait is divided between the queue's delay, in whole seconds, and the worker's hold."""

    NORMAL = "normal"
    """The queue delivers 0.06 s early, or up to 1.06 s if the trigger was not the sender; the worker holds the
    message."""
    EXACT = "exact"
    """The queue delivers one to two seconds early, so that transport never delays a task."""
    RELAXED = "relaxed"
    """The queue delivers at the due time or up to a second later, without a hold, which is the cheapest option."""


HEADROOM: dict[Precision, Millis] = {Precision.NORMAL: 60, Precision.EXACT: 1_000, Precision.RELAXED: -999}
"""The shortest time before the due time at which a message arrives, without transport time. One measurement of queue
and poller found 16 ms at the median and 105 ms at the 99th percentile (Source: bitesizedserverless.com, "Serverless
Messaging: Latency Compared", 1 024 messages in eu-west-1 in 2022). A task whose message takes longer starts late by the
difference; at low traffic, each additional 0.1 s costs $0.67 per million tasks."""


def delay_seconds(due: Millis, now: Millis, precision: Precision) -> int:
    """Delay in whole seconds, from 0 to 900, of a message sent now."""
    wait = due - now - HEADROOM[precision]
    return max(0, min(wait, MAX_DELAY)) // SECOND


LATE_CHECKS = "late checks"
"""Used in place of a queue name for checks whether tasks are late."""
SCHEDULES = "schedules"
"""Used in place of a queue name for expanding schedules."""
BULK_OPERATIONS = "bulk operations"
"""Used in place of a queue name for resuming bulk operations."""


@frozen
class Message:
    """A message on a queue, which requests a check of this task, at this generation, no earlier than `due`.

    Attributes:
        pull_queue: the pulled type of its queue; empty for a priority's queue.
        late_at: if a late start should be reported, the time by which the task has not started; otherwise the message
            is for running the task.
        traceparent: the task's creation context, if the sender knows it; not sent on the queue.
        ended_job: the job that has ended, in a report by AWS: its name, or its service, region and identifier. In such
            a report, all other fields are unknown; without a job name, the task is also unknown.
        fair_share: the task's part of the owner's fair keys, which determines the message group; unknown once received.
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
    fair_share: str = ""


@frozen
class Timer:
    """A timer in the minute of `at` for a task whose record is in another minute.

    Attributes:
        sent: whether the process that placed the timer also sends the message, so that dispatch need not send it.
            pull_queue, fair_share: as in `Message`.
    """

    task_id: TaskId
    generation: int
    at: Millis
    priority: Priority
    owner: str
    sent: bool = False
    pull_queue: str = ""
    fair_share: str = ""


@frozen
class ScheduleTimer:
    """A timer in the minute of `at` for checking a schedule.

    Attributes:
        uid: uid of the schedule, which determines the shard.
        generation: generation of the schedule; timers with another generation are stale.
    """

    uid: TaskId
    owner: str
    name: str
    generation: int
    at: Millis


@frozen
class LateTimer:
    """A timer in the minute of `at` for checking whether a task has started, or an attempt has ended, by `late_at`.

    Attributes:
        at: the start of its minute, which is read after `late_at`.
        is_reported: whether the lateness was reported, or need not be.
    """

    task_id: TaskId
    owner: str
    late_at: Millis
    at: Millis
    is_reported: bool = False

    def message(self) -> Message:
        """The message that makes a worker send the notice, on the high-priority queue."""
        return Message(self.task_id, 0, self.at, Priority.HIGH, self.owner, late_at=self.late_at)


def late_timer(task: Task, now: Millis, look_ahead: Millis) -> LateTimer | None:
    """The timer for checking whether a task is late; `None` without such a notice, or if parents may block the task."""
    if task.late_at is None or task.started_at is not None or task.state is State.BLOCKED:
        return None
    return LateTimer(task.id, task.owner, task.late_at, first_unread(max(task.late_at, now), look_ahead))


def long_run_timer(task: Task, now: Millis, look_ahead: Millis) -> LateTimer | None:
    """The timer for checking whether an attempt runs long; `None` without such a notice, or if already sent."""
    if task.long_at is None or task.long_at <= now:
        return None
    return LateTimer(task.id, task.owner, task.long_at, first_unread(task.long_at, look_ahead))


@frozen
class BulkTimer:
    """A timer in the minute of `at` for checking whether a bulk operation is still running.

    Attributes:
        operation: the operation's id, which determines the shard.
    """

    operation: TaskId
    at: Millis


@frozen
class EnqueuePlan:
    """The writes and messages that make sure that a task is checked in time.

    Attributes:
        timer: whether a timer must be written, before the record.
        direct: whether a message must be sent, after the record, because the trigger may already have read the minute.
    """

    timer: bool
    direct: bool


def enqueue_plan(task_id: TaskId, at: Millis, now: Millis, look_ahead: Millis) -> EnqueuePlan:
    """Decides how a task is placed for a check at `at`.

    In its home minute, a record is its own timer. A check soon after that minute also needs no other timer if it is
    sent directly, and if the first recovery scan of the home minute, which would find the task, comes after both the
    check and the write (which may take long).
    """
    direct = is_direct(at, now, look_ahead)
    recovered_at = start_of(task_id.minute + 1) + RECOVERY_SCAN_DELAYS[0] - 2 * MAX_CLOCK_DIFFERENCE
    is_scanned = start_of(task_id.minute) <= at and max(at, now + LATEST_ARRIVAL) < recovered_at
    in_own_minute = minute_of(at) == task_id.minute or (direct and is_scanned)
    return EnqueuePlan(timer=not in_own_minute, direct=direct)


def is_check_kept(task: Task, at: Millis, now: Millis, sets: TaskChanges) -> bool:
    """Whether a task's existing check can replace a check at `at`, so that the existing messages and timers stay valid.

    An existing check is kept if both checks are at the same time on the same queue and in the same message group, or if
    both are due. A due message of another priority or group is also kept; another message is sent to the new place.

    Args:
        task: the record as it was last seen.
        at: when the task should be checked.
        now: the time.
        sets: other changes of the same write.
    """
    if task.state not in STARTABLE:
        return False
    if pull_queue_of(task.type, sets.get("target", task.target), task.state) != task.pull_queue:
        return False
    is_same_queue = bool(task.pull_queue) or sets.get("priority", task.priority) is task.priority
    share = fair_share(task.id, sets.get("fair_key", task.fair_key), sets.get("fair_weight", task.fair_weight))
    is_same_queue = is_same_queue and share == task.fair_share
    return (task.next_at <= now and at <= now) or (task.next_at == at and is_same_queue)


def first_unread(now: Millis, look_ahead: Millis) -> Millis:
    """The start of the first minute that the trigger cannot have read yet, by any process's clock."""
    return start_of(minute_of(now + look_ahead + DIRECT_SLACK) + 1)


def is_direct(at: Millis, now: Millis, look_ahead: Millis) -> bool:
    """Whether the trigger may already have read the minute of `at`."""
    return minute_of(at) <= minute_of(now + look_ahead + DIRECT_SLACK)


def on_the_minute(at: Millis, now: Millis, look_ahead: Millis) -> Millis:
    """The end of the minute of `at`, if the trigger will read it, so that all checks of one minute share a timer."""
    return at if is_direct(at, now, look_ahead) else start_of(minute_of(at - 1) + 1)


@frozen
class SendGroup:
    """Messages that are sent together.

    Attributes:
        at: when to send; delays are relative to this time.
    """

    at: Millis
    messages: tuple[Message, ...]


def send_groups(messages: Sequence[Message], now: Millis, precision: Precision) -> list[SendGroup]:
    """Groups messages by when to send them within the next second, in order of time.

    All messages are sent at once if there are so many that workers receive full batches, which share their wait, or if
    the precision is not `normal`: `relaxed` does not hold messages, and `exact` should be early. The trigger does not
    wait for the last messages if its own time would cost more than the workers'.
    """
    if precision is not Precision.NORMAL or len(messages) > MOST_SENT_IN_TIME:
        return [SendGroup(now, tuple(messages))]
    groups: dict[Millis, list[Message]] = {}
    last = 0
    waiting = len(messages)
    for step, message in sorted(((_step(each, now), each) for each in messages), key=lambda pair: pair[0]):
        # All remaining messages wait for as long as the trigger waits.
        last = step if waiting >= FEWEST_WAITED_FOR else last
        groups.setdefault(last, []).append(message)
        waiting -= 1
    return [SendGroup(now + step, tuple(group)) for step, group in groups.items()]


def _step(message: Message, now: Millis) -> Millis:
    """Time until a message is best sent, in whole steps; 0 if it cannot wait, or would exceed SQS's longest delay."""
    wait = message.due - now - HEADROOM[Precision.NORMAL]
    if not SHORTEST_WAIT_SENT_IN_TIME <= wait <= MAX_DELAY:
        return 0
    return wait % SECOND // SEND_STEP * SEND_STEP


_PULLED = "pulled:"


@frozen
class Entry:
    """The fields of a record that the trigger reads.

    The fields have the same names as in `Task`; `leased_until` is `lease_expires_at`.

    Attributes:
        is_dependent: whether the task has an `after`.
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
    is_dependent: bool = False
    fair_share: str = ""

    @classmethod
    def of(cls, task: Task) -> Entry:
        """The entry of a complete record."""
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
            is_dependent=task.after is not None,
            fair_share=task.fair_share,
        )

    @property
    def waits_for_tasks(self) -> bool:
        """Whether tasks in its `after`, which a worker checks, block the task. A topology checks its nodes itself."""
        return self.state is State.BLOCKED and self.is_dependent

    def message(self, due: Millis) -> Message:
        """The message that makes a worker check this task."""
        message = Message(self.task_id, self.generation, due, self.priority, self.owner, self.pull_queue)
        return replace(message, traceparent=self.traceparent, fair_share=self.fair_share)

    def timer(self, at: Millis, *, sent: bool = False) -> Timer:
        """A timer for another check of this task at its current generation."""
        place = self.priority, self.owner, sent, self.pull_queue, self.fair_share
        return Timer(self.task_id, self.generation, at, *place)


def queue_of(item: Entry | Message) -> str:
    """Name of the queue on which a task waits: the queue of its priority or pulled type."""
    return f"{_PULLED}{item.pull_queue}" if item.pull_queue else item.priority.value


def at_first_reading(item: Entry | Timer, minute: int) -> Message | None:
    """The message to send for an item when dispatch reads a minute for the first time."""
    if item.sent:
        return None
    if isinstance(item, Timer):
        place = item.priority, item.owner, item.pull_queue
        return Message(item.task_id, item.generation, item.at, *place, fair_share=item.fair_share)
    is_checked = item.state in STARTABLE or item.waits_for_tasks
    waits = is_checked or (item.state in LEASED and item.leased_until is None)
    return item.message(item.next_at) if waits and minute_of(item.next_at) == minute else None


def is_left_behind(entry: Entry, now: Millis) -> bool:
    """Whether a recovery scan must resend a task that is overdue, or has an ended lease or unfinished follow-ups."""
    if entry.state in STARTABLE or entry.waits_for_tasks:
        return entry.next_at <= now
    if entry.state not in LEASED and (entry.state not in TERMINAL or entry.finished):
        return False
    # An outcome's follow-ups also run under the attempt's lease.
    return entry.next_at <= now and (entry.leased_until or 0) + MAX_CLOCK_DIFFERENCE <= now


def is_open_past_due(entry: Entry, now: Millis) -> bool:
    """Whether the last recovery scan must place another timer, because the task is open and has no later check."""
    is_followed_up = entry.state in TERMINAL and not entry.finished
    return entry.next_at <= now and (entry.state in LEASED or is_followed_up or is_left_behind(entry, now))


def rescan_timer(entry: Entry, now: Millis) -> Timer | None:
    """The timer with which the first recovery scan checks an open overdue task again when its lease ends.

    The worker may vanish with its message at any time. The timer is in a minute whose scan starts a minute from now or
    later, so that any scanner finds it.

    Returns:
        `None` for a task that has waited so long that workers must be busy or absent, for a task that waits for others,
        and for the lease of an asynchronous attempt, whose end has its own timer.
    """
    if entry.waits_for_tasks:
        return None
    if entry.state in STARTABLE:
        overdue = now - entry.next_at
        # The worker that receives this message may also vanish, which may be detected that late.
        at = now + min(overdue, RECOVERY_SCAN_DELAYS[0])
        is_watched = overdue <= RESCAN_PATIENCE
    else:
        at = (entry.leased_until or 0) + MAX_CLOCK_DIFFERENCE
        is_watched = at <= now + MAX_LEASE_SECONDS * SECOND + MAX_CLOCK_DIFFERENCE
    if not is_watched:
        return None
    minute = max(minute_of(at - RECOVERY_SCAN_DELAYS[0] - 1), minute_of(now) - 1)
    return entry.timer(start_of(minute), sent=True)
