"""Targets, as requests describe them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.target_fields import (
    DetailType,
    EventBusArn,
    FunctionArn,
    LambdaMode,
    OfferedQueries,
    QueueArn,
    StateMachineArn,
    TargetPhases,
    TargetUrl,
    TopicArn,
)


class HandlerTarget(Body):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class HttpTarget(Body):
    """An HTTP endpoint, called with the payload once for each phase."""

    kind: Literal["http"]
    url: TargetUrl
    phases: TargetPhases = []  # noqa: RUF012 - pydantic copies defaults
    queries: OfferedQueries = []  # noqa: RUF012 - pydantic copies defaults


class PullTarget(Body):
    """Your own workers, which lease the tasks of a type that the deployment declares as pulled."""

    kind: Literal["pull"]


class TopologyTarget(Body):
    """A topology: the payload is its graph, with `nodes`, `on_failure` and so on."""

    kind: Literal["topology"]


class LambdaTarget(Body):
    """A Lambda function."""

    kind: Literal["lambda"]
    arn: FunctionArn
    mode: LambdaMode = "sync"


class SqsTarget(Body):
    """An SQS queue: a message is sent."""

    kind: Literal["sqs"]
    arn: QueueArn


class SnsTarget(Body):
    """An SNS topic: a message is published."""

    kind: Literal["sns"]
    arn: TopicArn


class EventBridgeTarget(Body):
    """An EventBridge event bus: an event is put."""

    kind: Literal["eventbridge"]
    arn: EventBusArn
    detail_type: DetailType | None = None


class StepFunctionsTarget(Body):
    """A Step Functions state machine: an execution is started."""

    kind: Literal["step_functions"]
    arn: StateMachineArn


AwsTarget = LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget
Target = Annotated[
    HandlerTarget | HttpTarget | PullTarget | AwsTarget | TopologyTarget,
    Field(
        discriminator="kind",
        description="What is called. If left out: pull workers if the type is declared as pulled, otherwise the "
        "handler of the type.",
    ),
]
