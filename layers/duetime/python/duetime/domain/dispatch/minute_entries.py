"""Entries of a minute as the trigger reads them, and which of them need a message."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import Message, Timer
from duetime.domain.limits import MAX_LEASE_SECONDS
from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE, RECOVERY_SCAN_DELAYS, RESCAN_PATIENCE
from duetime.domain.tasks.states import LEASED, STARTABLE, TERMINAL, State
from duetime.domain.times import SECOND, Millis, minute_of, start_of

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Priority


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
