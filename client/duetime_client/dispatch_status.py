"""`client.dispatch`: how far dispatch has come, for operators."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.task import ResponseModel

DISPATCH = "/v1/dispatch"


class Queue(ResponseModel):
    """About how many messages a queue has.

    Attributes:
        priority: Of its tasks; nothing for the queue of a pulled type.
        pulled_type: The type that pull workers lease from it.
    """

    priority: str | None = None
    pulled_type: str | None = None
    waiting: int
    delayed: int
    in_flight: int


class DispatchStatus(ResponseModel):
    """How far dispatch has come, of the tasks of all owners.

    Attributes:
        last_tick_at: The minute in which the trigger last read all that it should have read by then.
        dispatched_until: What was due before is on queues.
    """

    last_tick_at: datetime | None = None
    dispatched_until: datetime | None = None
    queues: list[Queue]


class DispatchOperations(Resource):
    """The state of dispatch."""

    @Operation
    def get_status(self) -> Request[DispatchStatus]:
        """When the trigger last ran, and how many messages the queues have; for operators."""
        return Request("GET", DISPATCH, one(DispatchStatus))


class DispatchResource(DispatchOperations, SyncResource):
    """`client.dispatch` of `Client`."""


class AsyncDispatchResource(DispatchOperations, AsyncResource):
    """`client.dispatch` of `AsyncClient`."""
