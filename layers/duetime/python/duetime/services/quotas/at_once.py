"""Limits an owner's concurrent resources: attempts, topologies, waiting requests, and leases."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import QuotaExceeded, Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import (
    LONGEST_LOCK_HOLD,
    LONGEST_QUOTA_WAIT,
    MAX_CLOCK_DIFFERENCE,
    QUOTA_COUNT_WAIT,
    RUN_STATE_LIFE,
    SHORTEST_QUOTA_WAIT,
)
from duetime.domain.quotas import Hold, Quota
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.wait_reasons import QUOTA_AWAITED
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import QuotaUseStore
    from duetime.ports.tasks import TaskStore
    from duetime.services.quotas.book import QuotaBook

_PLACE_TRIES = 3
_FULL: Millis = 200
"""How long a process waits before it searches again after it has found no free place for an owner."""


@frozen
class RunningTopologies:
    """Counts the nodes of the topologies that each owner runs at once."""

    book: QuotaBook
    use: QuotaUseStore
    tasks: TaskStore
    runtime: Runtime

    def nodes(self, owner: str) -> int:
        """Number of nodes in running topologies; topologies that have ended are dropped from the count."""
        holds = self.use.holds(owner, Quota.TOPOLOGY_NODES)
        return sum(hold.number for hold in self._open(owner, holds).values())

    def refusal(self, task: Task, nodes: int) -> str | None:
        """Why a topology must not run now; `None` if the topology may run.

        An owner's only running topology may have any size.

        The topology is stored before the nodes are counted, so two topologies are never admitted to the same free
        capacity.
        """
        limit = self.book.of(task.owner).topology_nodes
        if limit is None:
            return None
        quota, name = Quota.TOPOLOGY_NODES, task.id.text
        self.use.hold(task.owner, quota, name, Hold(nodes), expires_at=self.runtime.now() + RUN_STATE_LIFE)
        holds = self.use.holds(task.owner, quota)
        if sum(hold.number for hold in holds.values()) > limit:
            holds = self._open(task.owner, holds)
        others = sum(hold.number for other, hold in holds.items() if other != name)
        if not others or others + nodes <= limit:
            return None
        self.use.drop(task.owner, quota, name)
        return f"{QUOTA_AWAITED}{quota.value}: the owner runs topologies of {others} nodes, and may run {limit}"

    def _open(self, owner: str, holds: Mapping[str, Hold]) -> Mapping[str, Hold]:
        """The topologies that have not ended; topologies that have ended are dropped from the count."""
        found = self.tasks.read_many([TaskId(name) for name in holds], consistent=True)
        ended = [name for name in holds if (task := found.get(TaskId(name))) is None or task.is_terminal]
        for name in ended:
            self.use.drop(owner, Quota.TOPOLOGY_NODES, name)
        return {name: hold for name, hold in holds.items() if name not in ended}


@frozen
class WaitingRequests:
    """Limits how many requests of each owner wait at once."""

    book: QuotaBook
    use: QuotaUseStore
    runtime: Runtime

    @contextmanager
    def place(self, owner: str, longest: Millis) -> Iterator[None]:
        """Hold a place while the context is open.

        Raises:
            QuotaExceeded: the owner already has as many waiting requests as its quota allows.
            Unavailable: the store did not answer.
        """
        limit = self.book.of(owner).long_polls
        if limit is None:
            yield
            return
        quota, nonce = Quota.LONG_POLLS, self.runtime.nonce()
        place = taken_place(self.use, self.runtime, Place(owner, quota, nonce, longest + MAX_CLOCK_DIFFERENCE), limit)
        if place is None:
            raise QuotaExceeded(quota.value, limit, QUOTA_COUNT_WAIT)
        try:
            yield
        finally:
            with suppress(Unavailable):
                self.use.drop(owner, quota, str(place), nonce)


@frozen
class Place:
    """A wanted or taken place.

    Attributes:
        nonce: identifies the taker.
        life: how long the place is held unless it is dropped earlier, in milliseconds.
        number: number of the place, once taken.
    """

    owner: str
    quota: Quota
    nonce: str
    life: Millis
    number: int = 0


def taken_place(use: QuotaUseStore, runtime: Runtime, wanted: Place, count: int) -> int | None:
    """Take one of `count` places; `None` if no place is free.

    Most owners are far from their limits, so a random place is tried before the list of taken places is read.

    Raises:
        Unavailable: the store did not answer.
    """
    now = runtime.now()
    first = runtime.random_source.below(count)
    if use.take(wanted.owner, wanted.quota, first, wanted.nonce, now, now + wanted.life):
        return first
    held = {int(name) for name, hold in use.holds(wanted.owner, wanted.quota).items() if hold.until >= now}
    free = [place for place in range(count) if place not in held]
    for _ in range(_PLACE_TRIES):
        if not free:
            return None
        place = free.pop(runtime.random_source.below(len(free)))
        if use.take(wanted.owner, wanted.quota, place, wanted.nonce, now, now + wanted.life):
            return place
    return None


@frozen
class LeaseQuota:
    """Limits how many leases an owner's pull workers have at once."""

    book: QuotaBook
    use: QuotaUseStore
    tasks: TaskStore
    runtime: Runtime

    def room(self, caller: str, wanted: int) -> int:
        """How many of the wanted tasks a worker may lease, which is always at least one task.

        Raises:
            QuotaExceeded: the worker may lease no more tasks.
            Unavailable: the store did not answer.
        """
        limit = self.book.of(caller).pull_leases
        if limit is None:
            return wanted
        holds = self.use.holds(caller, Quota.PULL_LEASES)
        if len(holds) + wanted > limit:
            holds = self._open(caller, holds)
        if len(holds) >= limit:
            raise QuotaExceeded(Quota.PULL_LEASES.value, limit, QUOTA_COUNT_WAIT)
        return min(wanted, limit - len(holds))

    def note(self, caller: str, leased: Sequence[Task]) -> None:
        """Count new leases."""
        if self.book.of(caller).pull_leases is None:
            return
        expires_at = self.runtime.now() + LONGEST_LOCK_HOLD
        with suppress(Unavailable):
            # The worker must get its leases, even if they cannot be counted.
            for task in leased:
                self.use.hold(caller, Quota.PULL_LEASES, task.id.text, Hold(task.fence), expires_at=expires_at)

    def used(self, caller: str) -> int:
        """Number of leases that have not ended."""
        return len(self._open(caller, self.use.holds(caller, Quota.PULL_LEASES)))

    def _open(self, caller: str, holds: Mapping[str, Hold]) -> Mapping[str, Hold]:
        """The leases that have not ended; leases that have ended are dropped from the count."""
        found, now = self.tasks.read_many([TaskId(name) for name in holds], consistent=True), self.runtime.now()
        ended = [name for name, hold in holds.items() if not _is_leased(found.get(TaskId(name)), hold.number, now)]
        for name in ended:
            self.use.drop(caller, Quota.PULL_LEASES, name)
        return {name: hold for name, hold in holds.items() if name not in ended}


