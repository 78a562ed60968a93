"""Contains the trigger, which reads minutes, puts due tasks on queues, and scans past minutes for lost tasks.

Each queue is served separately. The trigger also handles due schedules and bulk operations, and shows operators its
progress.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from duetime.domain.dispatch.cursors import (
    DISPATCH,
    FIRST_SCAN,
    LAST_SCAN,
    DispatchStatus,
    WorkQueue,
    dispatch_status,
    first_cursors,
    furthest,
    groups_of,
    horizons,
    shards_in,
)
from duetime.domain.dispatch.enqueue_plan import (
    BULK_OPERATIONS,
    LATE_CHECKS,
    SCHEDULES,
    BulkTimer,
    Entry,
    LateTimer,
    Message,
    Precision,
    ScheduleTimer,
    Timer,
    at_first_reading,
    delay_seconds,
    is_direct,
    is_left_behind,
    is_open_past_due,
    queue_of,
    rescan_timer,
    send_groups,
)
from duetime.domain.errors import ClockWrong, MinutesUnread, Unavailable
from duetime.domain.operating_parameters import (
    CURSOR_SAVE_INTERVAL,
    EARLY_SCAN_AGES,
    EARLY_SCAN_BACKLOG,
    EARLY_SCAN_PAGES,
    GROUP_HOLD,
    LATEST_SEND,
    MAX_CLOCK_DIFFERENCE,
    RECOVERY_SCAN_BACKLOG,
    RECOVERY_SCAN_DELAYS,
    TICK_BUDGET,
)
from duetime.domain.tasks.notices import timed_notice
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY, Millis, minute_of, start_of
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from duetime.services.task_telemetry import dispatch_span, expansion_span
from duetime.services.trigger.shard_group_reader import GroupReader, Served
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.dispatch.cursors import Cursors, ShardHistory
    from duetime.domain.dispatch.enqueue_plan import SendGroup
    from duetime.domain.ids import TaskId
    from duetime.ports.queues import MessagePace, WorkQueues
    from duetime.ports.runtime import FanOut, Heartbeat, Runtime, Telemetry
    from duetime.ports.stores import CursorStore, Stores
    from duetime.ports.tasks import MinuteItem, TaskStore
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.enqueue import Shards
    from duetime.services.schedules.expander import ScheduleExpander

_SAVES = 5
"""Maximum number of tries to store the progress while other invocations store their progress."""


@frozen
class DueMessages:
    """Handles the due messages and timers that the first reading and the recovery scans find.

    Attributes:
        expander: creates the occurrences of schedules whose timers are read.
        tasks: store of tasks that may be late.
        bulk_operations: starts the bulk operations whose timers are read.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        precision: how the wait is split between the queue and the worker.
        pace: delays the messages of owners with a quota; `None` if there are no quotas.
    """

    tasks: TaskStore
    queues: WorkQueues
    expander: ScheduleExpander
    bulk_operations: BulkOperations
    runtime: Runtime
    look_ahead: Millis
    precision: Precision
    pace: MessagePace | None

    def send(self, messages: Sequence[Message]) -> Served:
        """Send messages; returns the counts by queue, and the queues that did not acknowledge all messages."""
        if not messages:
            return Served({}, frozenset())
        with self.runtime.tracer.span(dispatch_span(messages)):
            groups = send_groups(messages, self.runtime.now(), self.precision)
            unsent = [each for group in groups for each in self._send_in_time(group)]
        if unsent:
            self.runtime.telemetry.count("messages_unsent", len(unsent))
        sent = Counter(queue_of(message) for message in messages)
        return Served(sent, frozenset(queue_of(each.message) for each in unsent))

    def _send_in_time(self, group: SendGroup) -> Sequence[Outgoing]:
        """Send messages together at the group's time; returns the messages that were not acknowledged."""
        self.runtime.clock.sleep_until(group.at)
        now = self.runtime.now()
        since = group.at if now <= group.at + LATEST_SEND else now
        return self.queues.send([Outgoing(message, self._delay(message, since)) for message in group.messages])

    def _delay(self, message: Message, since: Millis) -> int:
        seconds = delay_seconds(message.due, since, self.precision)
        # Messages for pull workers are not delayed, because pull workers take no more tasks than they can run.
        if self.pace is None or message.pull_queue:
            return seconds
        return self.pace.delay_seconds(message.owner, seconds)

    def follow_timers(self, items: Sequence[MinuteItem], wants: Callable[[str], bool]) -> frozenset[str]:
        """Handle the schedule, bulk operation and lateness timers among the items; returns the kinds that failed.

        If the queue rejects a schedule's task, the first recovery scan finds the task, as it does any new task.
        """
        schedule_timers = [item for item in items if isinstance(item, ScheduleTimer)]
        timers = [item for item in items if isinstance(item, BulkTimer)]
        refused = set[str]()
        if schedule_timers and wants(SCHEDULES) and not self._expand(schedule_timers):
            refused.add(SCHEDULES)
        if timers and wants(BULK_OPERATIONS) and not self.bulk_operations.resume(timers):
            refused.add(BULK_OPERATIONS)
        late_timers = [item for item in items if isinstance(item, LateTimer) and not item.is_reported]
        if late_timers and wants(LATE_CHECKS) and not self._check_lateness(late_timers):
            refused.add(LATE_CHECKS)
        return frozenset(refused)

    def _check_lateness(self, timers: Sequence[LateTimer]) -> bool:
        """Send messages that let a worker send notices of late tasks and long runs; most timers need no message."""
        now = self.runtime.now()
        tasks = self.tasks.read_many(sorted({timer.task_id for timer in timers}))
        late = [
            timer
            for timer in timers
            if (task := tasks.get(timer.task_id)) is not None and timed_notice(task, timer.late_at, now)
        ]
        return not late or not self.queues.send([Outgoing(timer.message(), 0) for timer in late])

    def _expand(self, schedule_timers: Sequence[ScheduleTimer]) -> bool:
        with self.runtime.tracer.span(expansion_span(len(schedule_timers))):
            expanded = self.expander.expand(schedule_timers)
        now = self.runtime.now()
        self.runtime.telemetry.count("occurrences", len(expanded.tasks))
        self.send([message_for(task) for task in expanded.tasks if is_direct(task.next_at, now, self.look_ahead)])
        return expanded.done


