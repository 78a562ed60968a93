"""Decides when a task needs a timer or a queue message, and how long the message is delayed."""

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
    """How the wait until a due time is divided between the queue's delay, in whole seconds, and the worker's hold."""

    NORMAL = "normal"
    """The queue delivers 0.06 to 0.16 s early if the trigger chose the moment of sending, and otherwise up to 1.06 s
    early; the worker holds the message until the due time."""
    EXACT = "exact"
    """The queue delivers one to two seconds early, so that transport never delays a task."""
    RELAXED = "relaxed"
    """The queue delivers at the due time or up to a second later, without a hold, which is the cheapest option."""


HEADROOM: dict[Precision, Millis] = {Precision.NORMAL: 60, Precision.EXACT: 1_000, Precision.RELAXED: -999}
"""Minimum time between a message's arrival and its due time, if transport took no time. One measurement of the
transport through queue and poller found a median of 16 ms and a 99th percentile of 105 ms (Source:
bitesizedserverless.com, "Serverless Messaging: Latency Compared", 1,024 messages in eu-west-1 in 2022). A task whose
message takes longer starts late by the difference. At low traffic, each additional 0.1 s of this value costs $0.67 per
million tasks."""


def delay_seconds(due: Millis, now: Millis, precision: Precision) -> int:
    """Delay of a message sent now, in whole seconds from 0 to 900."""
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
    """A queue message that requests a check of a task at this generation, no earlier than `due`.

    Attributes:
        pull_queue: the pulled type whose queue the message is on; empty if the message is on a priority's queue.
        late_at: for a message that reports a late start, the time by which the task should have started; `None` for a
            message that runs the task.
        traceparent: the task's creation context, if the sender knows it; not sent on the queue.
        ended_job: for a report by AWS that a job has ended, the job's name, or its service, region and identifier. In a
            report by AWS, all other fields are unknown; if the report has no job name, the task is also unknown.
        fair_share: the task's share among the owner's fair keys, which determines the message group; unknown in a
            received message.
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
    """A timer in the minute of `at` for a task whose record is stored in another minute.

    Attributes:
        sent: whether the process that placed the timer also sends the message, so that dispatch need not send it.
        pull_queue: as in `Message`.
        fair_share: as in `Message`.
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
        generation: generation of the schedule; timers with a different generation are stale.
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
        is_reported: whether the lateness has been reported, or need not be reported.
    """

    task_id: TaskId
    owner: str
    late_at: Millis
    at: Millis
    is_reported: bool = False

    def message(self) -> Message:
        """The message on the high-priority queue that makes a worker send the notice."""
        return Message(self.task_id, 0, self.at, Priority.HIGH, self.owner, late_at=self.late_at)


def late_timer(task: Task, now: Millis, look_ahead: Millis) -> LateTimer | None:
    """The timer for checking whether a task is late; `None` if the task has no late notice or parents may block it."""
    if task.late_at is None or task.started_at is not None or task.state is State.BLOCKED:
        return None
    return LateTimer(task.id, task.owner, task.late_at, first_unread(max(task.late_at, now), look_ahead))


def long_run_timer(task: Task, now: Millis, look_ahead: Millis) -> LateTimer | None:
    """The timer for checking whether an attempt runs long; `None` if there is no such notice or it was sent."""
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

    A record serves as the timer for a check in its home minute, the minute under which it is stored. A check soon after
    the home minute also needs no timer if its message is sent directly, and if the first recovery scan of the home
    minute, which would find the task, runs after both the check and the write, however long the write takes.
    """
    direct = is_direct(at, now, look_ahead)
    recovered_at = start_of(task_id.minute + 1) + RECOVERY_SCAN_DELAYS[0] - 2 * MAX_CLOCK_DIFFERENCE
    is_scanned = start_of(task_id.minute) <= at and max(at, now + LATEST_ARRIVAL) < recovered_at
    in_own_minute = minute_of(at) == task_id.minute or (direct and is_scanned)
    return EnqueuePlan(timer=not in_own_minute, direct=direct)


