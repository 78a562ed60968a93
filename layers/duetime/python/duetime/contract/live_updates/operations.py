"""The operation that creates a ticket for a WebSocket connection."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.tasks.operations import EmptyRequest
from duetime.domain.callers import Role
from duetime.domain.limits import WATCH_TICKET_LIFE
from duetime.domain.times import SECOND


class WatchTicketResponse(TypedDict):
    """Opens one WebSocket connection."""

    ticket: Annotated[str, Field(description="The ticket, which opens a single connection.")]
    url: Annotated[
        str,
        Field(
            description="URL to connect to, after appending `?ticket=` and the ticket.",
            json_schema_extra={"format": "uri"},
        ),
    ]
    expires_in: Annotated[int, Field(description="How long the ticket is valid, in seconds.")]


def ticket_response(ticket: str, url: str) -> WatchTicketResponse:
    """The response for a ticket."""
    return WatchTicketResponse(ticket=ticket, url=url, expires_in=WATCH_TICKET_LIFE // SECOND)


CREATE_TICKET = Operation(
    "createWatchTicket",
    "POST /v1/watch-tickets",
    "Create a ticket for live updates",
    Returns(WatchTicketResponse, "The ticket.", status=201),
    description="Opens a WebSocket connection that sends changes to your tasks and schedules as they "
    "happen. The messages are described in the AsyncAPI document.",
    body=EmptyRequest,
    role=Role.READER,
)
