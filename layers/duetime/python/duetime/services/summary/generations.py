"""Which generation of counts is the present one, and when the next one begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import SUMMARY_KNOWN
from duetime.domain.summary.recount import Generation
from duetime.domain.times import MINUTE

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.summary import SummaryRecounts

_TRIES = 20
"""How often the generation is read again because somebody else has written it."""
_FIRST_CHANGES = MINUTE
"""A task that was created so long before the first changes that are read was not counted by its changes."""


class Generations:
    """Knows the generation of the counts for a minute, and begins the next one.

    Args:
        store: of the generations.
        runtime: the time.
        is_recounting: whether older tasks are recounted. If not, all tasks are counted by their changes only.
    """

    def __init__(self, store: SummaryRecounts, runtime: Runtime, *, is_recounting: bool) -> None:
        self._store = store
        self._runtime = runtime
        self._is_recounting = is_recounting
        self._known: tuple[Millis, Generation] | None = None

    def present(self, first_change: Millis) -> Generation:
        """The generation that changes are counted in.

        Args:
            first_change: when the earliest of them was made.
        """
        now = self._runtime.now()
        if self._known is None or now - self._known[0] >= SUMMARY_KNOWN:
            self._known = now, self._store.generation() or self._first(first_change)
        return self._known[1]

    def begin_next(self, why: str) -> Generation:
        """Begin a new generation, unless the present one has only just begun.

        Raises:
            Unavailable: too many concurrent writes.
        """
        for _ in range(_TRIES):
            now = self._runtime.now()
            stored = self._store.generation() or Generation(0, 0, now)
            if stored.since > now or not self._is_recounting:
                return stored
            if self._store.save(stored.next(now), self._runtime.nonce()):
                self._runtime.telemetry.note("the counts of tasks begin anew", reason=why)
                self._known = None
        raise Unavailable("the generation of the counts could not be stored: others write it all the time")

    def _first(self, first_change: Millis) -> Generation:
        """The first generation: it counts all tasks if there were none before the changes that are read."""
        now = self._runtime.now()
        fresh = Generation(0, 0, now)
        if self._is_recounting and not self._store.is_fresh(first_change - _FIRST_CHANGES):
            fresh = fresh.next(now)
        self._store.save(fresh, self._runtime.nonce())
        stored = self._store.generation()
        if stored is None:
            raise Unavailable("the generation of the counts was not stored")
        return stored
