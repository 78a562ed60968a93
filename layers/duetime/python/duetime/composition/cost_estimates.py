"""Composes what estimates the costs of requests: from the settings only, without a call of AWS."""

from __future__ import annotations

from duetime.adapters.compression import smaller
from duetime.composition.root import Part
from duetime.domain.cost_estimates.requests import Circumstances, TaskWorkloads
from duetime.domain.cost_estimates.workload import Workload
from duetime.domain.prices import DEFAULT_REGION, PRICES
from duetime.domain.times import MINUTE


class CostEstimateServices(Part):
    """Estimates of costs."""

    @property
    def workloads(self) -> TaskWorkloads:
        """The workloads of tasks that are requested now."""
        settings = self.settings
        workload = Workload(
            tasks=1,
            precision=settings.precision.value,
            has_summary=bool(settings.summary_spread),
            has_traces=bool(settings.traces),
            region=settings.region if settings.region in PRICES else DEFAULT_REGION,
        )
        circumstances = Circumstances(
            now=self.runtime.clock.now(),
            # The trigger reads whole minutes.
            soon=settings.look_ahead_ms + MINUTE,
            pulled_types=settings.pulled_queue_urls.keys(),
            stored_size=lambda payload: len(smaller(payload) or payload),
            workload=workload,
        )
        return TaskWorkloads(circumstances)