@frozen
class FirstReading:
    """Sends messages for the due tasks of a minute that is read for the first time."""

    due_messages: DueMessages
    telemetry: Telemetry

    def serve(self, minute: int, items: Sequence[MinuteItem], wants: Callable[[str], bool]) -> Served:
        """Send messages for due tasks on the wanted queues."""
        tasks = [item for item in items if isinstance(item, Entry | Timer)]
        messages = [message for item in tasks if (message := at_first_reading(item, minute))]
        wanted = {queue: wants(queue) for queue in sorted({queue_of(message) for message in messages})}
        messages = [message for message in messages if wanted[queue_of(message)]]
        self.telemetry.count("dispatched", len(messages))
        sent = self.due_messages.send(messages)
        refused = self.due_messages.follow_timers(items, wants)
        return Served(sent.sent, sent.refused | refused)


@frozen
class Dispatcher:
    """Reads the minutes of shard groups.

    A group's cursors move past a task only after the task's queue has acknowledged the message, so the next tick makes
    up for a missed or interrupted tick. Overlapping ticks are harmless, because only one invocation at a time holds a
    group. Even two invocations would only send duplicates, which claims reject, and the progress of both would count.

    Attributes:
        shards: announced numbers of shards over which a minute is spread.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        due_messages: sends messages of due tasks.
        early_scan: resends messages that were lost within the last minute.
        heartbeat: notifies an external monitor after each tick that reads the first group without failures.
    """

    stores: Stores
    queues: WorkQueues
    fan_out: FanOut
    runtime: Runtime
    shards: Shards
    look_ahead: Millis
    due_messages: DueMessages
    early_scan: EarlyScan
    heartbeat: Heartbeat

    def tick(self, holder: str) -> None:
        """Read every group. A single group is read in this invocation; several groups are read in separate invocations.

        Raises:
            MinutesUnread: only for a single group; see `read_group`.
        """
        history = self.shards.announced()
        groups = groups_of(history.number)
        if len(groups) == 1:
            self._read_group(groups[0], holder, history)
        else:
            self.fan_out.read_groups(groups)

    def read_group(self, group: int, holder: str) -> None:
        """Read one group, for as long as the tick lasts.

        Args:
            group: number of the group.
            holder: unique id of the invocation.

        Raises:
            MinutesUnread: some minutes could not be read or served. The progress of the other minutes was stored. The
                error makes Lambda count a failure, because late tasks would otherwise go unnoticed.
        """
        self._read_group(group, holder, self.shards.announced())

    def _read_group(self, group: int, holder: str, history: ShardHistory) -> None:
        shards = shards_in(group, history.number)
        if not shards:
            # The group has no shards yet. Minutes in which tasks may still be placed must not count as read.
            return
        now = self.runtime.now()
        first = first_cursors(min(history.since(group), now) - MAX_CLOCK_DIFFERENCE)
        try:
            taken = self.stores.cursors.take(group, holder, now, now + GROUP_HOLD, first)
        except ClockWrong as error:
            # If the clock is ahead, minutes would count as read while tasks are still placed in them.
            self.runtime.telemetry.count("clock_wrong")
            self.runtime.telemetry.note("nothing was read", group=group, error=str(error))
            return
        if taken is None:
            self.runtime.telemetry.count("shard_groups_held")
            return
        # Minutes are read ahead of time, so the last minute read shows when the last pass was.
        last_pass = start_of(taken.floors[DISPATCH]) - self.look_ahead
        self.runtime.telemetry.measure("tick_age", max(0, now - last_pass))
        reader = GroupReader(
            tasks=self.stores.tasks,
            runtime=self.runtime,
            group=group,
            shards=shards,
            cursors=taken.limited(furthest(now, self.look_ahead)),
            horizons=horizons(now, self.look_ahead),
            readings=self._readings(),
        )
        if self._read_on(reader, now):
            self.early_scan.run(shards, reader.before)
            if (lag := now - start_of(reader.cursors.floors[DISPATCH])) > 0:
                self.runtime.telemetry.measure("cursor_lag", lag)
        if reader.failures:
            raise MinutesUnread(group, len(reader.failures), reader.failures[0])
        if group == 0:
            # The external monitor is notified last, when due tasks are on their queues and the progress is stored.
            self.heartbeat.send(holder)

    def _readings(self) -> list[FirstReading | RecoveryScan]:
        messages = self.due_messages
        scans = [
            RecoveryScan(
                self.stores.tasks,
                self.queues,
                messages,
                self.runtime,
                is_first=scan == FIRST_SCAN,
                is_last=scan == LAST_SCAN,
            )
            for scan in range(1, len(RECOVERY_SCAN_DELAYS) + 1)
        ]
        return [FirstReading(messages, self.runtime.telemetry), *scans]

    def _read_on(self, reader: GroupReader, now: Millis) -> bool:
        """Read until the time is up, storing progress repeatedly; returns whether the invocation kept the group."""
        saved_at = now
        for _ in reader.steps(now + TICK_BUDGET):
            if self.runtime.now() >= saved_at + CURSOR_SAVE_INTERVAL:
                saved_at = self.runtime.now()
                if not self._keep(reader, saved_at):
                    return False
        return self._save(reader, 0)

    def _keep(self, reader: GroupReader, now: Millis) -> bool:
        """Store the progress and renew the hold; if the table does not answer, the next call stores the progress."""
        try:
            return self._save(reader, now + GROUP_HOLD)
        except Unavailable as error:
            self.runtime.telemetry.note("cursors could not be saved", group=reader.group, error=str(error))
            return True

    def _save(self, reader: GroupReader, until: Millis) -> bool:
        """Store the progress, whoever holds the group; returns whether this invocation still holds the group."""
        for _ in range(_SAVES):
            if self.stores.cursors.advance(reader.group, reader.cursors, until):
                return True
            stored = self.stores.cursors.join(reader.group, reader.cursors)
            if stored is None:
                self.runtime.telemetry.count("shard_groups_taken_over")
                return False
            reader.cursors = stored
        return False


