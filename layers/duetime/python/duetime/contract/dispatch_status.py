"""Dispatch status over REST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.mapping import response_of
from duetime.contract.tasks.responses import Instant
from duetime.domain.callers import Role
from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from duetime.domain.dispatch.cursors import DispatchStatus, ShardGroup, WorkQueue


class QueueResponse(TypedDict):
    """A queue between the trigger and the workers. SQS counts approximately."""

    priority: Annotated[
        Priority | None, Field(description="Priority of its tasks; null for the queue of a pulled type.")
    ]
    pulled_type: Annotated[
        str | None, Field(description="Type whose tasks pull workers lease from it; null for the queue of a priority.")
    ]
    waiting: Annotated[int, Field(description="Messages that can be received now.")]
    delayed: Annotated[int, Field(description="Messages that can be received later: their tasks are not due yet.")]
    in_flight: Annotated[int, Field(description="Messages that a worker has received and not deleted yet.")]


class ShardGroupResponse(TypedDict):
    """A group of shards, which one invocation of the trigger reads at a time."""

    group: Annotated[int, Field(description="Its number.")]
    first_shard: Annotated[int, Field(description="The first of its shards.")]
    last_shard: Annotated[int, Field(description="The last of its shards.")]
    read_by: Annotated[
        str | None,
        Field(description="Id of the invocation that reads it, or read it last; null before the first one."),
    ]
    epoch: Annotated[int, Field(description="How often it has passed from one invocation to another.")]
    dispatched_until: Annotated[
        Instant | None,
        Field(description="All of its tasks that were due before this are on queues; null if it was not read yet."),
    ]


class DispatchResponse(TypedDict):
    """The progress of dispatch, for the tasks of all owners."""

    last_tick_at: Annotated[
        Instant | None,
        Field(
            description="The last minute in which the trigger read everything that it should have; null if it has not "
            "run yet. It runs every minute."
        ),
    ]
    dispatched_until: Annotated[
        Instant | None,
        Field(
            description="The trigger has put all tasks that were due before this on queues; null if it has not run "
            "yet. It is ahead of the present by `look_ahead_seconds` of the settings unless dispatch is late."
        ),
    ]
    queues: Annotated[
        Sequence[QueueResponse], Field(description="The queue of each priority, then that of each pulled type.")
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
    description="When the trigger last ran, who reads which shards, and how many messages the queues have, for "
    "operators. It concerns the tasks of all owners.",
    role=Role.OPERATOR,
)
