"""Composes the connections of clients that watch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.stores import DynamoStores
from duetime.composition.live_update_push import PushServices
from duetime.composition.root import Part
from duetime.services.live_updates.connections import WatchConnections
from duetime.services.tasks.read import TaskReader

if TYPE_CHECKING:
    from duetime.ports.live_updates import ConnectionSender, MessageEncoder


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