@frozen
class RecoveryScan:
    """Resends messages for overdue unclaimed tasks, expired leases and unfinished outcomes.

    A queue with a long backlog is skipped, so that the backlog does not grow because of the scan; other queues are
    served. A task that the first scan finds open, or that any scan resends, gets a timer by which the first scan finds
    the task once more. So a lost task is found soon after its lease ends, regardless of which attempt was lost and
    when.

    Attributes:
        is_first: whether this is the first scan of a minute.
        is_last: whether this is the last scan of a minute, which sets timers on the next day for tasks that are still
            open.
    """

    tasks: TaskStore
    queues: WorkQueues
    due_messages: DueMessages
    runtime: Runtime
    is_first: bool
    is_last: bool

    def serve(self, minute: int, items: Sequence[MinuteItem], wants: Callable[[str], bool]) -> Served:
        """Resend messages for tasks on the wanted queues that were left behind.

        Raises:
            Unavailable: the table did not answer; no task counts as served.
        """
        del minute
        refused = set(self.due_messages.follow_timers(items, wants))
        now = self.runtime.now()
        entries = _entries(self.tasks, items)
        watched = _current(items, entries)
        overdue = [each for each in entries if is_left_behind(each, now) or is_open_past_due(each, now)]
        # Tasks that wait for other tasks are checked again, but do not count as late or lost.
        due = [each.next_at for each in overdue if not each.waits_for_tasks]
        if due and (age := now - min(due)) > 0:
            self.runtime.telemetry.measure("oldest_due", age)
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
        self.runtime.telemetry.count("timers_recovered", sum(not each.waits_for_tasks for each in left))
        sent = self.due_messages.send([each.message(min(each.next_at, now)) for each in left])
        return Served(sent.sent, sent.refused | refused)

    def _long_queues(self, left: Sequence[Entry]) -> set[str]:
        """The queues whose backlog is so long that it probably contains the messages of the tasks left behind."""
        refused = _longer_queues(self.queues, left, lambda _: RECOVERY_SCAN_BACKLOG, self.runtime.telemetry)
        if refused:
            self.runtime.telemetry.count("recovery_scans_waiting", len(refused))
        return refused

    def _rescan(self, entry: Entry) -> None:
        timer = rescan_timer(entry, self.runtime.now())
        if timer is not None:
            self.tasks.add_timer(timer)

    def _set_timer(self, entry: Entry) -> None:
        self.tasks.add_timer(entry.timer(self.runtime.now() + DAY))


