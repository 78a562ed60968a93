"""Bodies of requests that the scheduler sends: callbacks, and requests to HTTP targets."""

from __future__ import annotations

from typing import (
    Annotated,
    Any,
    NotRequired,  # pydantic requires it before Python 3.12
)

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.tasks.responses import Instant, TaskSummary
from duetime.domain.tasks.parent_references import Cause


class TaskEvent(TypedDict):
    """The outcome of a task, as posted to its callback URL, in the format of Standard Webhooks."""

    type: Annotated[
        str,
        Field(
            description="`task.` and the state that the task has reached: succeeded, failed, cancelled or rolled_back.",
            examples=["task.succeeded"],
        ),
    ]
    timestamp: Annotated[Instant, Field(description="When it reached that state.")]
    console_url: NotRequired[
        Annotated[
            str,
            Field(
                description="Address of the task's page in the console; missing if the deployment serves no console."
            ),
        ]
    ]
    data: Annotated[TaskSummary, Field(description="The task as in lists, without payload and result.")]


class RunSchedule(TypedDict):
    """The schedule that a task, or its topology, is a run of."""

    name: Annotated[str, Field(description="Name of the schedule.")]
    scheduled_at: Annotated[Instant, Field(description="The nominal time of this run.")]
    previous_at: Annotated[Instant | None, Field(description="The schedule's time before that one; null for none.")]
    next_at: Annotated[Instant | None, Field(description="The schedule's time after that one; null for none.")]
    cause: Annotated[Cause, Field(description="Why the schedule created the task.")]


class RunTopology(TypedDict):
    """The topology that a task is a node of."""

    id: Annotated[str, Field(description="Id of the topology.")]
    run: Annotated[int, Field(description="Number of the topology's run; the first is 1.")]
    node: Annotated[str, Field(description="Name of the node.")]


class TargetRequest(TypedDict):
    """The task in a request to an HTTP target."""

    task_id: Annotated[str, Field(description="The task's id: the same for every attempt.")]
    type: Annotated[str, Field(description="The task's type.")]
    attempt: Annotated[int, Field(description="Number of the attempt; the first is 1.")]
    fence: Annotated[int, Field(description="The fence of this attempt; a later attempt has a higher one.")]
    deadline: Annotated[Instant, Field(description="When the attempt must have ended.")]
    due_at: Annotated[Instant, Field(description="When the task was due.")]
    created_at: Annotated[Instant, Field(description="When the task was created.")]
    lateness_ms: Annotated[
        int | None, Field(description="How long after its due time the first attempt started, in milliseconds.")
    ]
    schedule: NotRequired[
        Annotated[
            RunSchedule, Field(description="Missing if neither the task nor its topology is a run of a schedule.")
        ]
    ]
    topology: NotRequired[Annotated[RunTopology, Field(description="Only for a node of a topology.")]]
    tags: NotRequired[Annotated[dict[str, str], Field(description="The task's tags; missing if it has none.")]]
    inputs: NotRequired[
        Annotated[
            dict[str, Any],
            Field(description="Results of the nodes in `inputs`, by their names; only for a node of a topology."),
        ]
    ]
    traceparent: NotRequired[
        Annotated[
            str,
            Field(
                description="The trace in which the task was created, by W3C Trace Context; also in the header of this "
                "name. Missing if the request named none."
            ),
        ]
    ]
    payload: Annotated[Any, Field(description="The task's payload, with its placeholders replaced.")]


MODELS: tuple[type, ...] = (TaskEvent, TargetRequest)
