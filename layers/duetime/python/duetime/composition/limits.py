"""Composes what shows and sets the limits of tasks, and previews their starts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import CoreServices

if TYPE_CHECKING:
    from duetime.services.explanations.tasks import StartPreviewer
    from duetime.services.order_lines import OrderedKeyReader
    from duetime.services.quotas.admin import QuotaUsage
    from duetime.services.quotas.book import QuotaBook
    from duetime.services.rates import RateAdmin
    from duetime.services.tasks.held_keys import UniqueKeyReader


class LimitServices(Part):
    """Rates, unique keys and ordered keys; locks are in `LockServices`, which workers need, too."""

    @cached_property
    def rates(self) -> RateAdmin:
        """Shows, pauses, resets and pins rates."""
        from duetime.composition.tasks import TaskServices
        from duetime.services.rates import RateAdmin

        tasks = self.part(TaskServices)
        return RateAdmin(self.part(CoreServices).stores.rates, tasks.reader, tasks.control, self.runtime)

    @cached_property
    def unique_keys(self) -> UniqueKeyReader:
        """Shows unique keys."""
        from duetime.services.tasks.held_keys import UniqueKeyReader

        core = self.part(CoreServices)
        return UniqueKeyReader(core.stores, core.task_reader)

    @cached_property
    def ordered_keys(self) -> OrderedKeyReader:
        """Shows ordered keys."""
        from duetime.services.order_lines import OrderedKeyReader

        return OrderedKeyReader(self.part(CoreServices).stores, self.runtime.clock)

    @cached_property
    def previewer(self) -> StartPreviewer:
        """Previews the starts of tasks."""
        from duetime.composition.tasks import TaskServices
        from duetime.services.explanations.tasks import StartPreviewer

        tasks, core = self.part(TaskServices), self.part(CoreServices)
        quotas = self._quotas if self.settings.has_quotas else None
        return StartPreviewer(tasks.creator, tasks.explainer, core.queues, quotas)

    def _quotas(self) -> tuple[QuotaBook, QuotaUsage]:

        from duetime.composition.quotas import QuotaServices

        services = self.part(QuotaServices)
        return services.book, services.usage
