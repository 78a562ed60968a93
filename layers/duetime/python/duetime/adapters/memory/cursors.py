"""The trigger's cursors, in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.limits import LONGEST_HOLD

if TYPE_CHECKING:
    from duetime.domain.dispatch.cursors import Cursors
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class _Hold:
    cursors: Cursors
    until: Millis


class MemoryCursorStore:
    """`duetime.ports.dispatch.CursorStore` in memory."""

    def __init__(self) -> None:
        self._holds: dict[int, _Hold] = {}
        self._lock = Lock()

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, if nobody else holds it."""
        with self._lock:
            hold = self._holds.get(group)
            if hold is not None and now < hold.until <= now + LONGEST_HOLD and hold.cursors.holder != holder:
                return None
            before = first if hold is None else hold.cursors
            cursors = replace(before, epoch=before.epoch + 1, holder=holder)
            self._holds[group] = _Hold(cursors, until)
            return cursors

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Store how far a group has been read, and keep the hold until `until` (0: let it go)."""
        with self._lock:
            hold = self._holds.get(group)
            if hold is None or hold.cursors.epoch != cursors.epoch:
                return False
            self._holds[group] = _Hold(cursors, until)
            return True

    def join(self, group: int, cursors: Cursors) -> Cursors | None:
        """Add what was done to what is stored by now, whoever holds the group; the hold stays as it is."""
        with self._lock:
            hold = self._holds.get(group)
            if hold is None:
                return None
            joined = cursors.joined(hold.cursors)
            joined = replace(joined, epoch=joined.epoch + 1)
            self._holds[group] = replace(hold, cursors=joined)
            return joined if joined.holder == cursors.holder else None
