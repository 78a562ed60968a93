"""The places in which requests of the API wait, in memory."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.times import Millis


class MemoryLongPollStore:
    """`duetime.ports.long_polls.LongPollStore` in memory."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[str, Millis]] = {}
        self._lock = Lock()

    def take(self, place: int, nonce: str, now: Millis, until: Millis) -> bool:
        """Take a place, unless another holds it."""
        with self._lock:
            holder, held_until = self._held.get(place, (nonce, now))
            if holder != nonce and held_until >= now:
                return False
            self._held[place] = (nonce, until)
            return True

    def give_back(self, place: int, nonce: str) -> None:
        """Let others have a place."""
        with self._lock:
            if self._held.get(place, ("", 0))[0] == nonce:
                del self._held[place]
