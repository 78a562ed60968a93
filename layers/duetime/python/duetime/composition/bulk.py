"""Composes the starting of bulk operations."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.bulk_invoker import LambdaBulkStarter
from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.services.bulk.manage import BulkOperations


class BulkServices(Part):
    """Starting, showing and cancelling bulk operations."""

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
