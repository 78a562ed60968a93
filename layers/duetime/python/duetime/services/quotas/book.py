"""Caches the owners' quotas in one process, and delays the messages of owners with a quota."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import RecordUnreadable, Unavailable
from duetime.domain.operating_parameters import MAX_DELAY, QUOTA_DISPATCHES_PER_ATTEMPT, QUOTAS_LIFE
from duetime.domain.quotas import StoredQuotas
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.quotas import Quotas
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Runtime
    from duetime.ports.stores import QuotaStore


@dataclass(slots=True)
class QuotaBook:
    """Caches the quotas of all owners in one process; reads them at most once every `QUOTAS_LIFE`.

    If a read fails, the last known quotas stay in effect, or the defaults if no quotas are known.
    """

    store: QuotaStore
    runtime: Runtime
    defaults: Quotas
    _known: StoredQuotas | None = field(default=None, init=False)
    _asked_at: Millis = field(default=0, init=False)

    def of(self, owner: str) -> Quotas:
        """The quotas of an owner, at most `QUOTAS_LIFE` old if the store responds. This method never raises."""
        now = self.runtime.now()
        if self._known is None or now - self._asked_at >= QUOTAS_LIFE:
            try:
                self._known = self.store.read(consistent=False)
            except (Unavailable, RecordUnreadable) as error:
                self.runtime.telemetry.note("the quotas could not be read", error=str(error))
                self._known = self._known or StoredQuotas()
            # The time is set after the read, so that other threads also read, instead of using quotas that may be old.
            self._asked_at = now
        return self._known.limits(owner, self.defaults)


_LONGEST = MAX_DELAY // SECOND


@dataclass(slots=True)
class _Sent:
    """The messages of one owner.

    Attributes:
        by_second: number of messages by the second in which they arrive.
        next_free: for a full second, a later second; all seconds between the two are full.
    """

    by_second: dict[int, int] = field(default_factory=dict)
    next_free: dict[int, int] = field(default_factory=dict)

    def place(self, second: int, rate: int) -> int:
        """The first second, from the given one on, in which fewer than `rate` messages arrive."""
        found = second
        while self.by_second.get(found, 0) >= rate:
            found = max(found + 1, self.next_free.get(found, 0))
        self.next_free[second] = found
        self.by_second[found] = self.by_second.get(found, 0) + 1
        return found

    def forget(self, before: int) -> None:
        """Forget past seconds."""
        self.by_second = {second: number for second, number in self.by_second.items() if second >= before}
        self.next_free = {second: free for second, free in self.next_free.items() if second >= before}


@dataclass(slots=True)
class DispatchPace:
    """Delays messages of owners with a quota of attempts, so that other owners' tasks do not wait behind them.

    Otherwise, workers would receive all of an owner's messages at once, and put back most of the tasks.
    """

    book: QuotaBook
    clock: Clock
    _owners: dict[str, _Sent] = field(default_factory=dict, init=False)
    _forgotten_at: Millis = field(default=0, init=False)

    def is_limited(self, owner: str) -> bool:
        """Whether messages of an owner may be delayed."""
        return self.book.of(owner).concurrent_attempts is not None

    def delay_seconds(self, owner: str, delay_seconds: int) -> int:
        """The delay for a message that would otherwise have the given delay; both are 0 to 900 seconds."""
        limit = self.book.of(owner).concurrent_attempts
        if limit is None:
            return delay_seconds
        now = self.clock.now()
        if now - self._forgotten_at >= SECOND:
            self._forgotten_at = now
            for each in self._owners.values():
                each.forget(now // SECOND)
            for name in [name for name, each in self._owners.items() if not each.by_second]:
                del self._owners[name]
        sent = self._owners.setdefault(owner, _Sent())
        second = sent.place(now // SECOND + delay_seconds, limit * QUOTA_DISPATCHES_PER_ATTEMPT)
        return min(second - now // SECOND, _LONGEST)
