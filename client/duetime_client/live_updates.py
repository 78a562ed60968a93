"""Live updates: changes of tasks and schedules as they happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.transport import Transport

TICKETS = "/v1/watch-tickets"


class WatchTicket(ResponseModel):
    """Opens one connection, once, within so many seconds."""

    ticket: str
    url: str
    expires_in: int

    @property
    def address(self) -> str:
        """Where to connect."""
        return f"{self.url}?ticket={self.ticket}"


class LiveUpdates:
    """The client's methods for live updates."""

    _transport: Transport

    def create_watch_ticket(self) -> WatchTicket:
        """A ticket for one connection to the WebSocket API."""
        response = self._transport.request("POST", TICKETS, repeatable=True)
        return read(WatchTicket, response, document_of(response))
