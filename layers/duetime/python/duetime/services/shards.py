"""How many shards ids are spread over; the trigger is told before the first of them is used."""

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
    """The number of shards, as one process knows it.

    Attributes:
        configured: S as the settings of this process have it.
    """

    store: ShardStore
    clock: Clock
    configured: int
    _history: ShardHistory | None = field(default=None, init=False)
    _read_at: Millis = field(default=0, init=False)

    def prepare(self) -> None:
        """Ask once before many ask at once; what goes wrong here is told to each of them."""
        if self._history is None:
            with suppress(Unavailable):
                self.announced()

    def count(self) -> int:
        """How many shards to spread new ids over; announced by now.

        Raises:
            Unavailable: the store did not answer, and it is not known whether the number was announced.
        """
        if self._history is None:
            self.announced()
        return self.configured

    def at(self, instant: Millis) -> int:
        """How many shards a thing of that instant is spread over, whoever asks, and when.

        Raises:
            Unavailable: the store did not answer.
        """
        now = self.clock.now()
        history = self._history
        if history is None or not self._read_at <= now < self._read_at + SHARDS_KNOWN:
            history = self.announced()
        return history.at(instant)

    def announced(self) -> ShardHistory:
        """Every number that was announced, this process's own included; read again.

        Raises:
            Unavailable: the store did not answer.
        """
        now = self.clock.now()
        history = self.store.read()
        if history.number < self.configured:
            history = self.store.announce(self.configured, now)
        self._history, self._read_at = history, now
        return history
