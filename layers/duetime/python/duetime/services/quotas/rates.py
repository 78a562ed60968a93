"""Counts the owners' usage per second, and their open tasks.

Usage is counted in portions. Below half of the limit, a process counts locally, and reports to the store whenever it
has used up a portion. Its first portion begins at a random point. Therefore, most requests write nothing, and on
average the reports equal the usage, even if processes are short-lived. Above half of the limit, a process asks the
store for a portion before using it, so that many processes cannot exceed the limit together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import QuotaExceeded, Unavailable
from duetime.domain.operating_parameters import QUOTA_COUNT_WAIT, QUOTA_COUNTS_KEPT, QUOTA_USE_LIFE
from duetime.domain.quotas import OPEN_TASKS_PER_CREATE, Quota, WindowCounts, is_close, portion
from duetime.domain.tasks.states import TERMINAL
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.domain.quotas import Quotas
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import QuotaUseStore, ScheduleStore
    from duetime.services.quotas.at_once import RunningTopologies
    from duetime.services.quotas.book import QuotaBook
    from duetime.services.summary import SummaryReader


_MOST_OWNERS = 1_000
"""Number of owners whose usage a process caches."""


@dataclass(slots=True)
class _Use:
    """An owner's usage as known to one process.

    Attributes:
        read_at: when the counts were read.
        unreported: the process's unreported usage, by quota.
        granted: unused part of the portion that the store has granted, by quota.
    """

    counts: WindowCounts
    read_at: Millis
    unreported: dict[Quota, int] = field(default_factory=dict)
    granted: dict[Quota, int] = field(default_factory=dict)


@frozen
class RateMeter:
    """Counts the owners' usage per second. If the store fails, no request is limited."""

    store: QuotaUseStore
    runtime: Runtime
    _known: dict[str, _Use] = field(default_factory=dict, init=False)

    def counts(self, owner: str) -> WindowCounts:
        """An owner's usage, at most `QUOTA_USE_LIFE` old."""
        return self._use(owner).counts

    def check(self, owner: str, limits: Quotas, quotas: Sequence[Quota]) -> None:
        """Reject a request if a rate is used up.

        Raises:
            QuotaExceeded: a rate is used up.
        """
        for quota in quotas:
            limit = limits.limit(quota)
            if limit is not None and (wait := self.counts(owner).retry_after(quota, limit, self.runtime.now())):
                raise QuotaExceeded(quota.value, limit, wait)

    def count(self, owner: str, limits: Quotas, amounts: Mapping[Quota, int]) -> None:
        """Count a request's usage.

        Raises:
            QuotaExceeded: a rate is used up.
        """
        use, now = self._use(owner), self.runtime.now()
        for quota, amount in amounts.items():
            limit, counted = limits.limit(quota), _counted(limits, quota)
            if counted is None:
                continue
            if limit is not None and is_close(limit, use.counts.used(quota, now)):
                self._ask(owner, use, quota, limit, amount)
            else:
                self._report(owner, use, quota, portion(counted, close=False), amount)

    def _report(self, owner: str, use: _Use, quota: Quota, size: int, amount: int) -> None:
        """Count usage in this process, and report full portions to the store."""
        if quota not in use.unreported:
            use.unreported[quota] = self.runtime.random_source.below(size)
        due, use.unreported[quota] = divmod(use.unreported[quota] + amount, size)
        if due:
            self._add(owner, use, quota, due * size, None)

    def _ask(self, owner: str, use: _Use, quota: Quota, limit: int, amount: int) -> None:
        """Use the granted portion, or request another portion from the store.

        Raises:
            QuotaExceeded: the store grants no portion.
        """
        # The next local portion begins at a random point again, which balances usage that is never reported and usage
        # that was reported early.
        use.unreported.pop(quota, None)
        granted = use.granted.pop(quota, 0)
        if granted < amount:
            more = max(amount - granted, portion(limit, close=True))
            if not self._add(owner, use, quota, more, use.counts.room(quota, limit, self.runtime.now())):
                wait = use.counts.retry_after(quota, limit, self.runtime.now())
                raise QuotaExceeded(quota.value, limit, max(wait, 1))
            granted += more
        use.granted[quota] = granted - amount

    def _add(self, owner: str, use: _Use, quota: Quota, amount: int, below: int | None) -> bool:
        """Add to a count of the current window, unless the count has reached `below`; returns whether it was added."""
        now = self.runtime.now()
        counts = use.counts.at(now)
        try:
            done, present = self.store.add(
                owner, counts.window, quota, amount, below, expires_at=now + QUOTA_COUNTS_KEPT
            )
        except Unavailable as error:
            self.runtime.telemetry.note("the use of a quota was not counted", error=str(error))
            return True
        use.counts = counts.with_present(present)
        return done

    def _use(self, owner: str) -> _Use:
        now, use = self.runtime.now(), self._known.get(owner)
        if use is not None and now - use.read_at < QUOTA_USE_LIFE:
            return use
        if len(self._known) >= _MOST_OWNERS:
            self._known.clear()
        try:
            counts = self.store.counts(owner, now)
        except Unavailable as error:
            self.runtime.telemetry.note("the use of a quota could not be read", error=str(error))
            counts = WindowCounts(0) if use is None else use.counts
        if use is None:
            use = self._known[owner] = _Use(counts.at(now), now)
        use.counts, use.read_at = counts.at(now), now
        return use


