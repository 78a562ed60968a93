"""Replicas of a global table, in which writes reach the other replica later, in any order, and the last writer wins."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from duetime.domain.times import DAY, SECOND, Millis
from duetime_testing.fakes.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.simulation.virtual_time import VirtualTime

    Stamp = tuple[Millis, int]
    Key = tuple[str, str]

DELAYS = (50, 200, 200, 800, 1_500, 3 * SECOND)
"""The delays of replicated writes. Items are replicated separately and in any order, usually within a second.

Source: DynamoDB Developer Guide, "How DynamoDB global tables work".
"""
LONGEST_DELAY = max(DELAYS)
_NEVER = (0, 0)
_ORDER = count()


class Link:
    """Replicates writes in one direction.

    Attributes:
        is_up: whether writes arrive.
        deliver: applies a write to the other replica.
    """

    def __init__(self, time: VirtualTime, random: Random, deliver: Callable[[Key, Item | None, Stamp], None]) -> None:
        self.is_up = True
        self.deliver = deliver
        self._time, self._random = time, random
        self._pending: list[tuple[Millis, int, Key, Item | None, Stamp]] = []
        self._strand = time.start_process(self._run)

    def send(self, key: Key, item: Item | None, stamp: Stamp) -> None:
        """Replicate a write later."""
        due = self._time.now() + self._random.choice(DELAYS)
        heapq.heappush(self._pending, (due, next(_ORDER), key, item, stamp))
        self._time.nudge(self._strand)

    def cut(self) -> None:
        """Stop the replication; writes are kept until `heal`."""
        self.is_up = False

    def heal(self) -> None:
        """Restart the replication, and deliver all kept writes in any order."""
        self.is_up = True
        now = self._time.now()
        self._pending = [(now + self._random.choice(DELAYS), *rest) for _, *rest in self._pending]  # type: ignore[misc]
        heapq.heapify(self._pending)
        self._time.nudge(self._strand)

    @property
    def is_empty(self) -> bool:
        """Whether every write has arrived."""
        return not self._pending

    def _run(self) -> None:
        while True:
            now = self._time.now()
            while self.is_up and self._pending and self._pending[0][0] <= now:
                _, _, key, item, stamp = heapq.heappop(self._pending)
                self.deliver(key, item, stamp)
            self._time.sleep_until(self._pending[0][0] if self.is_up and self._pending else now + DAY)


@dataclass
class Replica(Table):
    """A table whose writes are replicated, and in which the latest write to an item wins.

    Attributes:
        stamps: the time of each item's last write, in any Region.
        send: replicates a write.
    """

    stamps: dict[Key, Stamp] = field(default_factory=dict)
    send: Callable[[Key, Item | None, Stamp], None] = lambda _key, _item, _stamp: None

    def write(self, now: Millis, key: Key, new: Item | None) -> None:
        """Replace an item in this replica now, and in the other replica later."""
        super().write(now, key, new)
        stamp = self.stamps[key] = (now, next(_ORDER))
        self.send(key, new, stamp)

    def arrive(self, now: Millis, key: Key, new: Item | None, stamp: Stamp) -> bool:
        """Apply a write from the other replica unless a later write is known, and return whether it was applied."""
        if self.stamps.get(key, _NEVER) >= stamp:
            return False
        self.stamps[key] = stamp
        super().write(now, key, None if new is None else dict(new))
        return True
