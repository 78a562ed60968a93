"""Targets in requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.target_fields import (
    ApprovalSeconds,
    ClusterArn,
    ContainerName,
    DefinitionName,
    DefinitionNumber,
    DetailType,
    EventBusArn,
    EventKey,
    EventName,
    EventSeconds,
    FunctionArn,
    GlueJobArn,
    JobDefinitionArn,
    JobQueueArn,
    LambdaMode,
    LookbackSeconds,
    OfferedQueries,
    ProjectArn,
    QueueArn,
    RequestAuth,
    RequestBody,
    RequestHeaders,
    RequestMethod,
    RequestQuery,
    ResponseOptions,
    RunParameters,
    RunTaskParameters,
    StartBuildParameters,
    StartJobRunParameters,
    StateMachineArn,
    SubmitJobParameters,
    SuccessStatuses,
    TargetPhases,
    TargetUrl,
    TaskDefinitionArn,
    TopicArn,
    WaitsForEnd,
)
from duetime.domain.limits import (
    DEFAULT_APPROVAL_SECONDS,
    DEFAULT_BATCH_SIZE,
    DEFAULT_BATCH_WAIT_SECONDS,
    DEFAULT_EVENT_SECONDS,
    MAX_HANDLER_BATCH,
    MAX_HANDLER_BATCH_WAIT_SECONDS,
)
from duetime.domain.tasks.targets import is_qualified

_ANY_VERSION = "arn:aws:lambda:eu-west-1:123456789012:function:report:1"


class HandlerTarget(Body):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class CallBatch(Body):
    """How tasks share calls: one request for several due tasks, and a response with an outcome for each."""

    max_size: Annotated[
        int, Field(ge=1, le=MAX_HANDLER_BATCH, description="Most tasks of one call; all are of one delivery.")
    ] = DEFAULT_BATCH_SIZE
    max_wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=MAX_HANDLER_BATCH_WAIT_SECONDS,
            description="How long the first task may wait for others; at most half of its timeout is used.",
        ),
    ] = DEFAULT_BATCH_WAIT_SECONDS


class HttpTarget(Body):
    """An HTTP endpoint, called with the payload once for each phase, or with a request of your own."""

    kind: Literal["http"]
    url: TargetUrl
    phases: TargetPhases = []  # noqa: RUF012 - pydantic copies defaults
    queries: OfferedQueries = []  # noqa: RUF012 - pydantic copies defaults
    method: RequestMethod | None = None
    headers: RequestHeaders = {}  # noqa: RUF012 - pydantic copies defaults
    query: RequestQuery = {}  # noqa: RUF012 - pydantic copies defaults
    body: Annotated[
        RequestBody | None,
        Field(description="Body of a request of your own; if left out, POST, PUT and PATCH send the payload as JSON."),
    ] = None
    success: Annotated[
        SuccessStatuses | None, Field(description="Statuses that mean success; null for all from 200 to 299.")
    ] = None
    auth: Annotated[RequestAuth | None, Field(description="Authentication of the request.")] = None
    response: Annotated[
        ResponseOptions | None, Field(description="The part of the response to keep; null for the whole body.")
    ] = None
    batch: Annotated[
        CallBatch | None,
        Field(description="How its tasks share calls, without `phases` and a request of your own; null: they do not."),
    ] = None


class PullTarget(Body):
    """Your own workers, which lease the tasks of a type that the deployment declares as pulled."""

    kind: Literal["pull"]


class DefinitionRun(Body):
    """The run of a topology definition."""

    name: DefinitionName
    version: DefinitionNumber | None = None
    parameters: RunParameters = {}  # noqa: RUF012 - pydantic copies defaults


class TopologyTarget(Body):
    """A topology: its graph is the payload, with `nodes`, `on_failure` and so on, or comes from a definition."""

    kind: Literal["topology"]
    definition: Annotated[
        DefinitionRun | None,
        Field(description="A topology definition, whose graph is run. The payload is left out then, and becomes it."),
    ] = None


class ApprovalTarget(Body):
    """A person who approves or rejects the task; nothing is called."""

    kind: Literal["approval"]
    timeout_seconds: ApprovalSeconds = DEFAULT_APPROVAL_SECONDS
    on_timeout: Annotated[
        Literal["fail", "reject", "approve"],
        Field(description="What happens without a decision in time: the task fails, is rejected or is approved."),
    ] = "fail"


class EventTarget(Body):
    """An event that the task waits for: a signal with its name and key. Nothing is called."""

    kind: Literal["wait_for_event"]
    event: EventName
    key: EventKey = ""
    timeout_seconds: EventSeconds = DEFAULT_EVENT_SECONDS
    lookback_seconds: LookbackSeconds = 0


class LambdaTarget(Body):
    """A Lambda function."""

    kind: Literal["lambda"]
    arn: FunctionArn
    mode: LambdaMode = "sync"

    @field_validator("mode")
    @classmethod
    def _names_a_version(cls, mode: str, info: ValidationInfo) -> str:
        """Rejects a durable execution without a fixed version, as Lambda does."""
        if mode == "durable" and not is_qualified(info.data.get("arn", _ANY_VERSION)):
            raise ValueError("`durable` needs an ARN with a version or an alias")
        return mode


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
    wait: WaitsForEnd = False


class EcsTarget(Body):
    """An ECS task definition: a task of it is run, and its end is waited for."""

    kind: Literal["ecs"]
    arn: TaskDefinitionArn
    cluster: ClusterArn
    container: ContainerName
    parameters: RunTaskParameters = {}  # noqa: RUF012 - pydantic copies defaults


class BatchTarget(Body):
    """A Batch job definition: a job of it is submitted, and its end is waited for."""

    kind: Literal["batch"]
    arn: JobDefinitionArn
    queue: JobQueueArn
    parameters: SubmitJobParameters = {}  # noqa: RUF012 - pydantic copies defaults


class CodeBuildTarget(Body):
    """A CodeBuild project: a build is started, and its end is waited for."""

    kind: Literal["codebuild"]
    arn: ProjectArn
    parameters: StartBuildParameters = {}  # noqa: RUF012 - pydantic copies defaults


class GlueTarget(Body):
    """A Glue job: a run of it is started, and its end is waited for."""

    kind: Literal["glue"]
    arn: GlueJobArn
    parameters: StartJobRunParameters = {}  # noqa: RUF012 - pydantic copies defaults


JobTarget = EcsTarget | BatchTarget | CodeBuildTarget | GlueTarget
"""Targets whose end is always waited for."""
AwsTarget = LambdaTarget | SqsTarget | SnsTarget | EventBridgeTarget | StepFunctionsTarget | JobTarget
Target = Annotated[
    HandlerTarget | HttpTarget | PullTarget | AwsTarget | TopologyTarget | ApprovalTarget | EventTarget,
    Field(
        discriminator="kind",
        description="The target. By default, pull workers if the type is declared as pulled, otherwise the handler of "
        "the type.",
    ),
]
