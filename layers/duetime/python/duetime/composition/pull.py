"""Composes the use cases of pull workers."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import deferred, rate_limits
from duetime.composition.deferred_topologies import topology_services
from duetime.composition.locks import LockServices
from duetime.composition.outcomes import OutcomeServices
from duetime.composition.root import Part
from duetime.composition.start_gates import StartGateServices
from duetime.composition.switches import SwitchServices
from duetime.composition.tasks import TaskServices
from duetime.domain.tasks.notices import ConsolePages
from duetime.services.outcomes.traceback_recorder import TracebackRecorder
from duetime.services.pull.claims import LeaseClaims, PullLocks, PullMessages
from duetime.services.pull.lease import LeaseService
from duetime.services.pull.report import LeaseReports


class PullServices(Part):
    """Leasing tasks to pull workers."""

    @cached_property
    def leases(self) -> LeaseService:
        """Hands out tasks to pull workers."""
        core = self.part(CoreServices)
        claims = LeaseClaims(
            stores=core.stores,
            queues=core.queues,
            outcome_writer=self.part(OutcomeServices).delegating_writer,
            pull_locks=self._pull_locks,
            input_reader=deferred(lambda: topology_services(self).node_inputs),
            switch_rates=self.part(SwitchServices).gate,
            rate_limits=rate_limits(self),
            runtime=self.runtime,
        )
        return LeaseService(
            queues=core.queues,
            claims=claims,
            messages=PullMessages(core.queues, self.runtime),
            pullers=self.settings.pullers,
            long_polls=self.part(TaskServices).long_polls,
            runtime=self.runtime,
        )

    @cached_property
    def reports(self) -> LeaseReports:
        """Takes what pull workers report."""
        core = self.part(CoreServices)
        return LeaseReports(
            stores=core.stores,
            queues=core.queues,
            outcome_writer=self.part(OutcomeServices).delegating_writer,
            pull_locks=self._pull_locks,
            pullers=self.settings.pullers,
            traceback_recorder=TracebackRecorder(
                store=core.tracebacks,
                runtime=self.runtime,
                is_kept=self.settings.keeps_tracebacks,
                retention=self.settings.retention_ms,
                pages=ConsolePages(self.settings.console_url),
            ),
            runtime=self.runtime,
        )

    @cached_property
    def _pull_locks(self) -> PullLocks:
        return PullLocks(self.part(LockServices).manager, self.part(StartGateServices).gates)
