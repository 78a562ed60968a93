"""Composes the counter and the reader of task counts."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.dynamodb.summary import DynamoSummaryStore
from duetime.composition.root import Part
from duetime.services.summary.reader import SummaryReader


class SummaryServices(Part):
    """How many tasks there are."""

    @cached_property
    def store(self) -> DynamoSummaryStore:
        """The counts; apart from the other stores, for two functions only have to do with them."""
        return DynamoSummaryStore(self.platform.clients.dynamodb(), self.settings.table)

    @cached_property
    def reader(self) -> SummaryReader:
        """Reads the counts."""
        return SummaryReader(self.store, self.runtime.executor, self.settings.summary_spread)
