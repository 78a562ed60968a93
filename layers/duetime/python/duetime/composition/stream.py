"""Composes the consumers of the table's stream, which write counts, live updates, events and the archive.

Only the modules for live updates are imported at once, because clients wait for these updates.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.live_updates import DynamoWatchStore
from duetime.adapters.dynamodb.stores import DynamoStores
from duetime.adapters.websocket import ApiGatewaySender
from duetime.composition import Part
from duetime.composition.core import CoreServices, SummaryServices
from duetime.contract.live_updates.encoding import JsonEncoder
from duetime.services.live_updates import ChangePusher, WatchConnections, WatchTickets
from duetime.services.tasks.read import TaskReader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from duetime.domain.archive_objects import RemovedBatch
    from duetime.domain.change_events import ChangeBatch
    from duetime.ports.change_consumers import ChangeConsumer
    from duetime.ports.stores import ConnectionSender, MessageEncoder
    from duetime.services.archiver import TaskArchiver
    from duetime.services.broadcaster import Broadcaster, EventPublisher
    from duetime.services.summary import Generations, SummaryRecounter


class BroadcastServices(Part):
    """Passes changes from the table's stream to consumers."""

    @cached_property
    def broadcaster(self) -> Broadcaster:
        """Passes changes to every enabled consumer."""
        from duetime.services.broadcaster import Broadcaster

        return Broadcaster(self._exact(), self._best_effort(), self.runtime.telemetry)

    def changes(self, event: Mapping[str, Any]) -> ChangeBatch:
        """The changes in a Lambda event from the table's stream. Unreadable records are logged and left out."""
        from duetime.adapters.dynamodb.stream import changes_of

        return changes_of(event, self.runtime.telemetry)

    @cached_property
    def recounter(self) -> SummaryRecounter:
        """Counts tasks whose changes were not counted."""
        from duetime.services.summary import SummaryRecounter

        summary, settings = self.part(SummaryServices), self.settings
        pages, spread = settings.summary_recount_megabytes, settings.summary_spread
        return SummaryRecounter(summary.recounts, summary.store, spread, self._generations, self.runtime, pages)

    @cached_property
    def _generations(self) -> Generations:
        from duetime.services.summary import Generations

        is_recounting = self.settings.summary_recount_megabytes > 0
        return Generations(self.part(SummaryServices).recounts, self.runtime, is_recounting=is_recounting)

    def _exact(self) -> list[ChangeConsumer]:
        spread, summary = self.settings.summary_spread, self.part(SummaryServices)
        consumers: list[ChangeConsumer] = []
        if spread:
            from duetime.services.summary import SummaryCounter

            consumers.append(SummaryCounter(summary.store, self.runtime, spread, self._generations, summary.recounts))
        if self.settings.task_lists:
            from duetime.domain.operating_parameters import LIST_FROM
            from duetime.services.task_lists.updater import TaskListUpdater

            stores = self.part(CoreServices).stores
            retention = self.settings.retention
            consumers.append(TaskListUpdater(stores.tasks, stores.task_lists, self.runtime, retention, LIST_FROM))
        return consumers

    def _best_effort(self) -> list[ChangeConsumer]:
        bus = self.settings.event_bus
        return [self.part(PushServices).pusher, *([self._event_publisher(bus)] if bus else [])]

    def _event_publisher(self, name: str) -> EventPublisher:
        from duetime.adapters.event_bus import EventBridgeBus
        from duetime.services.broadcaster import EventPublisher

        telemetry = self.runtime.telemetry
        bus = EventBridgeBus(self.platform.clients.events(), name, self.runtime.executor, telemetry)
        return EventPublisher(bus, telemetry)


class PushServices(Part):
    """Pushes changes to WebSocket connections."""

    @cached_property
    def sender(self) -> ApiGatewaySender:
        """Sends messages to connections."""
        return ApiGatewaySender(self.platform.clients.connections(self.settings.watch_endpoint), self.runtime.telemetry)

    @cached_property
    def encoder(self) -> JsonEncoder:
        """Encodes messages in the protocol's format."""
        return JsonEncoder()

    @cached_property
    def pusher(self) -> ChangePusher:
        """Sends changes to connections."""
        store = DynamoWatchStore(self.platform.clients.dynamodb(), self.settings.table)
        return ChangePusher(store, self.sender, self.encoder, self.runtime)


class WatchServices(Part):
    """Manages WebSocket connections and their subscriptions."""

    @cached_property
    def connections(self) -> WatchConnections:
        """Opens and closes connections, and manages their subscriptions."""
        stores = DynamoStores(self.platform.clients, self.settings, self.runtime)
        reader = TaskReader(stores, None, self.runtime.clock, self.runtime.executor)
        return WatchConnections(stores.subscriptions, reader, stores.schedules, self.runtime)

    @property
    def sender(self) -> ConnectionSender:
        """Sends messages to connections."""
        return self.part(PushServices).sender

    @property
    def encoder(self) -> MessageEncoder:
        """Encodes messages in the protocol's format."""
        return self.part(PushServices).encoder


class WatchTicketServices(Part):
    """Issues tickets."""

    @cached_property
    def tickets(self) -> WatchTickets:
        """Issues tickets."""
        return WatchTickets(self.part(CoreServices).stores.subscriptions, self.runtime, self.settings.watch_url)


class ArchiveServices(Part):
    """Copies removed records to the archive."""

    @cached_property
    def archiver(self) -> TaskArchiver:
        """Writes removed tasks to the archive."""
        from duetime.adapters.archive_bucket import ArchiveBucket
        from duetime.adapters.content_store import SplitContentStore
        from duetime.contract.archive import JsonLines
        from duetime.services.archiver import TaskArchiver

        clients, settings = self.platform.clients, self.settings
        s3 = clients.s3()
        # No bucket is given, because the archive does not copy contents in S3.
        contents = SplitContentStore(clients.dynamodb(), settings.table, s3, bucket="")
        bucket, policy = ArchiveBucket(s3, settings.archive_bucket), settings.archive_retention
        return TaskArchiver(bucket, JsonLines(settings.redaction), contents, self.runtime, policy)

    def removed(self, event: Mapping[str, Any]) -> RemovedBatch:
        """The removed records in a Lambda event from the table's stream."""
        from duetime.adapters.dynamodb.stream import removed_batch

        return removed_batch(event, self.runtime.telemetry)
