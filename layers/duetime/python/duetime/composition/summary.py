"""Composes what counts tasks, and what reads the counts."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.dynamodb.summary import DynamoSummaryStore
from duetime.adapters.dynamodb.summary_recount import DynamoSummaryRecounts
from duetime.composition.root import Part
from duetime.services.summary.reader import SummaryReader


class SummaryServices(Part):
    """How many tasks there are."""

    @cached_property
    def store(self) -> DynamoSummaryStore:
        """The counts; apart from the other stores, for two functions only have to do with them."""
        return DynamoSummaryStore(self.platform.clients.dynamodb(), self.settings.table)

    @cached_property
    def recounts(self) -> DynamoSummaryRecounts:
        """The generations of the counts, and what recounts find."""
        return DynamoSummaryRecounts(self.platform.clients.dynamodb(), self.settings.table, self.runtime.clock)

    @cached_property
    def reader(self) -> SummaryReader:
        """Reads the counts."""
        settings = self.settings
        return SummaryReader(self.store, self.recounts, self.runtime, settings.summary_spread, settings.operators)
