"""The trigger: reads minutes, puts due tasks on queues, and patrols old minutes for what was left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch import (
    BulkTimer,
    Entry,
    Message,
    Precision,
    ScheduleWake,
    Wake,
    at_first_reading,
    delay_seconds,
    is_direct,
    is_left_behind,
    is_open_past_due,
)
from duetime.domain.errors import Unavailable
from duetime.domain.limits import CURSOR_SAVE_INTERVAL, GROUP_HOLD, PATROL_BACKLOG, PATROL_DELAYS, TICK_BUDGET
from duetime.domain.shards import DISPATCH, Cursors, first_cursors, groups_of, horizons, shards_in
from duetime.domain.task import Priority
from duetime.domain.times import DAY, Millis, start_of
from duetime.ports.queues import Outgoing
from duetime.services.placing import message_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.ports.queues import WorkQueues
    from duetime.ports.stores import CursorStore, TaskStore
    from duetime.ports.surroundings import Clock, Crew, FanOut, Telemetry
    from duetime.services.expanding import Expanding

_LAST_PATROL = len(PATROL_DELAYS)


@dataclass(frozen=True, slots=True)
class Dispatching:
    """Reads the minutes of shard groups.

    A group's cursor moves past a minute only after the queues acknowledged every message of it, so a missed or
    broken tick is caught up by the next. Overlapping ticks are harmless: a group is held by one invocation at a
    time, and even two would only send duplicates, which claims refuse.

    Attributes:
        shards: S, the number of shards a minute is split into.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        precision: how a wait is shared between the queue and the worker.
        expanding: makes the occurrences of schedules whose wakes are met.
        resume_bulk: sees to the bulk operations whose timers are met; says whether it could.
    """

    tasks: TaskStore
    cursors: CursorStore
    queues: WorkQueues
    fan_out: FanOut
    clock: Clock
    crew: Crew
    telemetry: Telemetry
    shards: int
    look_ahead: Millis
    precision: Precision
    expanding: Expanding
    resume_bulk: Callable[[Sequence[BulkTimer]], bool] = lambda _timers: True

    def tick(self, holder: str) -> None:
        """Have every group read: here if there is only one, else each by an invocation of its own."""
        groups = groups_of(self.shards)
        if len(groups) == 1:
            self.read_group(groups[0], holder)
        else:
            self.fan_out.read_groups(groups)

    def read_group(self, group: int, holder: str) -> None:
        """Read all that is due to be read in one group, as far as the tick's budget goes.

        Args:
            group: number of the group.
            holder: who reads; unique to an invocation.
        """
        now = self.clock.now()
        cursors = self.cursors.take(group, holder, now, now + GROUP_HOLD, first_cursors(now))
        if cursors is None:
            self.telemetry.count("groups_held_elsewhere")
            return
        end = self._read_on(group, cursors, now)
        if end is not None and self.cursors.advance(group, end, now):
            self.telemetry.measure("cursor_lag", max(0, now - start_of(end.minutes[DISPATCH])))

    def _read_on(self, group: int, cursors: Cursors, now: Millis) -> Cursors | None:
        """Read minute after minute; the cursors to save in the end, `None` if the group was lost to another."""
        saved_at = now
        for reading, horizon in enumerate(horizons(now, self.look_ahead)):
            for minute in range(cursors.minutes[reading] + 1, horizon + 1):
                if self.clock.now() >= now + TICK_BUDGET:
                    return cursors
                if not self._is_done(group, reading, minute):
                    break
                cursors = cursors.moved(reading, minute)
                if self.clock.now() >= saved_at + CURSOR_SAVE_INTERVAL:
                    saved_at = self.clock.now()
                    if not self.cursors.advance(group, cursors, saved_at + GROUP_HOLD):
                        return None
        return cursors

    def _is_done(self, group: int, reading: int, minute: int) -> bool:
        """Read one minute of a group; says whether it is wholly done. If not, the next tick reads it again."""
        try:
            return self._dispatch(group, minute) if reading == DISPATCH else self._patrol(group, reading, minute)
        except Unavailable as error:
            self.telemetry.note("a minute could not be read", group=group, minute=minute, error=str(error))
            return False

    def _dispatch(self, group: int, minute: int) -> bool:
        items, wakes = self._items(group, minute, consistent=True)
        messages = [message for item in items if (message := at_first_reading(item, minute))]
        self.telemetry.count("dispatched", len(messages))
        is_sent = self._send(messages)
        return self._expand(wakes) and is_sent

    def _expand(self, met: Sequence[ScheduleWake | BulkTimer]) -> bool:
        """Make what schedules have to place exist, and send what of it is due; says whether it all exists.

        What the queue does not take is found by the first patrol, as with every new task.
        """
        timers = [item for item in met if isinstance(item, BulkTimer)]
        is_resumed = self.resume_bulk(timers) if timers else True
        wakes = [item for item in met if isinstance(item, ScheduleWake)]
        if not wakes:
            return is_resumed
        expanded = self.expanding.expand(wakes)
        now = self.clock.now()
        self.telemetry.count("occurrences", len(expanded.tasks))
        self._send([message_for(task) for task in expanded.tasks if is_direct(task.next_at, now, self.look_ahead)])
        return expanded.done and is_resumed

    def _patrol(self, group: int, reading: int, minute: int) -> bool:
        items, wakes = self._items(group, minute, consistent=False)
        if not self._expand(wakes):
            return False
        entries = self._entries(items)
        now = self.clock.now()
        left = self._without_long_lanes([entry for entry in entries if is_left_behind(entry, now)])
        if any(
            self.queues.backlog(priority) > PATROL_BACKLOG
            for priority in {entry.priority for entry in left if not entry.lane}
        ):
            self.telemetry.count("patrols_waiting")
            return False
        if reading == _LAST_PATROL:
            self.crew.map(self._wake_tomorrow, [entry for entry in entries if is_open_past_due(entry, now)])
        self.telemetry.count("left_behind", len(left))
        return self._send([entry.message(min(entry.next_at, now)) for entry in left])

    def _without_long_lanes(self, left: list[Entry]) -> list[Entry]:
        """Leave out what waits for pull workers that do not keep up: it must not hold up the patrol of all others.

        Its messages are most likely in that long queue; the last patrol's wakes find those that are not.
        """
        lanes = {entry.lane for entry in left if entry.lane}
        long = {lane for lane in lanes if self.queues.backlog(Priority.NORMAL, lane) > PATROL_BACKLOG}
        return [entry for entry in left if entry.lane not in long]

    def _wake_tomorrow(self, entry: Entry) -> None:
        at = self.clock.now() + DAY
        self.tasks.add_wake(Wake(entry.task_id, entry.turn, at, entry.priority, entry.owner, lane=entry.lane))

    def _items(
        self, group: int, minute: int, *, consistent: bool
    ) -> tuple[list[Entry | Wake], list[ScheduleWake | BulkTimer]]:
        """What lies in a minute: of tasks; and of schedules and bulk operations."""

        def read(shard: int) -> list[Entry | Wake | ScheduleWake | BulkTimer]:
            return list(self.tasks.read_minute(minute, shard, consistent=consistent))

        found = [item for items in self.crew.map(read, shards_in(group, self.shards)) for item in items]
        items = [item for item in found if isinstance(item, Entry | Wake)]
        return items, [item for item in found if isinstance(item, ScheduleWake | BulkTimer)]

    def _entries(self, items: Sequence[Entry | Wake]) -> list[Entry]:
        """The entries among the items, and those of the records that the wakes stand for."""
        entries = {item.task_id: item for item in items if isinstance(item, Entry)}
        woken = {item.task_id for item in items if isinstance(item, Wake)} - entries.keys()
        return [*entries.values(), *(Entry.of(task) for task in self.tasks.read_many(sorted(woken)).values())]

    def _send(self, messages: Sequence[Message]) -> bool:
        now = self.clock.now()
        unsent = self.queues.send(
            [Outgoing(message, delay_seconds(message.due, now, self.precision)) for message in messages]
        )
        if unsent:
            self.telemetry.count("unsent", len(unsent))
        return not unsent
