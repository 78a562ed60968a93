"""`client.dispatch`: progress of dispatch, for operators."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made

from pydantic import Field

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.task import ResponseModel

DISPATCH = "/v1/dispatch"


class Queue(ResponseModel):
    """The approximate number of messages in a queue.

    Attributes:
        priority: Priority of the queue's tasks; `None` for the queue of a pulled type.
        pulled_type: The type that pull workers lease from the queue.
    """

    priority: str | None = None
    pulled_type: str | None = None
    waiting: int
    delayed: int
    in_flight: int


class ShardGroup(ResponseModel):
    """A group of shards, read by one trigger invocation at a time.

    Attributes:
        read_by: Id of the invocation that is reading the group, or was the last to read it.
        epoch: How many times the group has passed from one invocation to another.
        dispatched_until: All tasks of the group that are due before this time have been queued.
    """

    group: int
    first_shard: int
    last_shard: int
    read_by: str | None = None
    epoch: int
    dispatched_until: datetime | None = None


class DispatchStatus(ResponseModel):
    """Progress of dispatch for the tasks of all owners.

    Attributes:
        last_tick_at: The last minute whose tick read all records that were due for dispatch.
        dispatched_until: All tasks that are due before this time have been queued.
    """

    last_tick_at: datetime | None = None
    dispatched_until: datetime | None = None
    queues: list[Queue]
    groups: list[ShardGroup] = Field(default_factory=list)


class DispatchOperations(Resource):
    """The state of dispatch."""

    @Operation
    def get_status(self) -> Request[DispatchStatus]:
        """Get when the trigger last ran, what reads each shard group, and how long the queues are; for operators."""
        return Request("GET", DISPATCH, one(DispatchStatus))


class DispatchResource(DispatchOperations, SyncResource):
    """`client.dispatch` of `Client`."""


class AsyncDispatchResource(DispatchOperations, AsyncResource):
    """`client.dispatch` of `AsyncClient`."""
