"""Limits how many API requests wait at the same time, because each waiting request occupies a concurrent execution."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import LongPollStore
    from duetime.services.quotas.at_once import WaitingRequests

_TRIES = 3
"""Number of random places tried; if half of all places are taken, seven of eight requests find a free place."""


@frozen
class LongPolls:
    """Assigns places to requests that wait.

    Attributes:
        most: number of places; 0 means no limit.
        of_owners: limits the waiting requests of each owner; `None` if there are no quotas.
    """

    store: LongPollStore
    runtime: Runtime
    most: int
    of_owners: WaitingRequests | None

    @contextmanager
    def place(self, owner: str, longest: Millis) -> Iterator[bool]:
        """Whether a request may wait while the context is open; a request without a place does not wait.

        Args:
            owner: owner of the request.
            longest: longest wait of the request, in milliseconds; a place that is not released becomes free after this
                time.

        Raises:
            QuotaExceeded: the owner already has as many waiting requests as its quota allows.
        """
        with (
            nullcontext() if self.of_owners is None else self.of_owners.place(owner, longest),
            self._any(longest) as it,
        ):
            yield it

    @contextmanager
    def _any(self, longest: Millis) -> Iterator[bool]:
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
