"""Composes what is done with all tasks of a filter."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.bulk import BulkServices
from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import read_bulk_request
from duetime.composition.root import Part
from duetime.composition.tasks import TaskServices
from duetime.services.bulk.filter_actions import BulkRequests
from duetime.services.bulk.filtered_tasks import FilteredTasks


class FilterActionServices(Part):
    """Doing something with all tasks of a filter."""

    @cached_property
    def requests(self) -> BulkRequests:
        """Does something with the tasks that a filter matches."""
        stores, tasks = self.part(CoreServices).stores, self.part(TaskServices)
        filtered_tasks = FilteredTasks(stores.tasks, tasks.reader, tasks.updater, tasks.control, self.runtime)
        operations = self.part(BulkServices).operations
        return BulkRequests(operations, filtered_tasks, stores, self.runtime, read_bulk_request)