def _is_leased(task: Task | None, fence: int, now: Millis) -> bool:
    return task is not None and task.fence == fence and (task.lease_expires_at or 0) > now and not task.is_terminal


@frozen
class AttemptQuota:
    """Limits how many of each owner's attempts run at once in worker functions.

    Each attempt has a place, which is held until the attempt's lease ends.

    The methods never raise. If the store fails, no attempt is limited.
    """

    book: QuotaBook
    use: QuotaUseStore
    runtime: Runtime
    _places: dict[tuple[TaskId, int], Place] = field(default_factory=dict, init=False)
    _full_until: dict[str, Millis] = field(default_factory=dict, init=False)

    def held(self, task: Task, until: Millis) -> Postponed | None:
        """Whether a just-claimed task must wait, and until when; `None` if the task may begin.

        If a place was free, the task now holds it until its lease ends.
        """
        limit = self.book.of(task.owner).concurrent_attempts
        if limit is None or (task.id, task.fence) in self._places:
            return None
        now = self.runtime.now()
        if now < self._full_until.get(task.owner, 0):
            return self._postponed(task, limit)
        wanted = Place(task.owner, Quota.CONCURRENT_ATTEMPTS, self.runtime.nonce(), until + MAX_CLOCK_DIFFERENCE - now)
        with suppress(Unavailable):
            place = taken_place(self.use, self.runtime, wanted, limit)
            if place is None:
                # Remove past entries, because there may be any number of owners. Other threads may do the same at the
                # same time.
                for owner, full_until in list(self._full_until.items()):
                    if full_until <= now:
                        self._full_until.pop(owner, None)
                self._full_until[task.owner] = self.runtime.now() + _FULL
                return self._postponed(task, limit)
            self._places[task.id, task.fence] = replace(wanted, number=place)
        return None

    def renew(self, task: Task, until: Millis) -> None:
        """Keep the place of an attempt that continues."""
        if (place := self._places.get((task.id, task.fence))) is not None:
            with suppress(Unavailable):
                now = self.runtime.now()
                self.use.take(place.owner, place.quota, place.number, place.nonce, now, until + MAX_CLOCK_DIFFERENCE)

    def leave(self, task: Task) -> None:
        """Free an attempt's place for other attempts."""
        if (place := self._places.pop((task.id, task.fence), None)) is not None:
            with suppress(Unavailable):
                self.use.drop(place.owner, place.quota, str(place.number), place.nonce)

    def _postponed(self, task: Task, limit: int) -> Postponed:
        # Each earlier check has raised the number of claims, and has not counted as an attempt.
        checks = max(0, task.claims - task.attempt)
        longest = min(SHORTEST_QUOTA_WAIT << min(checks, 10), LONGEST_QUOTA_WAIT)
        wait = longest // 2 + self.runtime.random_source.below(longest // 2 + 1)
        reason = f"{QUOTA_AWAITED}{Quota.CONCURRENT_ATTEMPTS.value}: the owner runs {limit} attempts already"
        return Postponed(self.runtime.now() + wait, reason)
