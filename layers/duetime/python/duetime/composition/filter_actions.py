"""Composes what is done with all tasks of a filter."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition.bulk import BulkServices
from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import deferred, read_bulk_request
from duetime.composition.root import Part
from duetime.composition.tasks import TaskServices
from duetime.services.bulk.filter_actions import BulkRequests, FilteredTasks

if TYPE_CHECKING:
    from duetime.services.schedules.filtered_schedules import FilteredSchedules


class FilterActionServices(Part):
    """Doing something with all tasks of a filter."""

    @cached_property
    def requests(self) -> BulkRequests:
        """Does something with the tasks that a filter matches."""
        stores, tasks = self.part(CoreServices).stores, self.part(TaskServices)
        filtered_tasks = FilteredTasks(stores.tasks, tasks.reader, tasks.updater, tasks.control, self.runtime)
        operations = self.part(BulkServices).operations
        schedules = deferred(self._filtered_schedules)
        return BulkRequests(operations, filtered_tasks, schedules, stores, self.runtime, read_bulk_request)

    def _filtered_schedules(self) -> FilteredSchedules:
        # The arithmetic of schedules takes long to import, and few operations are about them.
        from duetime.composition.schedule_requests import ScheduleRequestServices  # noqa: PLC0415 - see above
        from duetime.services.schedules.filtered_schedules import FilteredSchedules  # noqa: PLC0415 - see above

        return FilteredSchedules(self.part(ScheduleRequestServices).manager, self.runtime.clock)
