"""Shows and sets the quotas of owners, and shows their usage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid, QuotasFull, QuotasNotFound, Unavailable
from duetime.domain.limits import MAX_QUOTA_OWNERS
from duetime.domain.operating_parameters import QUOTA_WINDOW
from duetime.domain.quotas import OwnerQuotas, Quota, QuotaStatus
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.domain.callers import Caller
    from duetime.domain.quotas import Quotas, StoredQuotas
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import QuotaStore, QuotaUseStore, ScheduleStore
    from duetime.services.quotas.at_once import LeaseQuota, RunningTopologies
    from duetime.services.quotas.rates import OpenTasks

_TRIES = 20
_MOST_SCHEDULES = 10_000
"""Highest number of schedules that a usage report counts."""


@frozen
class QuotaUsage:
    """Reads the owners' usage of their quotas."""

    use: QuotaUseStore
    open_tasks: OpenTasks
    schedules: ScheduleStore
    running_topologies: RunningTopologies
    leases: LeaseQuota
    runtime: Runtime

    def of(self, owner: str, limits: Quotas) -> Mapping[Quota, float]:
        """An owner's usage of each limited quota, per second or at once.

        Raises:
            Unavailable: the store did not answer.
        """
        return {quota: self.used(owner, quota) for quota in Quota if limits.limit(quota) is not None}

    def used(self, owner: str, quota: Quota) -> float:
        """An owner's usage of a quota, per second or at once.

        Raises:
            Unavailable: the store did not answer.
        """
        now = self.runtime.now()
        match quota:
            case Quota.CREATES | Quota.PAYLOAD_BYTES | Quota.READS:
                used = self.use.counts(owner, now).used(quota, now)
                return round(used * SECOND / QUOTA_WINDOW, 1)
            case Quota.OPEN_TASKS:
                return self.open_tasks.count(owner)
            case Quota.SCHEDULES:
                return self.schedules.count(owner, _MOST_SCHEDULES)
            case Quota.TOPOLOGY_NODES:
                return self.running_topologies.nodes(owner)
            case Quota.PULL_LEASES:
                return self.leases.used(owner)
            case Quota.LONG_POLLS | Quota.CONCURRENT_ATTEMPTS:
                return sum(hold.until >= now for hold in self.use.holds(owner, quota).values())


@frozen
class QuotaAdmin:
    """Shows and sets quotas: operators manage all owners' quotas, and other callers see only their own."""

    store: QuotaStore
    defaults: Quotas
    runtime: Runtime
    usage: QuotaUsage

    def list(self, caller: Caller) -> Sequence[OwnerQuotas]:
        """The owners with their own quotas, by name; a caller who is not an operator gets only its own quotas."""
        found = self.store.read(consistent=True).by_owner
        names = sorted(found) if caller.is_operator else [caller.owner] * (caller.owner in found)
        return [found[name] for name in names]

    def get(self, caller: Caller, owner: str) -> QuotaStatus:
        """The quotas of an owner.

        Raises:
            QuotasNotFound: the caller is neither the owner nor an operator.
        """
        if caller.owner != owner and not caller.is_operator:
            raise QuotasNotFound(owner)
        return self._status(owner, self.store.read(consistent=True))

    def put(self, caller: Caller, quotas: OwnerQuotas) -> QuotaStatus:
        """Set an owner's quotas, replacing earlier quotas; empty quotas remove the owner's entry.

        Raises:
            FieldInvalid: open tasks are not counted in this deployment.
            QuotasFull: too many owners have their own quotas.
            Unavailable: too many concurrent writes.
        """
        if quotas.own.open_tasks is not None and self.usage.open_tasks.summary is None:
            raise FieldInvalid(Quota.OPEN_TASKS.value, "needs the setting `summary_spread`")
        wanted = replace(quotas, updated_at=self.runtime.now(), updated_by=caller.owner)

        def change(stored: StoredQuotas) -> StoredQuotas:
            changed = stored.with_owner(wanted)
            if len(changed.by_owner) > max(MAX_QUOTA_OWNERS, len(stored.by_owner)):
                raise QuotasFull(MAX_QUOTA_OWNERS)
            return changed

        return self._status(quotas.owner, self._change(change)[1])

    def delete(self, owner: str) -> QuotaStatus:
        """Delete an owner's own quotas, so that the defaults apply; returns the deleted quotas.

        Raises:
            QuotasNotFound: the owner has no quotas of its own.
            Unavailable: too many concurrent writes.
        """

        def change(stored: StoredQuotas) -> StoredQuotas:
            if owner not in stored.by_owner:
                raise QuotasNotFound(owner)
            return stored.with_owner(OwnerQuotas(owner))

        return self._status(owner, self._change(change)[0])

    def _change(self, change: Callable[[StoredQuotas], StoredQuotas]) -> tuple[StoredQuotas, StoredQuotas]:
        """Apply a change to the current quotas; returns the quotas before and after the change."""
        for _ in range(_TRIES):
            before = self.store.read(consistent=True)
            after = change(before)
            if after == before or self.store.save(after, self.runtime.nonce()):
                return before, after
        raise Unavailable("too many concurrent writes to the quotas; try again")

    def _status(self, owner: str, stored: StoredQuotas) -> QuotaStatus:
        limits = stored.limits(owner, self.defaults)
        return QuotaStatus(stored.by_owner.get(owner, OwnerQuotas(owner)), limits, self.usage.of(owner, limits))
