"""The bodies of requests. What they say here about each field is also what the OpenAPI document says."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.fields import (
    AllowUnknownType,
    At,
    DelaySeconds,
    ExpiresSeconds,
    LockKey,
    LockWaitSeconds,
    MaxDurationSeconds,
    MaxHolders,
    NotifyWithinSeconds,
    RateBurst,
    RateKey,
    RateLimit,
    RateSeconds,
    RollbackOnFailure,
    Tags,
    TaskName,
    TaskPriority,
    TaskType,
    TimeoutSeconds,
)
from duetime.contract.tasks.notice_fields import LateSeconds, NoticeAddress, NotifiesFailure
from duetime.contract.tasks.responses import TaskResponse
from duetime.contract.tasks.target_bodies import HandlerTarget, Target
from duetime.contract.tasks.target_fields import CallbackUrl
from duetime.contract.tasks.unique_bodies import TaskUniqueness
from duetime.domain.limits import (
    MAX_ATTEMPTS,
    MAX_BATCH,
    MAX_PAYLOAD_BYTES,
    MAX_RETRY_MULTIPLIER,
    MAX_RETRY_WAIT_SECONDS,
)
from duetime.domain.tasks.placeholders import PLACEHOLDERS, PREFIX
from duetime.domain.tasks.task_options import LockScope, Priority, RetryPolicy
from duetime.domain.tasks.task_spec import TaskSpec

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
    max_duration_seconds: MaxDurationSeconds | None = None


class Lock(Body):
    """A lock that a task holds while it runs; other tasks that need it wait, in the order of their due times."""

    key: LockKey
    max_holders: MaxHolders = 1
    scope: Annotated[
        LockScope,
        Field(strict=False, description="Whether the lock is held for all phases of an attempt, or for `run` only."),
    ] = LockScope.TASK
    wait_seconds: LockWaitSeconds | None = None


class Rate(Body):
    """How often attempts of all tasks with the same key can start; further ones wait by priority, then by age."""

    key: RateKey
    limit: RateLimit
    per_seconds: RateSeconds = 1
    burst: RateBurst = 0


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
        if not isinstance(value, dict) or None not in value.values():
            return value
        return {name: each for name, each in value.items() if each is not None or name not in cls.NULLABLE}


_PLACEHOLDERS = ", ".join(f"`{PREFIX}{name}>`" for name in PLACEHOLDERS)
Payload = Annotated[
    Any,
    Field(
        description=f"Any JSON of at most {MAX_PAYLOAD_BYTES} bytes; numbers with a fraction are double-precision. "
        f"Texts may hold placeholders, which are replaced in each attempt: {_PLACEHOLDERS}.",
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
    expires_seconds: ExpiresSeconds | None = None
    tags: Tags = {}  # noqa: RUF012 - pydantic copies defaults


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
    rate: Annotated[
        Rate | None, Field(description="How often attempts of tasks with the same key can start; null for no limit.")
    ] = None


class TaskFields(TaskLabels, TaskWork):
    """All that a client may say of a task, its type apart."""


class TaskCreate(TaskFields, TaskUniqueness):
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
