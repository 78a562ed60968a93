"""Skips invocations of the trigger (ticks) that would only read empty minutes.

Three days have 4,320 minutes, and most tests have tasks in only a few minutes. A tick that reads no items only advances
the cursors, so the cursors are set accordingly before the next tick that is not skipped.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore
from duetime.domain.dispatch.cursors import DISPATCH, Progress, first_cursors, horizons
from duetime.domain.operating_parameters import RECOVERY_SCAN_DELAYS
from duetime.domain.times import DAY, MINUTE, Millis, from_datetime, minute_of, start_of
from duetime_testing.fakes.telemetry import FakeTelemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_testing.simulation.account import Account

_GROUP = 0
_HOLDER = "idle-ticks"
_DELAYS = (0, *RECOVERY_SCAN_DELAYS)


@dataclass
class IdleTicks:
    """Decides when the trigger is invoked.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
        position: the last minute that each scan has reached while ticks are skipped; `None` if the stored cursors are
            current.
        minutes: the minutes that have or had items, in order.
    """

    account: Account
    look_ahead: Millis
    position: Sequence[int] | None = None
    minutes: list[int] = field(default_factory=list)
    _partitions: set[str] = field(default_factory=set)

    def note(self, partition: str) -> bool:
        """Record that a partition has items; return whether it is a minute's partition that was empty before."""
        if partition in self._partitions or not partition[0].isdigit():
            return False
        self._partitions.add(partition)
        label = partition.partition("#")[0]
        insort(self.minutes, minute_of(from_datetime(datetime.fromisoformat(f"{label}:00+00:00"))))
        return True

    def is_needed(self) -> bool:
        """Whether a tick now would read any item."""
        now = self.account.time.now()
        wanted = horizons(now, self.look_ahead)
        position = self.position or self._stored()
        if position is None:
            return True
        found = [self._next(read, upto) for read, upto in zip(position, wanted, strict=True)]
        # The minutes before the first minute with items are empty.
        empty = [upto if first is None else first - 1 for first, upto in zip(found, wanted, strict=True)]
        reached = [max(pair) for pair in zip(position, empty, strict=True)]
        if all(first is None for first in found):
            self.position = reached
            return False
        if reached != list(position) or self.position is not None:
            self._store(reached, now)
        self.position = None
        return True

    def next_at(self) -> Millis:
        """The earliest time at which a tick could be needed, according to the known items."""
        now = self.account.time.now()
        soonest = (now // MINUTE + 1) * MINUTE
        if self.position is None:
            return soonest
        found = [self._next(read) for read in self.position]
        times = [self._tick_of(reading, minute) for reading, minute in enumerate(found) if minute is not None]
        return max(soonest, min(times, default=soonest + DAY))

    def _next(self, read: int, upto: int | None = None) -> int | None:
        """The first minute with items after minute `read` and not after minute `upto`; `None` if there is none."""
        index = bisect_right(self.minutes, read)
        if index == len(self.minutes) or (upto is not None and self.minutes[index] > upto):
            return None
        return self.minutes[index]

    def _tick_of(self, reading: int, minute: int) -> Millis:
        """The time of the first tick in which a scan reaches a minute; this function is the inverse of `horizons`."""
        if reading == DISPATCH:
            return -((self.look_ahead - start_of(minute)) // MINUTE) * MINUTE
        return -((-start_of(minute + 1) - _DELAYS[reading]) // MINUTE) * MINUTE

    def _cursors(self) -> DynamoCursorStore:
        return DynamoCursorStore(self.account.dynamodb, "tasks", FakeTelemetry())  # type: ignore[arg-type] # it stands in for a client

    def _stored(self) -> Sequence[int] | None:
        cursors = self._cursors().read(_GROUP)
        is_plain = cursors is not None and not cursors.lagging and not any(each.open for each in cursors.readings)
        return [each.upto for each in cursors.readings] if cursors is not None and is_plain else None

    def _store(self, position: Sequence[int], now: Millis) -> None:
        store = self._cursors()
        taken = store.take(_GROUP, _HOLDER, now, now, first_cursors(now))
        if taken is not None:
            store.advance(_GROUP, replace(taken, readings=tuple(map(Progress, position))), 0)
