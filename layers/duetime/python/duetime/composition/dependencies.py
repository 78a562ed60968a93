"""Composes what starts tasks after others; imported for the first task that waits for another."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.dependencies import DynamoDependentStore
from duetime.composition import Part
from duetime.composition.core import CoreServices
from duetime.services.dependencies import DependencyChecker, DependencyReader

if TYPE_CHECKING:
    from duetime.services.schedules.preview import AwaitedOccurrences


class DependencyServices(Part):
    """Starts tasks after others."""

    @cached_property
    def reader(self) -> DependencyReader:
        """Reads what tasks wait for."""
        return DependencyReader(self.part(CoreServices).stores.tasks, lambda: self._occurrences)

    @cached_property
    def _occurrences(self) -> AwaitedOccurrences:
        # Few of these tasks wait for an occurrence, and the modules for schedule times take long to import.
        from duetime.services.schedules.preview import AwaitedOccurrences

        return AwaitedOccurrences(self.part(CoreServices).stores, self.runtime.clock)

    @cached_property
    def checker(self) -> DependencyChecker:
        """Releases and ends tasks with dependencies."""
        core = self.part(CoreServices)
        return DependencyChecker(
            reader=self.reader,
            stores=core.stores,
            dependents=DynamoDependentStore(self.platform.clients.dynamodb(), self.settings.table),
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            retention=self.settings.retention,
        )
