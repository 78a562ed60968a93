"""Admits the requests of owners within their quotas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import QuotaExceeded
from duetime.domain.operating_parameters import QUOTA_COUNT_WAIT
from duetime.domain.quotas import Quota

if TYPE_CHECKING:
    from duetime.ports.stores import ScheduleStore
    from duetime.services.quotas.at_once import RunningTopologies
    from duetime.services.quotas.book import QuotaBook
    from duetime.services.quotas.rates import OpenTasks, RateMeter


@dataclass(frozen=True, slots=True)
class QuotaGuard:
    """Admits requests of owners within their quotas, and rejects the others."""

    book: QuotaBook
    rate_meter: RateMeter
    open_tasks: OpenTasks
    schedules: ScheduleStore
    running_topologies: RunningTopologies

    def admit_read(self, owner: str) -> None:
        """Admit a request that reads.

        Raises:
            QuotaExceeded: the owner has used up `reads_per_second`.
        """
        limits = self.book.of(owner)
        if limits.reads_per_second is not None:
            self.rate_meter.check(owner, limits, [Quota.READS])
            self.rate_meter.count(owner, limits, {Quota.READS: 1})

    def admit_tasks(self, owner: str, number: int, size: int, nodes: int = 0) -> None:
        """Admit a request that creates tasks.

        Args:
            owner: the owner.
            number: number of tasks.
            size: size of the request in bytes.
            nodes: number of nodes of a topology.

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
        if most is not None and nodes and self.running_topologies.nodes(owner) + nodes > most:
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