def is_check_kept(task: Task, at: Millis, now: Millis, sets: TaskChanges) -> bool:
    """Whether a task's existing check can serve as a check at `at`, so that its messages and timers stay valid.

    An existing check is kept if both checks are at the same time on the same queue and in the same message group, or if
    both are due. A due message with another priority or group is also kept, and another message is sent to the new
    queue or group.

    Args:
        task: the record as it was last seen.
        at: when the task should be checked.
        now: the time.
        sets: other changes in the same write.
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
    """The end of the minute of `at` if the trigger will read that minute, else `at`.

    All checks in one minute therefore share a timer.
    """
    return at if is_direct(at, now, look_ahead) else start_of(minute_of(at - 1) + 1)


@frozen
class SendGroup:
    """Messages that are sent together.

    Attributes:
        at: when to send the messages; their delays are relative to this time.
    """

    at: Millis
    messages: tuple[Message, ...]


def send_groups(messages: Sequence[Message], now: Millis, precision: Precision) -> list[SendGroup]:
    """Groups messages by when to send them within the next second, in order of time.

    All messages are sent at once in two cases: if there are so many messages that workers receive full batches, whose
    messages share one wait, or if the precision is not `normal` (`relaxed` does not hold messages, and `exact` should
    be early). The trigger does not wait for the planned time of the last messages if its own waiting would cost more
    than the workers' waiting.
    """
    if precision is not Precision.NORMAL or len(messages) > MOST_SENT_IN_TIME:
        return [SendGroup(now, tuple(messages))]
    groups: dict[Millis, list[Message]] = {}
    last = 0
    waiting = len(messages)
    for step, message in sorted(((_step(each, now), each) for each in messages), key=lambda pair: pair[0]):
        # While the trigger waits, all messages that are not sent yet wait as well.
        last = step if waiting >= FEWEST_WAITED_FOR else last
        groups.setdefault(last, []).append(message)
        waiting -= 1
    return [SendGroup(now + step, tuple(group)) for step, group in groups.items()]


def _step(message: Message, now: Millis) -> Millis:
    """How long to wait before sending a message, in whole steps; 0 if it must be sent at once."""
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
        """Returns the entry for a complete record."""
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
        """Whether the task is blocked by tasks in its `after`, which a worker checks.

        A topology checks its nodes itself.
        """
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
    """Whether a recovery scan must resend a task: it is overdue, its lease ended, or its follow-ups are unfinished."""
    if entry.state in STARTABLE or entry.waits_for_tasks:
        return entry.next_at <= now
    if entry.state not in LEASED and (entry.state not in TERMINAL or entry.finished):
        return False
    # The follow-ups of an outcome also run under the attempt's lease.
    return entry.next_at <= now and (entry.leased_until or 0) + MAX_CLOCK_DIFFERENCE <= now


def is_open_past_due(entry: Entry, now: Millis) -> bool:
    """Whether the last recovery scan must place another timer, because the task is open and has no later check."""
    is_followed_up = entry.state in TERMINAL and not entry.finished
    return entry.next_at <= now and (entry.state in LEASED or is_followed_up or is_left_behind(entry, now))


def rescan_timer(entry: Entry, now: Millis) -> Timer | None:
    """The timer with which the first recovery scan checks an open overdue task again when its lease ends.

    The worker that has the message may disappear at any time. The timer is placed in a minute whose scan starts a
    minute from now or later, so that every scanner finds the timer.

    Returns:
        `None` for a task that has waited so long that workers must be busy or absent, for a task that waits for other
        tasks, and for the lease of an asynchronous attempt, whose end has its own timer.
    """
    if entry.waits_for_tasks:
        return None
    if entry.state in STARTABLE:
        overdue = now - entry.next_at
        # The worker that receives this message may also disappear, and its loss may be detected only at that time.
        at = now + min(overdue, RECOVERY_SCAN_DELAYS[0])
        is_watched = overdue <= RESCAN_PATIENCE
    else:
        at = (entry.leased_until or 0) + MAX_CLOCK_DIFFERENCE
        is_watched = at <= now + MAX_LEASE_SECONDS * SECOND + MAX_CLOCK_DIFFERENCE
    if not is_watched:
        return None
    minute = max(minute_of(at - RECOVERY_SCAN_DELAYS[0] - 1), minute_of(now) - 1)
    return entry.timer(start_of(minute), sent=True)
