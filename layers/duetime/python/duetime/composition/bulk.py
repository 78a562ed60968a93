"""Composes the starting of bulk operations."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.bulk_invoker import LambdaBulkStarter
from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import read_bulk_request
from duetime.composition.root import Part
from duetime.composition.tasks import TaskServices
from duetime.services.bulk.filter_actions import BulkRequests
from duetime.services.bulk.filtered_tasks import FilteredTasks
from duetime.services.bulk.manage import BulkOperations


class BulkServices(Part):
    """Doing something with many tasks."""

    @cached_property
    def requests(self) -> BulkRequests:
        """Does something with the tasks that a filter matches."""
        stores, tasks = self.part(CoreServices).stores, self.part(TaskServices)
        filtered_tasks = FilteredTasks(stores.tasks, tasks.reader, tasks.updater, tasks.control, self.runtime)
        return BulkRequests(self.operations, filtered_tasks, stores, self.runtime, read_bulk_request)

    @cached_property
    def operations(self) -> BulkOperations:
        """Starts, shows and cancels bulk operations."""
        core, settings = self.part(CoreServices), self.settings
        return BulkOperations(
            stores=core.stores,
            starter=LambdaBulkStarter(self.platform.clients.lambdas(), settings.bulk_function, self.runtime.telemetry),
            runtime=self.runtime,
            shards=core.shards,
            look_ahead=settings.look_ahead_ms,
        )
