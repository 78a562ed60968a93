"""Composes the issuing of tickets for WebSocket connections."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.services.live_updates.connections import WatchTickets


class WatchTicketServices(Part):
    """Issuing tickets."""

    @cached_property
    def tickets(self) -> WatchTickets:
        """Issues tickets."""
        return WatchTickets(self.part(CoreServices).stores.subscriptions, self.runtime, self.settings.watch_url)
