"""Composes the use cases of tasks.

Most requests create or read tasks, so the modules that change and control them are imported within their properties.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import CoreServices
from duetime.services.tasks.create import BatchCreator, KeyConflicts, TaskCreator, Uploads
from duetime.services.tasks.read import OutcomeWaiter, TargetQueryService

if TYPE_CHECKING:
    from duetime.domain.cost_estimates import TaskWorkloads
    from duetime.services.dependencies import DependencyReader
    from duetime.services.explanations.tasks import TaskExplainer
    from duetime.services.tasks.approvals import Approvals
    from duetime.services.tasks.attempt_reports import AttemptReports
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.erase import TaskEraser
    from duetime.services.tasks.read import TaskReader
    from duetime.services.tasks.update import TaskUpdater


class TaskServices(Part):
    """Creates, reads, changes and controls tasks."""

    @cached_property
    def creator(self) -> TaskCreator:
        """Creates tasks."""
        core = self.part(CoreServices)
        conflicts = KeyConflicts(lambda: self.updater, core.stores.keys, self.runtime)
        return TaskCreator(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            shards=core.shards,
            rules=core.creation_rules,
            key_conflicts=conflicts,
            dependency_reader=self._dependency_reader,
        )

    def _dependency_reader(self) -> DependencyReader:
        from duetime.composition.attempts import DependencyServices

        return self.part(DependencyServices).reader

    @cached_property
    def batch_creator(self) -> BatchCreator:
        """Creates many tasks."""
        return BatchCreator(self.creator)

    @cached_property
    def reader(self) -> TaskReader:
        """Reads tasks."""
        return self.part(CoreServices).task_reader

    @cached_property
    def updater(self) -> TaskUpdater:
        """Changes and cancels tasks."""
        from duetime.composition.attempts import LockServices, OccurrenceServices
        from duetime.services.tasks.update import TaskUpdater

        core = self.part(CoreServices)
        return TaskUpdater(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            retention=self.settings.retention,
            lock_manager=self.part(LockServices).manager,
            rules=core.creation_rules,
            occurrence_listener=lambda: self.part(OccurrenceServices).overlap_control,
            order_lines=lambda: core.order_lines,
        )

    @cached_property
    def control(self) -> TaskControl:
        """Pauses, resumes, runs, retries and stops tasks."""
        from duetime.composition.attempts import LockServices
        from duetime.services.tasks.control import TaskControl, TaskReopener

        core = self.part(CoreServices)
        return TaskControl(
            stores=core.stores,
            enqueuer=core.enqueuer,
            task_updater=self.updater,
            lock_manager=self.part(LockServices).manager,
            runtime=self.runtime,
            reopener=TaskReopener(core.stores, core.enqueuer, self.runtime),
        )

    @cached_property
    def uploads(self) -> Uploads:
        """Begins uploads of payloads."""
        return Uploads(self.part(CoreServices).stores.uploads, self.runtime)

    @cached_property
    def eraser(self) -> TaskEraser:
        """Erases tasks."""
        from duetime.services.tasks.erase import TaskEraser

        return TaskEraser(self.part(CoreServices).stores, self.updater, self.runtime)

    @cached_property
    def approvals(self) -> Approvals:
        """Records decisions on tasks that wait for an approval."""
        # Few requests are decisions, so the module is imported only for them.
        from duetime.services.tasks.approvals import Approvals

        core = self.part(CoreServices)
        return Approvals(self.reader, core.stores, core.enqueuer, self.runtime, self.settings.retention)

    @cached_property
    def attempt_reports(self) -> AttemptReports:
        """Processes heartbeats and notifications of asynchronous targets."""
        from duetime.composition.attempts import LockServices, OutcomeServices
        from duetime.services.tasks.attempt_reports import AttemptReports

        core, outcomes = self.part(CoreServices), self.part(OutcomeServices)
        return AttemptReports(
            task_reader=self.reader,
            stores=core.stores,
            enqueuer=core.enqueuer,
            outcome_writer=outcomes.delegating_writer,
            completion=outcomes.delegated_completion,
            lock_manager=self.part(LockServices).manager,
            runtime=self.runtime,
        )

    @cached_property
    def waiter(self) -> OutcomeWaiter:
        """Waits for outcomes."""
        core = self.part(CoreServices)
        return OutcomeWaiter(core.stores.tasks, self.runtime.clock, core.long_polls)

    @cached_property
    def explainer(self) -> TaskExplainer:
        """Explains tasks."""
        from duetime.services.explanations.tasks import TaskExplainer

        core = self.part(CoreServices)
        return TaskExplainer(
            stores=core.stores,
            task_reader=self.reader,
            topology_repository=core.topology_outlines,
            steps=core.steps,
            clock=self.runtime.clock,
            lease=self.settings.lease_ms,
        )

    @cached_property
    def target_queries(self) -> TargetQueryService:
        """Sends queries to the endpoints of tasks."""
        from duetime.adapters.targets.http_target import HttpRunner
        from duetime.composition.http_calls import HttpServices

        runner = HttpRunner(self.part(HttpServices).caller)
        return TargetQueryService(self.reader, runner, self.runtime.random_source)

    def workloads_of(self, owner: str) -> TaskWorkloads:
        """The workloads of tasks that an owner requests."""
        from duetime.adapters.dynamodb.attribute_values import smaller
        from duetime.adapters.targets.callbacks import EventEncoding
        from duetime.contract.tasks.encoding import entry
        from duetime.domain.cost_estimates import Circumstances, TaskWorkloads
        from duetime.domain.tasks.notices import ConsolePages
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
            owner=owner,
            now=self.runtime.clock.now(),
            # The trigger reads whole minutes.
            soon=settings.look_ahead_ms + MINUTE,
            pulled_types=settings.pulled_queue_urls.keys(),
            stored_size=lambda payload: len(smaller(payload) or payload),
            outcome_event=EventEncoding(entry, ConsolePages(settings.console_url)).of_outcome,
            workload=workload,
        )
        return TaskWorkloads(circumstances)
