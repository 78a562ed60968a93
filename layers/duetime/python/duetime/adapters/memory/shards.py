"""How the number of shards has grown, in memory."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.dispatch.shards import ShardHistory

if TYPE_CHECKING:
    from duetime.domain.times import Millis


class MemoryShardStore:
    """`duetime.ports.dispatch.ShardStore` in memory."""

    def __init__(self) -> None:
        self._history = ShardHistory()
        self._lock = Lock()

    def read(self) -> ShardHistory:
        """Read every number that was announced."""
        with self._lock:
            return self._history

    def announce(self, shards: int, now: Millis) -> ShardHistory:
        """Make it known that there may be tasks in so many shards from now on."""
        with self._lock:
            self._history = self._history.grown(shards, now)
            return self._history
