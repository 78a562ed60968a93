"""The bodies of the requests that the scheduler itself makes: of callbacks, and to HTTP targets."""

from __future__ import annotations

from typing import (
    Annotated,
    Any,
    NotRequired,  # pydantic describes no other before Python 3.12
)

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.tasks.responses import Instant, TaskSummary  # noqa: TC001 - pydantic reads them at run time


class TaskEvent(TypedDict):
    """The outcome of a task, as it is posted to its callback URL; the form is that of Standard Webhooks."""

    type: Annotated[
        str,
        Field(
            description="`task.` and the state that the task has reached: succeeded, failed, cancelled or rolled_back.",
            examples=["task.succeeded"],
        ),
    ]
    timestamp: Annotated[Instant, Field(description="When it reached that state.")]
    data: Annotated[TaskSummary, Field(description="The task as lists show it, without payload and result.")]


class TargetRequest(TypedDict):
    """The task that an HTTP target is called with."""

    task_id: Annotated[str, Field(description="The task's id: the same for every attempt.")]
    type: Annotated[str, Field(description="The task's type.")]
    attempt: Annotated[int, Field(description="Number of the attempt; the first is 1.")]
    fence: Annotated[int, Field(description="The fence of this attempt; a later attempt has a higher one.")]
    deadline: Annotated[Instant, Field(description="When the attempt must have ended.")]
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
    payload: Annotated[Any, Field(description="The task's payload, as it was given.")]


MODELS: tuple[type, ...] = (TaskEvent, TargetRequest)
