"""Quotas, which limit an owner's use of a deployment. Decisions are returned as values."""

from __future__ import annotations

import math
from dataclasses import field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import QUOTA_WINDOW
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis


class Quota(StrEnum):
    """A quota, whose value is the name of its field in `Quotas`."""

    CREATES = "creates_per_second"
    PAYLOAD_BYTES = "payload_bytes_per_second"
    READS = "reads_per_second"
    OPEN_TASKS = "open_tasks"
    CONCURRENT_ATTEMPTS = "concurrent_attempts"
    SCHEDULES = "schedules"
    TOPOLOGY_NODES = "topology_nodes"
    LONG_POLLS = "long_polls"
    PULL_LEASES = "pull_leases"


@frozen
class Quotas:
    """The quotas of an owner, or a deployment's default quotas; `None` means no limit."""

    creates_per_second: int | None = None
    """Tasks, topologies and schedules that the owner's requests create per second."""
    payload_bytes_per_second: int | None = None
    """Bytes per second in the bodies of requests that create tasks, topologies or schedules."""
    reads_per_second: int | None = None
    """Read requests (`GET`) per second."""
    open_tasks: int | None = None
    """Tasks that have not ended. At the limit, no request can create another task. This quota needs
    `summary_spread`."""
    concurrent_attempts: int | None = None
    """Attempts that worker functions run at once. At the limit, due tasks wait. An attempt that waits for a
    notification, for a job or for a pull worker does not count."""
    schedules: int | None = None
    """Schedules."""
    topology_nodes: int | None = None
    """Total number of nodes in the topologies that run at once. At the limit, due topologies wait."""
    long_polls: int | None = None
    """Requests with `wait_seconds` that wait at once."""
    pull_leases: int | None = None
    """Tasks that a pull worker with this identity has leased at once, regardless of the tasks' owners."""

    def limit(self, quota: Quota) -> int | None:
        """The limit of one quota; `None` for no limit."""
        limit: int | None = getattr(self, quota.value)
        return limit

    def over(self, defaults: Quotas) -> Quotas:
        """A copy in which quotas that are not set have the given defaults."""
        own = {name: limit for name in _NAMES if (limit := getattr(self, name)) is not None}
        return replace(defaults, **own)

    @property
    def is_empty(self) -> bool:
        """Whether no quota is set."""
        return self == _NONE


_NAMES = tuple(each.name for each in fields(Quotas))
_NONE = Quotas()


@frozen
class OwnerQuotas:
    """Quotas that an operator has set for one owner.

    Attributes:
        own: the quotas that differ from the defaults.
        reason: human-readable reason.
        updated_at: when the quotas were set.
        updated_by: who set the quotas.
    """

    owner: str
    own: Quotas = Quotas()
    reason: str = ""
    updated_at: Millis = 0
    updated_by: str = ""


@frozen
class StoredQuotas:
    """The quotas of all owners whose quotas differ from the defaults.

    Attributes:
        version: incremented by every change; 0 if nothing is stored.
    """

    by_owner: Mapping[str, OwnerQuotas] = field(default_factory=dict)
    version: int = 0

    def with_owner(self, quotas: OwnerQuotas) -> StoredQuotas:
        """A copy with an owner's quotas set, or removed if no quota is set."""
        others = {name: other for name, other in self.by_owner.items() if name != quotas.owner}
        return replace(self, by_owner=others if quotas.own.is_empty else {**others, quotas.owner: quotas})

    def limits(self, owner: str, defaults: Quotas) -> Quotas:
        """The quotas of an owner."""
        own = self.by_owner.get(owner)
        return defaults if own is None else own.own.over(defaults)


@frozen
class QuotaStatus:
    """An owner's quotas and current usage.

    Attributes:
        own: the quotas that an operator has set.
        limits: the quotas in force.
        used: the owner's usage of each counted quota, per second or at the moment.
    """

    own: OwnerQuotas
    limits: Quotas
    used: Mapping[Quota, float]


