"""Handler for live update tickets."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.stream import WatchTicketServices
from duetime.contract.live_updates import operations
from duetime.contract.tasks.encoding import json_text

from .requests import session_end
from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(operations.CREATE_TICKET)
def create_watch_ticket(request: Request) -> Response:
    """Issue a ticket."""
    tickets = composed(WatchTicketServices).tickets
    ticket = tickets.issue(request.owner, session_end(request.event, composed().runtime.now()))
    return answer(json_text(operations.ticket_response(ticket, tickets.url)), HTTPStatus.CREATED)
