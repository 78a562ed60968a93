"""`client.watch_tickets`: tickets for connections to the WebSocket API."""

from __future__ import annotations

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.task import ResponseModel

TICKETS = "/v1/watch-tickets"


class WatchTicket(ResponseModel):
    """A single-use ticket for one connection, valid for a number of seconds."""

    ticket: str
    url: str
    expires_in: int

    @property
    def address(self) -> str:
        """Where to connect."""
        return f"{self.url}?ticket={self.ticket}"


def create_watch_ticket() -> Request[WatchTicket]:
    """Creates a ticket."""
    return Request("POST", TICKETS, one(WatchTicket), repeatable=True)


class WatchTicketOperations(Resource):
    """Tickets for WebSocket connections; `tasks.watch` and similar methods create tickets themselves."""

    @Operation
    def create(self) -> Request[WatchTicket]:
        """Create a ticket for one connection to the WebSocket API."""
        return create_watch_ticket()


class WatchTickets(WatchTicketOperations, SyncResource):
    """`client.watch_tickets` of `Client`."""


class AsyncWatchTickets(WatchTicketOperations, AsyncResource):
    """`client.watch_tickets` of `AsyncClient`."""