RATES = (Quota.CREATES, Quota.PAYLOAD_BYTES, Quota.READS)
"""The per-second quotas; all other quotas limit how much an owner has at once."""
OPEN_TASKS_PER_CREATE = 100
"""If creations have no limit, they are counted as if their limit were `open_tasks` divided by this number."""
_COARSE, _FINE = 20, 100
"""Numbers by which a per-second limit is divided to get a process's portion: `_COARSE` while usage is below half of the
limit, then `_FINE`."""


def window_at(now: Millis) -> int:
    """The number of the current window of `QUOTA_WINDOW`."""
    return now // QUOTA_WINDOW


@frozen
class WindowCounts:
    """An owner's usage in the current window and the two previous windows.

    Attributes:
        window: number of the current window.
        present: usage in the current window, by quota.
        previous: usage in the previous window.
        earlier: usage in the window before the previous one.
    """

    window: int
    present: Mapping[Quota, int] = field(default_factory=dict)
    previous: Mapping[Quota, int] = field(default_factory=dict)
    earlier: Mapping[Quota, int] = field(default_factory=dict)

    def at(self, now: Millis) -> WindowCounts:
        """A copy of the counts for the window that contains `now`."""
        passed = window_at(now) - self.window
        if passed <= 0:
            return self
        known = (self.present, self.previous, self.earlier)
        return WindowCounts(self.window + passed, *[{}] * min(passed, 3), *known[: max(0, 3 - passed)])

    def with_present(self, present: Mapping[Quota, int]) -> WindowCounts:
        """A copy with newer counts for the current window."""
        return replace(self, present={**self.present, **present})

    def used(self, quota: Quota, now: Millis) -> float:
        """Estimated usage in the last `QUOTA_WINDOW`, including a proportional part of the previous window's usage."""
        counts = self.at(now)
        passed = (now - counts.window * QUOTA_WINDOW) / QUOTA_WINDOW
        rest = max(0.0, 1 - passed)
        return counts.present.get(quota, 0) + counts.previous.get(quota, 0) * rest

    def lately(self, quota: Quota, now: Millis) -> int:
        """Usage in the current window and the two previous windows."""
        counts = self.at(now)
        return sum(each.get(quota, 0) for each in (counts.present, counts.previous, counts.earlier))

    def room(self, quota: Quota, limit: int, now: Millis) -> int:
        """The maximum usage in the current window, rounded up, that the usage in the previous window allows."""
        counts = self.at(now)
        return math.ceil(in_window(limit) - counts.used(quota, now) + counts.present.get(quota, 0))

    def retry_after(self, quota: Quota, limit: int, now: Millis) -> Millis:
        """Time until usage falls below a per-second limit if nothing more is used; 0 if it is already below."""
        most = in_window(limit)
        if self.used(quota, now) < most:
            return 0
        counts = self.at(now)
        present, previous = counts.present.get(quota, 0), counts.previous.get(quota, 0)
        start = counts.window * QUOTA_WINDOW
        if present >= most:
            start, present, previous = start + QUOTA_WINDOW, 0, present
        # Integers are exact, so that the wait is not a millisecond too short.
        passed = (present + previous - most) * QUOTA_WINDOW // previous
        return max(1, start + passed + 1 - now)


def in_window(limit: int) -> int:
    """The allowed usage in `QUOTA_WINDOW` for a per-second limit."""
    return limit * QUOTA_WINDOW // SECOND


def is_close(limit: int, used: float) -> bool:
    """Whether an owner's usage is so high that every process must check before using more."""
    return used * 2 >= in_window(limit)


def portion(limit: int, *, close: bool) -> int:
    """How much a process may use between two reports of its usage, for a per-second limit."""
    return max(1, limit // (_FINE if close else _COARSE))


@frozen
class Hold:
    """A place, a running topology or a lease, which counts towards a quota while it lasts.

    Attributes:
        number: number of a topology's nodes, or a lease's fence; otherwise 1.
        until: when the hold expires; 0 for never.
    """

    number: int = 1
    until: Millis = 0
