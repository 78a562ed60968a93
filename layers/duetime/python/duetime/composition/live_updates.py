"""Composes live updates: tickets and connections of clients, and the push of changes to them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.live_updates import DynamoWatchStore
from duetime.adapters.dynamodb.stores import DynamoStores
from duetime.adapters.websocket import ApiGatewaySender
from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.contract.live_updates.encoding import JsonEncoder
from duetime.services.live_updates.connections import WatchConnections, WatchTickets
from duetime.services.live_updates.push import ChangePusher
from duetime.services.tasks.read import TaskReader

if TYPE_CHECKING:
    from duetime.ports.stores import ConnectionSender, MessageEncoder


class WatchServices(Part):
    """Connections, and their subscriptions."""

    @cached_property
    def connections(self) -> WatchConnections:
        """Opens and closes connections, and manages their subscriptions."""
        stores = DynamoStores(self.platform.clients, self.settings, self.runtime)
        reader = TaskReader(stores, archive=None, clock=self.runtime.clock)
        return WatchConnections(stores.subscriptions, reader, stores.schedules, self.runtime)

    @property
    def sender(self) -> ConnectionSender:
        """Sends messages to connections."""
        return self.part(PushServices).sender

    @property
    def encoder(self) -> MessageEncoder:
        """Encodes messages in the protocol's format."""
        return self.part(PushServices).encoder


class PushServices(Part):
    """Pushes changes to connections."""

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


class WatchTicketServices(Part):
    """Issues tickets."""

    @cached_property
    def tickets(self) -> WatchTickets:
        """Issues tickets."""
        return WatchTickets(self.part(CoreServices).stores.subscriptions, self.runtime, self.settings.watch_url)
