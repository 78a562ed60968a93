"""Composes bulk operations: actions on all tasks that match a filter, and their execution."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import BulkServices, CoreServices
from duetime.composition.tasks import TaskServices
from duetime.composition.topologies import TopologyServices
from duetime.domain.bulk import BulkKind
from duetime.services.bulk.executor import BulkExecutor
from duetime.services.bulk.filter_actions import BulkRequests, FilteredTasks
from duetime.services.topologies.bulk_node_actions import TopologySteps

if TYPE_CHECKING:
    from duetime.domain.bulk import BulkRequest
    from duetime.services.purges import OwnerResources, Purges, PurgeSteps
    from duetime.services.schedules.manage import FilteredSchedules
    from duetime.services.signals import Signals
    from duetime.services.topologies.deletion import TopologyEraser


class FilterActionServices(Part):
    """Actions on all tasks that match a filter."""

    @cached_property
    def requests(self) -> BulkRequests:
        """Applies actions to the tasks that match a filter."""
        stores, tasks = self.part(CoreServices).stores, self.part(TaskServices)
        filtered_tasks = FilteredTasks(
            stores.tasks, tasks.reader, tasks.updater, tasks.control, self._eraser, self.runtime
        )
        operations = self.part(BulkServices).operations
        return BulkRequests(
            operations=operations,
            filtered_tasks=filtered_tasks,
            filtered_schedules=lambda: self._filtered_schedules,
            signals=lambda: self._signals,
            stores=stores,
            runtime=self.runtime,
            read_request=read_bulk_request,
        )

    def _eraser(self) -> TopologyEraser:
        return self.part(TopologyServices).eraser

    @cached_property
    def _signals(self) -> Signals:
        # Few operations are signals.
        from duetime.services.signals import Signals

        core = self.part(CoreServices)
        return Signals(core.stores, core.enqueuer, self.runtime)

    @cached_property
    def _filtered_schedules(self) -> FilteredSchedules:
        # The module for schedule times takes long to import, and few operations concern schedules.
        from duetime.composition.schedules import ScheduleServices
        from duetime.services.schedules.manage import FilteredSchedules

        return FilteredSchedules(self.part(ScheduleServices).manager, self.runtime.clock)


class BulkExecutorServices(Part):
    """Runs bulk operations."""

    @cached_property
    def executor(self) -> BulkExecutor:
        """Runs bulk operations."""
        topologies = self.part(TopologyServices)
        return BulkExecutor(
            store=self.part(CoreServices).stores.bulk,
            runtime=self.runtime,
            filter_steps=self.part(FilterActionServices).requests,
            topology_steps=TopologySteps(topologies.outlines, topologies.reconciler, topologies.node_eraser),
            purge_steps=lambda: self.part(PurgeServices).steps,
        )


class PurgeServices(Part):
    """Accepts purges, and carries them out."""

    @cached_property
    def purges(self) -> Purges:
        """Accepts purges."""
        from duetime.services.purges import Purges

        stores, operations = self.part(CoreServices).stores, self.part(BulkServices).operations
        return Purges(operations, stores, self.runtime)

    @cached_property
    def steps(self) -> PurgeSteps:
        """The steps of purges."""
        from duetime.adapters.archive_bucket import ArchiveBucket
        from duetime.contract.bulk.purges import PurgeBodies
        from duetime.services.purges import PurgeSteps, TaskPurger

        stores, bucket = self.part(CoreServices).stores, self.settings.archive_bucket
        control, eraser = self.part(TaskServices).control, self.part(TopologyServices).eraser
        return PurgeSteps(
            filtered_tasks=self.part(FilterActionServices).requests.filtered_tasks,
            task_purger=TaskPurger(control, eraser, stores, self.runtime),
            resources=lambda: self._resources,
            archive=ArchiveBucket(self.platform.clients.s3(), bucket) if bucket else None,
            stores=stores,
            runtime=self.runtime,
            read_request=PurgeBodies(),
        )

    @cached_property
    def _resources(self) -> OwnerResources:
        from duetime.composition.attempts import SwitchServices
        from duetime.composition.limits import LimitServices
        from duetime.composition.schedules import ScheduleServices
        from duetime.services.purges import OwnerResources

        core, schedules = self.part(CoreServices), self.part(ScheduleServices)
        return OwnerResources(
            schedules=schedules.manager,
            calendars=schedules.calendar_manager,
            definitions=core.topology_definitions,
            types=core.type_admin,
            switches=self.part(SwitchServices).admin,
            rates=self.part(LimitServices).rates,
            stores=core.stores,
            runtime=self.runtime,
        )


def read_bulk_request(kind: BulkKind, text: bytes) -> BulkRequest:
    """`duetime.ports.stores.BulkRequestReader`, with the models of the REST contract (pydantic)."""
    if kind.is_of_schedules:
        from duetime.contract.schedules import bodies

        return bodies.read_stored(kind, text)
    if kind is BulkKind.SIGNAL:
        from duetime.contract import signals

        return signals.read_stored(text)
    from duetime.contract.bulk.bodies import read_stored

    return read_stored(kind, text)
