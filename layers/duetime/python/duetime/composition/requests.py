"""Composes the use cases that only API requests need; each is imported at first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition.core import CoreServices
from duetime.composition.root import Part

if TYPE_CHECKING:
    from duetime.domain.cost_estimates import TaskWorkloads
    from duetime.services.explanations.schedules import ScheduleExplainer
    from duetime.services.explanations.tasks import TaskExplainer
    from duetime.services.pull.claims import PullLocks
    from duetime.services.pull.lease import LeaseService
    from duetime.services.pull.report import LeaseReports
    from duetime.services.schedules.calendars import CalendarManager
    from duetime.services.schedules.create import ScheduleCreator
    from duetime.services.schedules.manage import OccurrenceChanger, ScheduleManager
    from duetime.services.schedules.manual_runs_and_backfills import ManualRuns
    from duetime.services.schedules.preview import SchedulePreview
    from duetime.services.schedules.runs import ScheduleRuns
    from duetime.services.schedules.schedule_writer import ScheduleWriter
    from duetime.services.tasks.read import TargetQueryService
    from duetime.services.topologies.definitions import TopologyDefinitions
    from duetime.services.trigger.dispatch_status import DispatchStatusReader


class ExplanationServices(Part):
    """Explains tasks and schedules."""

    @cached_property
    def tasks(self) -> TaskExplainer:
        """Explains tasks."""
        from duetime.composition.tasks import TaskServices
        from duetime.composition.topologies import TopologyServices
        from duetime.services.explanations.tasks import TaskExplainer

        return TaskExplainer(
            stores=self.part(CoreServices).stores,
            task_reader=self.part(TaskServices).reader,
            topology_repository=self.part(TopologyServices).outlines,
            clock=self.runtime.clock,
            lease=self.settings.lease_ms,
        )

    @cached_property
    def schedules(self) -> ScheduleExplainer:
        """Explains schedules."""
        from duetime.services.explanations.schedules import ScheduleExplainer

        schedules = self.part(ScheduleRequestServices)
        return ScheduleExplainer(
            self.part(CoreServices).stores,
            schedules.preview,
            schedules.runs,
            self.runtime.clock,
            self.settings.retention_ms,
        )


class ScheduleRequestServices(Part):
    """Manages schedules and calendars."""

    @cached_property
    def creator(self) -> ScheduleCreator:
        """Creates schedules."""
        from duetime.services.repeated_requests import RepeatedRequests
        from duetime.services.schedules.create import ScheduleCreator

        core = self.part(CoreServices)
        return ScheduleCreator(self._writer, core.stores, self.runtime, core.shards, RepeatedRequests(core.stores.keys))

    @cached_property
    def manager(self) -> ScheduleManager:
        """Updates and controls schedules."""
        from duetime.services.schedules.manage import ScheduleManager

        return ScheduleManager(self._writer, self.part(CoreServices).stores, self.runtime)

    @cached_property
    def occurrence_changer(self) -> OccurrenceChanger:
        """Skips, moves and runs early single occurrences."""
        from duetime.services.schedules.manage import OccurrenceChanger

        return OccurrenceChanger(self._writer, self.runtime)

    @cached_property
    def manual_runs(self) -> ManualRuns:
        """Runs and backfills schedules."""
        from duetime.services.repeated_requests import RepeatedRequests
        from duetime.services.schedules.manual_runs_and_backfills import ManualRuns

        core = self.part(CoreServices)
        return ManualRuns(self._writer, core.stores, core.enqueuer, self.runtime, RepeatedRequests(core.stores.keys))

    @cached_property
    def _writer(self) -> ScheduleWriter:
        from duetime.composition.schedule_expansion import ScheduleServices
        from duetime.services.schedules.schedule_writer import ScheduleWriter

        core, settings = self.part(CoreServices), self.settings
        return ScheduleWriter(
            stores=core.stores,
            enqueuer=core.enqueuer,
            expander=self.part(ScheduleServices).expander,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            retention=settings.retention_ms,
        )

    @cached_property
    def preview(self) -> SchedulePreview:
        """Shows past and future occurrences of schedules."""
        from duetime.services.schedules.preview import SchedulePreview

        return SchedulePreview(self.part(CoreServices).stores, self.runtime.clock)

    @cached_property
    def runs(self) -> ScheduleRuns:
        """Lists the runs of schedules."""
        from duetime.composition.tasks import TaskServices
        from duetime.services.schedules.runs import ScheduleRuns

        core = self.part(CoreServices)
        return ScheduleRuns(
            core.stores, self.part(TaskServices).reader, self.preview, self.runtime.clock, self.settings.retention_ms
        )

    @cached_property
    def calendar_manager(self) -> CalendarManager:
        """Manages calendars."""
        from duetime.composition.deferred_imports import calendar_from_ics
        from duetime.services.schedules.calendars import CalendarManager

        return CalendarManager(self.part(CoreServices).stores, self.runtime, calendar_from_ics)


class PullServices(Part):
    """Leases tasks to pull workers."""

    @cached_property
    def leases(self) -> LeaseService:
        """Hands out tasks to pull workers."""
        from duetime.composition.deferred_imports import deferred, rate_limits
        from duetime.composition.deferred_topologies import topology_services
        from duetime.composition.locks import SwitchServices
        from duetime.composition.outcomes import OutcomeServices
        from duetime.composition.tasks import TaskServices
        from duetime.services.pull.claims import LeaseClaims, PullMessages
        from duetime.services.pull.lease import LeaseService

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
        """Processes reports of pull workers."""
        from duetime.composition.outcomes import OutcomeServices
        from duetime.domain.tasks.notices import ConsolePages
        from duetime.services.outcomes.traceback_recorder import TracebackRecorder
        from duetime.services.pull.report import LeaseReports

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
        from duetime.composition.locks import LockServices
        from duetime.composition.start_gates import StartGateServices
        from duetime.services.pull.claims import PullLocks

        return PullLocks(self.part(LockServices).manager, self.part(StartGateServices).gates)


class EndpointQueryServices(Part):
    """Sends queries to the endpoints of tasks."""

    @cached_property
    def queries(self) -> TargetQueryService:
        """Sends queries to the endpoints of tasks."""
        from duetime.adapters.targets.http_target import HttpRunner
        from duetime.composition.http_calls import HttpServices
        from duetime.composition.tasks import TaskServices
        from duetime.services.tasks.read import TargetQueryService

        runner = HttpRunner(self.part(HttpServices).caller)
        return TargetQueryService(self.part(TaskServices).reader, runner, self.runtime.random_source)


class DispatchStatusServices(Part):
    """Progress of dispatch."""

    @cached_property
    def reader(self) -> DispatchStatusReader:
        """Reads the trigger's cursors and the queues."""
        from duetime.services.trigger.dispatch_status import DispatchStatusReader

        core, settings = self.part(CoreServices), self.settings
        return DispatchStatusReader(
            cursors=core.stores.cursors,
            queues=core.queues,
            shards=core.shards,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            pulled_types=sorted(settings.pulled_queue_urls),
            operators=settings.operators,
        )


class CostEstimateServices(Part):
    """Estimates of costs."""

    @property
    def workloads(self) -> TaskWorkloads:
        """The workloads of newly requested tasks."""
        from duetime.adapters.compression import smaller
        from duetime.domain.cost_estimates import Circumstances, TaskWorkloads
        from duetime.domain.times import MINUTE
        from duetime_common.cost_estimate import Workload
        from duetime_common.prices import DEFAULT_REGION, PRICES

        settings = self.settings
        workload = Workload(
            tasks=1,
            precision=settings.precision.value,
            has_summary=bool(settings.summary_spread),
            has_lists=bool(settings.task_lists),
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


class DefinitionServices(Part):
    """Manages topology definitions, and creates runs of them."""

    @cached_property
    def definitions(self) -> TopologyDefinitions:
        """Manages topology definitions."""
        from duetime.services.topologies.definitions import TopologyDefinitions

        return TopologyDefinitions(self.part(CoreServices).stores, self.runtime)
