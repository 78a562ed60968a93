"""The number of shards for new ids; a number is announced to the trigger before its first use."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import SHARDS_KNOWN

if TYPE_CHECKING:
    from duetime.domain.dispatch.cursors import ShardHistory
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import ShardStore


@dataclass(slots=True)
class Shards:
    """The number of shards, as known to one process.

    Attributes:
        configured: S in this process's settings.
    """

    store: ShardStore
    clock: Clock
    configured: int
    _history: ShardHistory | None = field(default=None, init=False)
    _read_at: Millis = field(default=0, init=False)

    def prepare(self) -> None:
        """Read the number once before parallel calls need it; each of them reports a failure by itself."""
        if self._history is None:
            with suppress(Unavailable):
                self.announced()

    def count(self) -> int:
        """The number of shards for new ids; it has been announced.

        Raises:
            Unavailable: the store did not answer, and it is not known whether the number was announced.
        """
        if self._history is None:
            self.announced()
        return self.configured

    def at(self, instant: Millis) -> int:
        """The number of shards at a given instant, the same for every caller at any time.

        Raises:
            Unavailable: the store did not answer.
        """
        now = self.clock.now()
        history = self._history
        if history is None or not self._read_at <= now < self._read_at + SHARDS_KNOWN:
            history = self.announced()
        return history.at(instant)

    def announced(self) -> ShardHistory:
        """All announced numbers, including this process's own; read again each time.

        Raises:
            Unavailable: the store did not answer.
        """
        now = self.clock.now()
        history = self.store.read()
        if history.number < self.configured:
            history = self.store.announce(self.configured, now)
        self._history, self._read_at = history, now
        return history
