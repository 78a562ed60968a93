"""Composes quotas; imported if the settings have them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import CoreServices

if TYPE_CHECKING:
    from duetime.services.quotas.admin import QuotaAdmin, QuotaUsage
    from duetime.services.quotas.at_once import AttemptQuota, LeaseQuota, RunningTopologies
    from duetime.services.quotas.book import QuotaBook
    from duetime.services.quotas.rates import OpenTasks, QuotaGuard, RateMeter
    from duetime.services.summary import SummaryReader


class QuotaServices(Part):
    """Applies, shows and sets quotas."""

    @property
    def book(self) -> QuotaBook:
        """The quotas of owners."""
        return self.part(CoreServices).quota_book

    @cached_property
    def attempts(self) -> AttemptQuota:
        """Limits attempts at once."""
        from duetime.services.quotas.at_once import AttemptQuota

        return AttemptQuota(self.book, self.part(CoreServices).stores.quota_use, self.runtime)

    @cached_property
    def running_topologies(self) -> RunningTopologies:
        """Limits nodes of running topologies."""
        from duetime.services.quotas.at_once import RunningTopologies

        stores = self.part(CoreServices).stores
        return RunningTopologies(self.book, stores.quota_use, stores.tasks, self.runtime)

    @cached_property
    def leases(self) -> LeaseQuota:
        """Limits leases of pull workers."""
        from duetime.services.quotas.at_once import LeaseQuota

        stores = self.part(CoreServices).stores
        return LeaseQuota(self.book, stores.quota_use, stores.tasks, self.runtime)

    @cached_property
    def guard(self) -> QuotaGuard:
        """Admits requests."""
        from duetime.services.quotas.rates import QuotaGuard

        schedules = self.part(CoreServices).stores.schedules
        return QuotaGuard(self.book, self._rate_meter, self._open_tasks, schedules, self.running_topologies)

    @cached_property
    def admin(self) -> QuotaAdmin:
        """Shows and sets quotas."""
        from duetime.services.quotas.admin import QuotaAdmin

        store = self.part(CoreServices).stores.quotas
        return QuotaAdmin(store, self.book.defaults, self.runtime, self.usage)

    @cached_property
    def usage(self) -> QuotaUsage:
        """Reads what owners use."""
        from duetime.services.quotas.admin import QuotaUsage

        stores = self.part(CoreServices).stores
        return QuotaUsage(
            use=stores.quota_use,
            open_tasks=self._open_tasks,
            schedules=stores.schedules,
            running_topologies=self.running_topologies,
            leases=self.leases,
            runtime=self.runtime,
        )

    @cached_property
    def _rate_meter(self) -> RateMeter:
        from duetime.services.quotas.rates import RateMeter

        return RateMeter(self.part(CoreServices).stores.quota_use, self.runtime)

    @cached_property
    def _open_tasks(self) -> OpenTasks:
        from duetime.services.quotas.rates import OpenTasks

        counted = bool(self.settings.summary_spread)
        return OpenTasks(self._summary_reader if counted else None, self._rate_meter, self.runtime)

    def _summary_reader(self) -> SummaryReader:
        from duetime.composition.stream import SummaryServices

        return self.part(SummaryServices).reader