def _counted(limits: Quotas, quota: Quota) -> int | None:
    """The limit by which a quota is counted; `None` if the quota is not counted."""
    limit = limits.limit(quota)
    if quota is Quota.CREATES and limit is None and limits.open_tasks is not None:
        return max(1, limits.open_tasks // OPEN_TASKS_PER_CREATE)
    return limit


@frozen
class OpenTasks:
    """Counts the open tasks of owners: tasks in the summary, plus tasks created too recently to be in the summary.

    Attributes:
        summary: reads the counts of tasks; `None` if this deployment does not count tasks.
    """

    summary: Callable[[], SummaryReader] | None
    rate_meter: RateMeter
    runtime: Runtime
    _known: dict[str, tuple[Millis, int]] = field(default_factory=dict, init=False)

    def count(self, owner: str) -> int:
        """The number of open tasks, overstated by at most the tasks created in the last three `QUOTA_WINDOW`s.

        Raises:
            Unavailable: the store did not answer.
        """
        if self.summary is None:
            return 0
        now = self.runtime.now()
        read_at, number = self._known.get(owner, (None, 0))
        if read_at is None or now - read_at >= QUOTA_USE_LIFE:
            counts = self.summary().read(owner).counts
            number = sum(each for group, each in counts.items() if group.state not in TERMINAL)
            if len(self._known) >= _MOST_OWNERS:
                self._known.clear()
            self._known[owner] = now, number
        return number + self.rate_meter.counts(owner).lately(Quota.CREATES, now)


@frozen
class QuotaGuard:
    """Admits requests that are within their owners' quotas, and rejects all other requests."""

    book: QuotaBook
    rate_meter: RateMeter
    open_tasks: OpenTasks
    schedules: ScheduleStore
    running_topologies: RunningTopologies

    def admit_read(self, owner: str) -> None:
        """Admit a read request.

        Raises:
            QuotaExceeded: the owner has used up `reads_per_second`.
        """
        limits = self.book.of(owner)
        if limits.reads_per_second is not None:
            self.rate_meter.check(owner, limits, [Quota.READS])
            self.rate_meter.count(owner, limits, {Quota.READS: 1})

    def admit_tasks(self, owner: str, number: int, size: int, nodes: Callable[[], int] = lambda: 0) -> None:
        """Admit a request that creates tasks.

        Args:
            owner: the owner.
            number: number of tasks.
            size: size of the request in bytes.
            nodes: function that counts the nodes of the largest topology, called if the owner's nodes are limited.

        Raises:
            QuotaExceeded: the owner has used up a quota.
            Unavailable: the store did not answer.
        """
        limits = self.book.of(owner)
        if limits.is_empty:
            return
        self.rate_meter.check(owner, limits, [Quota.CREATES, Quota.PAYLOAD_BYTES])
        most = limits.open_tasks
        if most is not None and self.open_tasks.count(owner) + number > most:
            raise QuotaExceeded(Quota.OPEN_TASKS.value, most, QUOTA_COUNT_WAIT)
        most = limits.topology_nodes
        if most is not None and (wanted := nodes()) and self.running_topologies.nodes(owner) + wanted > most:
            raise QuotaExceeded(Quota.TOPOLOGY_NODES.value, most, QUOTA_COUNT_WAIT)
        self.rate_meter.count(owner, limits, {Quota.CREATES: number, Quota.PAYLOAD_BYTES: size})

    def admit_schedule(self, owner: str, size: int) -> None:
        """Admit a request that creates a schedule.

        Raises:
            QuotaExceeded: the owner has used up a quota.
            Unavailable: the store did not answer.
        """
        limits = self.book.of(owner)
        if limits.is_empty:
            return
        self.rate_meter.check(owner, limits, [Quota.CREATES, Quota.PAYLOAD_BYTES])
        most = limits.schedules
        if most is not None and self.schedules.count(owner, most) >= most:
            raise QuotaExceeded(Quota.SCHEDULES.value, most, QUOTA_COUNT_WAIT)
        self.rate_meter.count(owner, limits, {Quota.CREATES: 1, Quota.PAYLOAD_BYTES: size})
