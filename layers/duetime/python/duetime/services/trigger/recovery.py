"""Recovery scans: the trigger comes back to an old minute and checks for what was left behind in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch.enqueue_plan import Timer
from duetime.domain.dispatch.minute_entries import Entry, is_left_behind, is_open_past_due, queue_of, rescan_timer
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import RECOVERY_SCAN_BACKLOG
from duetime.domain.times import DAY
from duetime.services.trigger.shard_group_reader import Served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.ids import TaskId
    from duetime.ports.queues import WorkQueues
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import MinuteItem, TaskStore
    from duetime.services.trigger.due_messages import DueMessages


@dataclass(frozen=True, slots=True)
class RecoveryScan:
    """Sends again what is overdue and unclaimed, what has a lease that is over, and what has an unfinished outcome.

    A queue with a long backlog is skipped, so that a backlog does not feed itself; the others are served. What the
    first scan finds open, and what any scan sends again, is given a timer by which the first scan meets it once more:
    a task is found soon after a lease is over, whichever of its attempts was lost, and when.

    Attributes:
        is_first: whether it is the first scan of a minute.
        is_last: whether no scan follows: then what is still open is given a timer for another day.
    """

    tasks: TaskStore
    queues: WorkQueues
    due_messages: DueMessages
    runtime: Runtime
    is_first: bool
    is_last: bool

    def serve(self, minute: int, items: Sequence[MinuteItem], wants: Callable[[str], bool]) -> Served:
        """Send what was left behind, of those queues that are wanted.

        Raises:
            Unavailable: the table did not answer; nothing of it counts.
        """
        del minute
        refused = set(self.due_messages.follow_timers(items, wants))
        now = self.runtime.now()
        entries = self._entries(items)
        watched = _current(items, entries)
        overdue = [each for each in entries if is_left_behind(each, now) or is_open_past_due(each, now)]
        self.runtime.telemetry.measure("oldest_due", now - min([now, *(each.next_at for each in overdue)]))
        wanted = {queue: wants(queue) for queue in sorted({queue_of(each) for each in overdue})}
        overdue = [each for each in overdue if wanted[queue_of(each)]]
        left = [each for each in overdue if is_left_behind(each, now)]
        refused |= self._long_queues(left)
        overdue = [each for each in overdue if queue_of(each) not in refused]
        left = [each for each in left if queue_of(each) not in refused]
        if self.is_last:
            self.runtime.executor.map(self._set_timer, [each for each in overdue if is_open_past_due(each, now)])
        rescanned = [each for each in (overdue if self.is_first else left) if each.task_id in watched]
        self.runtime.executor.map(self._rescan, rescanned)
        self.runtime.telemetry.count("timers_recovered", len(left))
        sent = self.due_messages.send([each.message(min(each.next_at, now)) for each in left])
        return Served(sent.sent, sent.refused | refused)

    def _entries(self, items: Sequence[MinuteItem]) -> list[Entry]:
        """The entries among the items, and those of the records that the timers stand for."""
        entries = {item.task_id: item for item in items if isinstance(item, Entry)}
        timed = {item.task_id for item in items if isinstance(item, Timer)} - entries.keys()
        if not timed:
            return list(entries.values())
        return [*entries.values(), *(Entry.of(task) for task in self.tasks.read_many(sorted(timed)).values())]

    def _long_queues(self, left: Sequence[Entry]) -> set[str]:
        """The queues that have so much to do that what was left behind is most likely among it."""
        examples = {queue_of(each): each for each in left}
        refused = {queue for queue, each in sorted(examples.items()) if self._is_long(each)}
        if refused:
            self.runtime.telemetry.count("recovery_scans_waiting", len(refused))
        return refused

    def _is_long(self, entry: Entry) -> bool:
        try:
            return self.queues.depth(entry.priority, entry.pull_queue).waiting > RECOVERY_SCAN_BACKLOG
        except Unavailable as error:
            self.runtime.telemetry.note("a queue's length could not be read", queue=queue_of(entry), error=str(error))
            return True

    def _rescan(self, entry: Entry) -> None:
        timer = rescan_timer(entry, self.runtime.now())
        if timer is not None:
            self.tasks.add_timer(timer)

    def _set_timer(self, entry: Entry) -> None:
        at = self.runtime.now() + DAY
        self.tasks.add_timer(
            Timer(entry.task_id, entry.generation, at, entry.priority, entry.owner, pull_queue=entry.pull_queue)
        )


def _current(items: Sequence[MinuteItem], entries: Sequence[Entry]) -> frozenset[TaskId]:
    """The tasks that are met by their records, or by timers of their present generations: an earlier one is stale."""
    timers = {(item.task_id, item.generation) for item in items if isinstance(item, Timer)}
    records = {item.task_id for item in items if isinstance(item, Entry)}
    return frozenset(
        each.task_id for each in entries if each.task_id in records or (each.task_id, each.generation) in timers
    )