@frozen
class EarlyScan:
    """Resends messages for tasks that should have started seconds ago, or whose lease ended seconds ago.

    A queue with a backlog is skipped.

    No progress is stored. Tasks that are missed because the table or a queue does not respond, or because too many
    tasks are due, are found by the recovery scans.
    """

    tasks: TaskStore
    queues: WorkQueues
    due_messages: DueMessages
    runtime: Runtime

    def run(self, shards: Sequence[int], before: Cursors) -> None:
        """Resend messages for lost tasks of the last minute.

        Args:
            shards: shards of the group.
            before: cursors at the start of the tick; tasks that this tick has just sent cannot have started yet.
        """
        soonest, latest = EARLY_SCAN_AGES
        now = self.runtime.now()
        try:
            entries = _entries(self.tasks, self._items(shards, now))
        except Unavailable as error:
            self.runtime.telemetry.note("the last minute could not be read", error=str(error))
            return
        overdue = [
            each
            for each in entries
            if is_left_behind(each, now)
            and not each.waits_for_tasks
            and soonest <= now - each.next_at <= latest
            and before.progress(DISPATCH, queue_of(each)).is_done(minute_of(each.next_at))
            and not self._is_delayed(each)
        ]
        long = _longer_queues(self.queues, overdue, _usual_length, self.runtime.telemetry)
        left = [each for each in overdue if queue_of(each) not in long]
        self.runtime.telemetry.count("timers_recovered", len(left))
        self.due_messages.send([each.message(each.next_at) for each in left])

    def _items(self, shards: Sequence[int], now: Millis) -> list[MinuteItem]:
        """The records and timers that may be due in the window; other timers are left out to save reads of tasks."""
        soonest, latest = EARLY_SCAN_AGES
        minutes = range(minute_of(now - latest), minute_of(now - soonest) + 1)
        places = [(minute, shard) for minute in minutes for shard in shards]
        items = [item for found in self.runtime.executor.map(self._pages, places) for item in found]
        return [item for item in items if not isinstance(item, Timer) or soonest <= now - item.at <= latest]

    def _pages(self, place: tuple[int, int]) -> list[MinuteItem]:
        minute, shard = place
        found: list[MinuteItem] = []
        after = ""
        for _ in range(EARLY_SCAN_PAGES):
            page = self.tasks.read_page(minute, shard, after, consistent=False)
            found += [item for _key, item in page.items]
            if page.last is None:
                break
            after = page.last
        return found

    def _is_delayed(self, entry: Entry) -> bool:
        """Whether a task's message may be under way, because the owner's quota delays it beyond the due time."""
        pace = self.due_messages.pace
        return pace is not None and not entry.pull_queue and pace.is_limited(entry.owner)


