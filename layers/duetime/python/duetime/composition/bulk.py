"""Composes bulk operations: actions on all tasks that match a filter, and their execution."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition.core import BulkServices, CoreServices
from duetime.composition.deferred_imports import deferred, read_bulk_request
from duetime.composition.root import Part
from duetime.composition.tasks import TaskServices
from duetime.composition.topologies import TopologyServices
from duetime.services.bulk.executor import BulkExecutor
from duetime.services.bulk.filter_actions import BulkRequests, FilteredTasks
from duetime.services.topologies.bulk_node_actions import TopologySteps

if TYPE_CHECKING:
    from duetime.services.schedules.filtered_schedules import FilteredSchedules


class FilterActionServices(Part):
    """Actions on all tasks that match a filter."""

    @cached_property
    def requests(self) -> BulkRequests:
        """Applies actions to the tasks that match a filter."""
        stores, tasks = self.part(CoreServices).stores, self.part(TaskServices)
        filtered_tasks = FilteredTasks(stores.tasks, tasks.reader, tasks.updater, tasks.control, self.runtime)
        operations = self.part(BulkServices).operations
        schedules = deferred(self._filtered_schedules)
        return BulkRequests(operations, filtered_tasks, schedules, stores, self.runtime, read_bulk_request)

    def _filtered_schedules(self) -> FilteredSchedules:
        # The module for schedule times takes long to import, and few operations concern schedules.
        from duetime.composition.requests import ScheduleRequestServices
        from duetime.services.schedules.filtered_schedules import FilteredSchedules

        return FilteredSchedules(self.part(ScheduleRequestServices).manager, self.runtime.clock)


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
        )
