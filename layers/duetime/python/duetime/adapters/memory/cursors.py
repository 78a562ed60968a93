"""The trigger's cursors, in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.shards import Cursors
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class _Hold:
    cursors: Cursors
    holder: str
    until: Millis


class MemoryCursorStore:
    """`duetime.ports.stores.CursorStore` in memory."""

    def __init__(self) -> None:
        self._holds: dict[int, _Hold] = {}
        self._lock = Lock()

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, if nobody else holds it."""
        with self._lock:
            hold = self._holds.get(group)
            if hold is not None and hold.until > now and hold.holder != holder:
                return None
            before = first if hold is None else hold.cursors
            cursors = replace(before, epoch=before.epoch + 1)
            self._holds[group] = _Hold(cursors, holder, until)
            return cursors

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Move a group's cursors forward and keep the hold until `until` (in the past: let it go)."""
        with self._lock:
            hold = self._holds.get(group)
            if hold is None or hold.cursors.epoch != cursors.epoch:
                return False
            self._holds[group] = replace(hold, cursors=cursors, until=until)
            return True
