"""Composes the push of changes to the connections that watch them."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.dynamodb.live_updates import DynamoWatchStore
from duetime.adapters.websocket import ApiGatewaySender
from duetime.composition.root import Part
from duetime.contract.live_updates.encoding import JsonEncoder
from duetime.services.live_updates.push import ChangePusher


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
