"""Which invocations of the trigger may be left out: those that would read empty minutes only.

Three days have 4,320 minutes, and most tests have tasks in a few of them. A tick that reads nothing changes nothing but
the cursors, so the cursors are set to where they would be before the next tick that is not left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.cursors import DynamoCursorStore
from duetime.domain.dispatch.cursors import Progress, first_cursors, horizons
from duetime.domain.ids import partition_of
from duetime_testing.fakes.telemetry import FakeTelemetry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis
    from duetime_testing.simulation.account import Account

_partition = lru_cache(maxsize=8_192)(partition_of)
"""Each minute is looked up once for each reading, by every test anew."""
_GROUP = 0
_HOLDER = "idle-ticks"


@dataclass
class IdleTicks:
    """Decides for each minute whether the trigger is invoked.

    Attributes:
        look_ahead: how far ahead of the clock the trigger reads.
        position: the last minute of each reading while ticks are left out; `None` if the stored cursors say so.
    """

    account: Account
    look_ahead: Millis
    position: Sequence[int] | None = None

    def is_needed(self) -> bool:
        """Whether the tick of this moment would read any item."""
        now = self.account.time.now()
        wanted = horizons(now, self.look_ahead)
        position = self.position or self._stored()
        if position is None:
            return True
        if self._has_items(position, wanted):
            if self.position is not None:
                self._store(self.position, now)
                self.position = None
            return True
        self.position = [max(pair) for pair in zip(position, wanted, strict=True)]
        return False

    def _cursors(self) -> DynamoCursorStore:
        return DynamoCursorStore(self.account.dynamodb, "tasks", FakeTelemetry())  # type: ignore[arg-type] # a client

    def _stored(self) -> Sequence[int] | None:
        cursors = self._cursors().read(_GROUP)
        is_plain = cursors is not None and not cursors.lagging and not any(each.open for each in cursors.readings)
        return [each.upto for each in cursors.readings] if cursors is not None and is_plain else None

    def _store(self, position: Sequence[int], now: Millis) -> None:
        store = self._cursors()
        taken = store.take(_GROUP, _HOLDER, now, now, first_cursors(now))
        if taken is not None:
            store.advance(_GROUP, replace(taken, readings=tuple(map(Progress, position))), 0)

    def _has_items(self, position: Sequence[int], wanted: Sequence[int]) -> bool:
        partitions = self.account.dynamodb.tables["tasks"].partitions
        return any(
            partitions.get(_partition(minute, shard))
            for read, upto in zip(position, wanted, strict=True)
            for minute in range(read + 1, upto + 1)
            for shard in range(self.account.shards)
        )
