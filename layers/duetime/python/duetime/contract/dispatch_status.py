"""Dispatch status over REST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.mapping import response_of
from duetime.contract.tasks.responses import Instant
from duetime.domain.callers import Role
from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from duetime.domain.dispatch.cursors import DispatchStatus, ShardGroup, WorkQueue


class QueueResponse(TypedDict):
    """A queue between the trigger and the workers. The counts are approximate."""

    priority: Annotated[
        Priority | None, Field(description="Priority of the queue's tasks; null for a pulled type's queue.")
    ]
    pulled_type: Annotated[
        str | None,
        Field(description="Type whose tasks pull workers lease from the queue; null for a priority's queue."),
    ]
    waiting: Annotated[int, Field(description="Messages that can be received now.")]
    delayed: Annotated[int, Field(description="Messages that cannot be received yet, because their tasks are not due.")]
    in_flight: Annotated[int, Field(description="Messages that a worker has received but not yet deleted.")]


class ShardGroupResponse(TypedDict):
    """A group of shards, which only one invocation of the trigger reads at a time."""

    group: Annotated[int, Field(description="Number of the group.")]
    first_shard: Annotated[int, Field(description="First shard of the group.")]
    last_shard: Annotated[int, Field(description="Last shard of the group.")]
    read_by: Annotated[
        str | None,
        Field(
            description="Id of the current or last invocation that reads the group; null before the first invocation."
        ),
    ]
    epoch: Annotated[int, Field(description="How often another invocation has taken over the group.")]
    dispatched_until: Annotated[
        Instant | None,
        Field(description="Due time up to which the group's tasks are on queues; null before the first read."),
    ]


class DispatchResponse(TypedDict):
    """The progress of dispatch for all owners' tasks."""

    last_tick_at: Annotated[
        Instant | None,
        Field(
            description="The last minute in which the trigger, which runs every minute, completed all reads; null "
            "before its first run."
        ),
    ]
    dispatched_until: Annotated[
        Instant | None,
        Field(
            description="Due time up to which all tasks are on queues; null before the trigger's first run. Unless "
            "dispatch is late, this time is ahead of the current time by the setting `look_ahead_seconds`."
        ),
    ]
    queues: Annotated[
        Sequence[QueueResponse], Field(description="The queue of each priority, then the queue of each pulled type.")
    ]
    groups: Annotated[Sequence[ShardGroupResponse], Field(description="The groups of shards, in order.")]


def dispatch_response(status: DispatchStatus) -> DispatchResponse:
    """The response for a dispatch status."""
    groups = [_group(each) for each in status.groups]
    return response_of(DispatchResponse, status, queues=[_queue(each) for each in status.queues], groups=groups)


def _group(group: ShardGroup) -> ShardGroupResponse:
    return response_of(ShardGroupResponse, group)


def _queue(queue: WorkQueue) -> QueueResponse:
    priority = None if queue.pulled_type else queue.priority
    return response_of(QueueResponse, queue.depth, priority=priority, pulled_type=queue.pulled_type)


GET = Operation(
    "getDispatchStatus",
    "GET /v1/dispatch",
    "Get the state of dispatch",
    Returns(DispatchResponse, "The state of dispatch."),
    description="For operators. Shows when the trigger last ran, which invocations read which shards, and how many "
    "messages are on the queues, for the tasks of all owners.",
    role=Role.OPERATOR,
)
