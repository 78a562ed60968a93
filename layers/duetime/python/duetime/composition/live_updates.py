"""Composes live updates: tickets and connections of clients that watch, and the push of changes to them."""

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
        """Opens and closes connections, and takes their subscriptions."""
        stores = DynamoStores(self.platform.clients, self.settings, self.runtime)
        return WatchConnections(stores.subscriptions, TaskReader(stores, archive=None), stores.schedules, self.runtime)

    @property
    def sender(self) -> ConnectionSender:
        """Writes to connections."""
        return self.part(PushServices).sender

    @property
    def encoder(self) -> MessageEncoder:
        """Puts messages into the words of the protocol."""
        return self.part(PushServices).encoder


class PushServices(Part):
    """Telling connections of changes."""

    @cached_property
    def sender(self) -> ApiGatewaySender:
        """Writes to connections."""
        return ApiGatewaySender(self.platform.clients.connections(self.settings.watch_endpoint), self.runtime.telemetry)

    @cached_property
    def encoder(self) -> JsonEncoder:
        """Puts messages into the words of the protocol."""
        return JsonEncoder()

    @cached_property
    def pusher(self) -> ChangePusher:
        """Tells connections of changes."""
        store = DynamoWatchStore(self.platform.clients.dynamodb(), self.settings.table)
        return ChangePusher(store, self.sender, self.encoder, self.runtime)


class WatchTicketServices(Part):
    """Issuing tickets."""

    @cached_property
    def tickets(self) -> WatchTickets:
        """Issues tickets."""
        return WatchTickets(self.part(CoreServices).stores.subscriptions, self.runtime, self.settings.watch_url)