def _entries(tasks: TaskStore, items: Sequence[MinuteItem]) -> list[Entry]:
    """The entries among the items, and entries for the tasks of timers among the items."""
    entries = {item.task_id: item for item in items if isinstance(item, Entry)}
    timed = {item.task_id for item in items if isinstance(item, Timer)} - entries.keys()
    if not timed:
        return list(entries.values())
    return [*entries.values(), *(Entry.of(task) for task in tasks.read_many(sorted(timed)).values())]


def _usual_length(entry: Entry) -> int:
    """How many messages may wait on a task's queue without counting as a backlog."""
    # On a pull queue, a task may wait for a worker for any length of time.
    return 0 if entry.pull_queue else EARLY_SCAN_BACKLOG


def _longer_queues(
    queues: WorkQueues, entries: Sequence[Entry], most: Callable[[Entry], int], telemetry: Telemetry
) -> set[str]:
    """The queues of entries that have more waiting messages than `most` allows, or whose length cannot be read."""
    examples = {queue_of(each): each for each in entries}
    found = set[str]()
    for queue, each in sorted(examples.items()):
        try:
            if queues.depth(each.priority, each.pull_queue).waiting > most(each):
                found.add(queue)
        except Unavailable as error:
            telemetry.note("a queue's length could not be read", queue=queue, error=str(error))
            found.add(queue)
    return found


def _current(items: Sequence[MinuteItem], entries: Sequence[Entry]) -> frozenset[TaskId]:
    """Tasks found by their records, or by timers of their current generations; other timers are stale."""
    timers = {(item.task_id, item.generation) for item in items if isinstance(item, Timer)}
    records = {item.task_id for item in items if isinstance(item, Entry)}
    return frozenset(
        each.task_id for each in entries if each.task_id in records or (each.task_id, each.generation) in timers
    )


@frozen
class DispatchStatusReader:
    """Reads the trigger's cursors and the depths of the queues; writes nothing.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads minutes, in milliseconds.
        pulled_types: types that have their own queue.
    """

    cursors: CursorStore
    queues: WorkQueues
    shards: Shards
    runtime: Runtime
    look_ahead: Millis
    pulled_types: Sequence[str]

    def read(self) -> DispatchStatus:
        """The trigger's progress, which covers all owners' tasks.

        Raises:
            Unavailable: the table or a queue did not answer.
        """
        shards = self.shards.announced().number
        groups = groups_of(shards)
        # Pull queues have no priorities, so any priority works.
        names = [*((each, "") for each in Priority), *((Priority.NORMAL, name) for name in self.pulled_types)]
        cursors = self.runtime.executor.map(self.cursors.read, groups)
        queues = self.runtime.executor.map(lambda each: self._queue(*each), names)
        return dispatch_status(cursors, shards, self.look_ahead, queues)

    def _queue(self, priority: Priority, pulled_type: str) -> WorkQueue:
        return WorkQueue(priority, self.queues.depth(priority, pulled_type), pulled_type or None)
