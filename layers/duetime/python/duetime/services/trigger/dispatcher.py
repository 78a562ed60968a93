"""The trigger: reads minutes, puts due tasks on queues, and scans old minutes for what was left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch.cursors import DISPATCH, FIRST_SCAN, LAST_SCAN, first_cursors, furthest, horizons
from duetime.domain.dispatch.enqueue_plan import Timer
from duetime.domain.dispatch.minute_entries import Entry, at_first_reading, queue_of
from duetime.domain.dispatch.shard_history import groups_of, shards_in
from duetime.domain.errors import ClockWrong, MinutesUnread, Unavailable
from duetime.domain.operating_parameters import (
    CURSOR_SAVE_INTERVAL,
    GROUP_HOLD,
    MAX_CLOCK_DIFFERENCE,
    RECOVERY_SCAN_DELAYS,
    TICK_BUDGET,
)
from duetime.domain.times import Millis, start_of
from duetime.services.trigger.recovery import RecoveryScan
from duetime.services.trigger.shard_group_reader import GroupReader, Served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.dispatch.shard_history import ShardHistory
    from duetime.ports.queues import WorkQueues
    from duetime.ports.runtime import FanOut, Heartbeat, Runtime, Telemetry
    from duetime.ports.stores import Stores
    from duetime.ports.tasks import MinuteItem
    from duetime.services.shards import Shards
    from duetime.services.trigger.due_messages import DueMessages

_SAVES = 5
"""Attempts to store what was done while others store theirs."""


@dataclass(frozen=True, slots=True)
class FirstReading:
    """Sends what is due in a minute that is read for the first time."""

    due_messages: DueMessages
    telemetry: Telemetry

    def serve(self, minute: int, items: Sequence[MinuteItem], wants: Callable[[str], bool]) -> Served:
        """Send what is due, of those queues that are wanted."""
        tasks = [item for item in items if isinstance(item, Entry | Timer)]
        messages = [message for item in tasks if (message := at_first_reading(item, minute))]
        wanted = {queue: wants(queue) for queue in sorted({queue_of(message) for message in messages})}
        messages = [message for message in messages if wanted[queue_of(message)]]
        self.telemetry.count("dispatched", len(messages))
        sent = self.due_messages.send(messages)
        refused = self.due_messages.follow_timers(items, wants)
        return Served(sent.sent, sent.refused | refused)


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Reads the minutes of shard groups.

    A group's cursors move past a task only after its queue acknowledged the message, so a missed or broken tick is
    caught up by the next. Overlapping ticks are harmless: a group is held by one invocation at a time, and even two
    would only send duplicates, which claims reject. What each of them has done counts.

    Attributes:
        shards: how many shards a minute is split into, as announced by those who use them.
        look_ahead: how far ahead of the clock minutes are read, in milliseconds.
        due_messages: sends what is due.
        heartbeat: tells a monitor outside of each tick in which the first group was read without a failure.
    """

    stores: Stores
    queues: WorkQueues
    fan_out: FanOut
    runtime: Runtime
    shards: Shards
    look_ahead: Millis
    due_messages: DueMessages
    heartbeat: Heartbeat

    def tick(self, holder: str) -> None:
        """Have every group read: here if there is only one, else each by an invocation of its own.

        Raises:
            MinutesUnread: of the one group; see `read_group`.
        """
        history = self.shards.announced()
        groups = groups_of(history.number)
        if len(groups) == 1:
            self._read_group(groups[0], holder, history)
        else:
            self.fan_out.read_groups(groups)

    def read_group(self, group: int, holder: str) -> None:
        """Read all that is due to be read in one group, as far as the tick's budget goes.

        Args:
            group: number of the group.
            holder: who reads; unique to an invocation.

        Raises:
            MinutesUnread: some minutes could not be read or served. All else was done and stored: it is raised for
                Lambda to count an error, because nobody would notice otherwise that tasks become late.
        """
        self._read_group(group, holder, self.shards.announced())

    def _read_group(self, group: int, holder: str, history: ShardHistory) -> None:
        shards = shards_in(group, history.number)
        if not shards:
            # Minutes in which somebody may still place something must not be taken for read.
            return
        now = self.runtime.now()
        first = first_cursors(min(history.since(group), now) - MAX_CLOCK_DIFFERENCE)
        try:
            taken = self.stores.cursors.take(group, holder, now, now + GROUP_HOLD, first)
        except ClockWrong as error:
            # Read too early, minutes would be taken for read that others still place tasks in.
            self.runtime.telemetry.count("clock_wrong")
            self.runtime.telemetry.note("nothing was read", group=group, error=str(error))
            return
        if taken is None:
            self.runtime.telemetry.count("shard_groups_held")
            return
        # A minute is read ahead of its time: of the last pass it is known in which minute it was.
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
            self.runtime.telemetry.measure("cursor_lag", max(0, now - start_of(reader.cursors.floors[DISPATCH])))
        if reader.failures:
            raise MinutesUnread(group, len(reader.failures), reader.failures[0])
        if group == 0:
            # Last of all: what was due is on its queue, and what was read is stored.
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
        """Read until the time is up, and store again and again what was done; says whether the group was kept."""
        saved_at = now
        for _ in reader.steps(now + TICK_BUDGET):
            if self.runtime.now() >= saved_at + CURSOR_SAVE_INTERVAL:
                saved_at = self.runtime.now()
                if not self._keep(reader, saved_at):
                    return False
        return self._save(reader, 0)

    def _keep(self, reader: GroupReader, now: Millis) -> bool:
        """Store what was done so far and renew the hold; if the table does not answer, the next time will do."""
        try:
            return self._save(reader, now + GROUP_HOLD)
        except Unavailable as error:
            self.runtime.telemetry.note("cursors could not be saved", group=reader.group, error=str(error))
            return True

    def _save(self, reader: GroupReader, until: Millis) -> bool:
        """Store what was done, whoever holds the group by now; says whether it is still this invocation."""
        for _ in range(_SAVES):
            if self.stores.cursors.advance(reader.group, reader.cursors, until):
                return True
            stored = self.stores.cursors.join(reader.group, reader.cursors)
            if stored is None:
                self.runtime.telemetry.count("shard_groups_taken_over")
                return False
            reader.cursors = stored
        return False
