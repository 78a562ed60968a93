"""The bodies of requests. What they say here about each field is also what the OpenAPI document says."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from duetime.contract.tasks.fields import (
    AllowUnknownType,
    At,
    CallbackUrl,
    DelaySeconds,
    DetailType,
    EventBusArn,
    FunctionArn,
    LambdaMode,
    LateSeconds,
    LockKey,
    MaxHolders,
    NoticeAddress,
    NotifiesFailure,
    NotifyWithinSeconds,
    OfferedQueries,
    QueueArn,
    RollbackOnFailure,
    StateMachineArn,
    Tags,
    TargetPhases,
    TargetUrl,
    TaskName,
    TaskPriority,
    TaskType,
    TimeoutSeconds,
    TopicArn,
)
from duetime.contract.tasks.responses import TaskResponse
from duetime.domain.limits import (
    MAX_ATTEMPTS,
    MAX_BATCH,
    MAX_PAYLOAD_BYTES,
    MAX_RETRY_MULTIPLIER,
    MAX_RETRY_WAIT_SECONDS,
)
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.task import LockScope, Priority, TaskSpec

_RETRY = RetryPolicy()
_SPEC = TaskSpec("")
WaitSeconds = Annotated[float, Field(ge=0, le=MAX_RETRY_WAIT_SECONDS)]


ONE_DUE_TIME: dict[str, Any] = {"not": {"required": ["due_at", "delay_seconds"]}}


def _as_creation(schema: dict[str, Any]) -> None:
    """No due time is written as one that is left out, not as null."""
    schema["properties"]["due_at"].pop("default")
    # It depends on the type.
    schema["properties"]["target"].pop("default")
    schema |= ONE_DUE_TIME


def _or_empty(text: str | None) -> str:
    """What answers show as null, written back, is no text."""
    return text or ""


class Body(BaseModel):
    """Unknown fields are refused by name, and no value is taken for one of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


class Retry(Body):
    """The retry policy of a task: exponential backoff with full jitter."""

    max_attempts: Annotated[
        int,
        Field(ge=1, le=MAX_ATTEMPTS, description="Maximum number of attempts, including lost ones; 1 means no retry."),
    ] = _RETRY.max_attempts
    initial_seconds: Annotated[WaitSeconds, Field(description="Upper limit of the first wait, in seconds.")] = (
        _RETRY.initial_seconds
    )
    multiplier: Annotated[
        float,
        Field(
            ge=1,
            le=MAX_RETRY_MULTIPLIER,
            description="Factor by which the upper limit grows from each wait to the next.",
        ),
    ] = _RETRY.multiplier
    max_seconds: Annotated[WaitSeconds, Field(description="Upper limit of all waits, in seconds.")] = _RETRY.max_seconds


class HandlerTarget(Body):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class HttpTarget(Body):
    """An HTTP endpoint, called with the payload once for each phase."""

    kind: Literal["http"]
    url: TargetUrl
    phases: TargetPhases = []
    queries: OfferedQueries = []


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


class Lock(Body):
    """A lock that a task holds while it runs; other tasks that need it wait, in the order of their due times."""

    key: LockKey
    max_holders: MaxHolders = 1
    scope: Annotated[
        LockScope,
        Field(strict=False, description="Whether the lock is held for all phases of an attempt, or for `run` only."),
    ] = LockScope.TASK


class NotifyOn(Body):
    """Who is told of a failure for good (`failed`) or a late start (`late_seconds`); one of the two is required."""

    to: NoticeAddress
    failed: NotifiesFailure = False
    late_seconds: LateSeconds | None = None

    @model_validator(mode="after")
    def _wants_something(self) -> Self:
        if not self.failed and self.late_seconds is None:
            raise ValueError("needs `failed` or `late_seconds`, or nothing is ever told")
        return self


class _NullAsDefault(Body):
    """Null stands for what is left out, wherever a client can mean only that."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"tags", "retry", "due_at", "delay_seconds", "target"})

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: each for name, each in value.items() if each is not None or name not in cls.NULLABLE}


Payload = Annotated[
    Any,
    Field(
        description=f"Any JSON of at most {MAX_PAYLOAD_BYTES} bytes; numbers with a fraction are double-precision.",
        examples=[{"any": "json"}],
    ),
]


class TaskLabels(_NullAsDefault):
    """What a client may say of a task, and of a topology alike."""

    READ_ONLY: ClassVar[frozenset[str]] = frozenset(TaskResponse.__annotations__)

    priority: TaskPriority = Priority.NORMAL
    callback_url: Annotated[
        CallbackUrl | None, Field(description="URL that the outcome is posted to; null for none.")
    ] = None
    notify_on: Annotated[
        NotifyOn | None, Field(description="Who is told of a failure or of a late start; null for nobody.")
    ] = None
    name: Annotated[
        TaskName | None,
        AfterValidator(_or_empty),
        Field(description="A name for people, not necessarily unique; null for none."),
    ] = ""
    tags: Tags = {}


class TaskWork(_NullAsDefault):
    """What a client may say of the work that a task is."""

    payload: Payload = None
    due_at: Annotated[
        At, Field(description="When it is due; a time in the past means now. Cannot be given with `delay_seconds`.")
    ] = None
    delay_seconds: DelaySeconds = 0
    target: Target = HandlerTarget(kind="handler")
    retry: Retry = Retry()
    timeout_seconds: TimeoutSeconds = _SPEC.timeout_seconds
    notify_within_seconds: NotifyWithinSeconds = _SPEC.notify_within_seconds
    rollback_on_failure: RollbackOnFailure = _SPEC.rollback_on_failure
    lock: Annotated[Lock | None, Field(description="The lock that it needs while it runs; null for none.")] = None


class TaskFields(TaskLabels, TaskWork):
    """All that a client may say of a task, its type apart."""


class TaskCreate(TaskFields):
    """A task to be created; without `due_at` and `delay_seconds` it is due now."""

    model_config = ConfigDict(json_schema_extra=_as_creation)

    type: TaskType
    allow_unknown_type: AllowUnknownType = False


class BatchEnvelope(Body):
    """A batch whose tasks are still to be read, each for itself."""

    tasks: Annotated[list[Any], Field(min_length=1, max_length=MAX_BATCH)]


class TaskBatchCreate(Body):
    """Tasks to be created, each with its own result."""

    tasks: Annotated[list[TaskCreate], Field(min_length=1, max_length=MAX_BATCH, description="The tasks.")]
