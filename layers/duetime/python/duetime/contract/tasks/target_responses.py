"""What a task calls, in responses."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12


class HandlerTargetResponse(TypedDict):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class HttpTargetResponse(TypedDict):
    """An HTTP endpoint."""

    kind: Literal["http"]
    url: str
    phases: Annotated[
        Sequence[Literal["prepare", "clean", "rollback"]],
        Field(description="Phases that the endpoint supports besides `run`."),
    ]
    queries: Annotated[
        Sequence[Literal["status", "progress", "summary"]], Field(description="Queries that the endpoint answers.")
    ]


class PullTargetResponse(TypedDict):
    """Pull workers, which lease the tasks of this type."""

    kind: Literal["pull"]


class TopologyTargetResponse(TypedDict):
    """A topology, whose graph is the payload."""

    kind: Literal["topology"]


class LambdaTargetResponse(TypedDict):
    """A Lambda function."""

    kind: Literal["lambda"]
    arn: str
    mode: Literal["sync", "async"]


class EventBridgeTargetResponse(TypedDict):
    """An event bus."""

    kind: Literal["eventbridge"]
    arn: str
    detail_type: Annotated[str | None, Field(description="Detail type of the event; null for the type of the task.")]


class AwsTargetResponse(TypedDict):
    """An SQS queue, an SNS topic or a state machine."""

    kind: Literal["sqs", "sns", "step_functions"]
    arn: str


TargetResponse = (
    HandlerTargetResponse
    | HttpTargetResponse
    | PullTargetResponse
    | LambdaTargetResponse
    | EventBridgeTargetResponse
    | AwsTargetResponse
    | TopologyTargetResponse
)
