"""Composes the consumers of the table's stream that the settings turn on, and the reader of the counts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.stream import changes_of
from duetime.adapters.dynamodb.summary import DynamoSummaryStore
from duetime.adapters.dynamodb.summary_recount import DynamoSummaryRecounts
from duetime.adapters.event_bus import EventBridgeBus
from duetime.composition.core import CoreServices
from duetime.composition.live_updates import PushServices
from duetime.composition.root import Part
from duetime.services.broadcaster import Broadcaster
from duetime.services.event_publisher import EventPublisher
from duetime.services.summary.counter import Generations, SummaryCounter, SummaryRecounter
from duetime.services.summary.reader import SummaryReader
from duetime.services.task_lists.updater import TaskListUpdater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from duetime.domain.change_events import ChangeBatch
    from duetime.ports.change_consumers import ChangeConsumer


class BroadcastServices(Part):
    """Publishes changes."""

    @cached_property
    def broadcaster(self) -> Broadcaster:
        """Passes changes to every consumer that is turned on."""
        return Broadcaster(self._exact(), self._best_effort(), self.runtime.telemetry)

    def changes(self, event: Mapping[str, Any]) -> ChangeBatch:
        """The changes in a Lambda event from the table's stream; unreadable ones are noted and left out."""
        return changes_of(event, self.runtime.telemetry)

    @cached_property
    def recounter(self) -> SummaryRecounter:
        """Counts tasks that their changes do not count."""
        summary, settings = self.part(SummaryServices), self.settings
        pages, spread = settings.summary_recount_megabytes, settings.summary_spread
        return SummaryRecounter(summary.recounts, summary.store, spread, self._generations, self.runtime, pages)

    @cached_property
    def _generations(self) -> Generations:
        is_recounting = self.settings.summary_recount_megabytes > 0
        return Generations(self.part(SummaryServices).recounts, self.runtime, is_recounting=is_recounting)

    def _exact(self) -> list[ChangeConsumer]:
        spread, summary = self.settings.summary_spread, self.part(SummaryServices)
        consumers: list[ChangeConsumer] = []
        if spread:
            consumers.append(SummaryCounter(summary.store, self.runtime, spread, self._generations, summary.recounts))
        if self.settings.task_lists:
            stores = self.part(CoreServices).stores
            consumers.append(TaskListUpdater(stores.tasks, stores.task_lists, self.runtime, self.settings.retention_ms))
        return consumers

    def _best_effort(self) -> list[ChangeConsumer]:
        bus = self.settings.event_bus
        return [self.part(PushServices).pusher, *([self._event_publisher(bus)] if bus else [])]

    def _event_publisher(self, name: str) -> EventPublisher:
        telemetry = self.runtime.telemetry
        bus = EventBridgeBus(self.platform.clients.events(), name, self.runtime.executor, telemetry)
        return EventPublisher(bus, telemetry)


class SummaryServices(Part):
    """Counts of tasks."""

    @cached_property
    def store(self) -> DynamoSummaryStore:
        """The counts; separate from the other stores, as only two functions use them."""
        return DynamoSummaryStore(self.platform.clients.dynamodb(), self.settings.table)

    @cached_property
    def recounts(self) -> DynamoSummaryRecounts:
        """The generations of the counts, and the results of recounts."""
        return DynamoSummaryRecounts(self.platform.clients.dynamodb(), self.settings.table, self.runtime.clock)

    @cached_property
    def reader(self) -> SummaryReader:
        """Reads the counts."""
        settings = self.settings
        return SummaryReader(self.store, self.recounts, self.runtime, settings.summary_spread, settings.operators)
