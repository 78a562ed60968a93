"""How many requests of the API wait at once: each keeps one of its concurrent executions from all others."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import LongPollStore

_TRIES = 3
"""Places that are tried, at random: with half of them taken, seven of eight requests find one."""


@dataclass(frozen=True, slots=True)
class LongPolls:
    """Gives places to requests that want to wait.

    Attributes:
        most: places that there are; 0 lets everybody wait.
    """

    store: LongPollStore
    runtime: Runtime
    most: int

    @contextmanager
    def place(self, longest: Millis) -> Iterator[bool]:
        """Whether a request may wait while this lasts. Never raises: who has no place does not wait.

        Args:
            longest: how long it wants to wait at most; a place that is not released is free after that.
        """
        if not self.most:
            yield True
            return
        nonce = self.runtime.nonce()
        place = self._taken(nonce, longest)
        if place is None:
            self.runtime.telemetry.count("long_polls_refused")
            yield False
            return
        try:
            yield True
        finally:
            with suppress(Unavailable):
                self.store.give_back(place, nonce)

    def _taken(self, nonce: str, longest: Millis) -> int | None:
        first = self.runtime.random_source.below(self.most)
        step = 1 + self.runtime.random_source.below(self.most)
        places = dict.fromkeys((first + step * number) % self.most for number in range(_TRIES))
        with suppress(Unavailable):
            for place in places:
                now = self.runtime.now()
                if self.store.take(place, nonce, now, now + longest + MAX_CLOCK_DIFFERENCE):
                    return place
        return None
