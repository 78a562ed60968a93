"""The body of an update of a task: a merge patch (RFC 7396), whose parts may be left out or null at each level."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.bodies import ONE_DUE_TIME, Payload, TaskCreate, TaskFields, WaitSeconds
from duetime.contract.tasks.fields import (
    DelaySeconds,
    ExpiresSeconds,
    LockKey,
    LockWaitSeconds,
    MaxDurationSeconds,
    MaxHolders,
    Moment,
    NotifyWithinSeconds,
    RateBurst,
    RateKey,
    RateLimit,
    RateSeconds,
    RollbackOnFailure,
    TagKey,
    TagValue,
    TaskName,
    TaskPriority,
    TimeoutSeconds,
)
from duetime.contract.tasks.http_request_fields import RequestMethod, SuccessStatuses
from duetime.contract.tasks.notice_fields import LateSeconds, NoticeAddress, NotifiesFailure
from duetime.contract.tasks.target_fields import (
    ApprovalSeconds,
    CallbackUrl,
    DetailType,
    JobParameters,
    LambdaMode,
    OfferedQueries,
    TargetKind,
    TargetPhases,
    TargetUrl,
    WaitsForEnd,
)
from duetime.domain.limits import MAX_ATTEMPTS, MAX_RETRY_MULTIPLIER
from duetime.domain.tasks.task_options import LockScope


def _as_update(schema: dict[str, Any]) -> None:
    """What an update leaves out stays as it is: no default applies, and something must be there."""
    for field in schema["properties"].values():
        field.pop("default", None)
    # Generators name the type of a map that cannot be null; nobody needs to send null to remove all tags.
    schema["properties"]["tags"] = _not_null(schema["properties"]["tags"])
    schema |= {"minProperties": 1, **ONE_DUE_TIME}


def _not_null(field: dict[str, Any]) -> dict[str, Any]:
    choice = next(each for each in field["anyOf"] if each != {"type": "null"})
    return {**choice, **{name: value for name, value in field.items() if name != "anyOf"}}


def _as_part(schema: dict[str, Any]) -> None:
    """What a part leaves out stays as it is."""
    for field in schema["properties"].values():
        field.pop("default", None)


class RetryPatch(Body):
    """What to change of how a task is tried again; null gives a field its default."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    max_attempts: Annotated[
        Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] | None,
        Field(description="Attempts in all, lost ones included; 1 means no retry."),
    ] = None
    initial_seconds: Annotated[WaitSeconds | None, Field(description="Longest first wait.")] = None
    multiplier: Annotated[
        Annotated[float, Field(ge=1, le=MAX_RETRY_MULTIPLIER)] | None,
        Field(description="Growth of the longest wait, from each to the next."),
    ] = None
    max_seconds: Annotated[WaitSeconds | None, Field(description="No wait is longer.")] = None
    max_duration_seconds: MaxDurationSeconds | None = None


class LockPatch(Body):
    """What to change of the lock that a task needs; one that had none needs a `key`."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    key: Annotated[LockKey | None, Field(description="Its name among the owner's locks.")] = None
    max_holders: Annotated[MaxHolders | None, Field(description="Most tasks that may hold it at once.")] = None
    scope: Annotated[
        Annotated[LockScope, Field(strict=False)] | None,
        Field(description="Whether it is held for all phases of an attempt, or for `run` only."),
    ] = None
    wait_seconds: LockWaitSeconds | None = None


class RatePatch(Body):
    """What to change of the rate of a task; one that had none needs a `key` and a `limit`."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    key: RateKey | None = None
    limit: RateLimit | None = None
    per_seconds: RateSeconds | None = None
    burst: RateBurst | None = None


class NotifyOnPatch(Body):
    """What to change of who is told of a task; one that told nobody needs a `to`."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    to: Annotated[NoticeAddress | None, Field(description="Where notices are sent.")] = None
    failed: Annotated[NotifiesFailure | None, Field(description="Whether a final failure is notified.")] = None
    late_seconds: Annotated[
        LateSeconds | None, Field(description="After how many seconds a late start is told; null for never.")
    ] = None


class TargetPatch(Body):
    """What to change of what a task calls; with another `kind`, the whole target, as in a creation."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    kind: Annotated[
        TargetKind | None,
        Field(description="Another kind replaces the target; the same, or none, is merged into it."),
    ] = None
    url: Annotated[TargetUrl | None, Field(description="Of an HTTP endpoint.")] = None
    phases: Annotated[TargetPhases | None, Field(description="What an HTTP endpoint offers besides `run`.")] = None
    queries: Annotated[OfferedQueries | None, Field(description="Queries that an HTTP endpoint supports.")] = None
    method: Annotated[RequestMethod | None, Field(description="Of a request to an HTTP endpoint.")] = None
    headers: Annotated[
        dict[str, str | None] | None, Field(description="Headers of it to add or to replace; null removes one.")
    ] = None
    query: Annotated[
        dict[str, str | None] | None, Field(description="Parameters of it to add or to replace; null removes one.")
    ] = None
    body: Annotated[
        dict[str, Any] | None, Field(description="Its body, replaced as a whole; null for the payload.")
    ] = None
    success: Annotated[SuccessStatuses | None, Field(description="Statuses of an HTTP endpoint's success.")] = None
    auth: Annotated[dict[str, str | None] | None, Field(description="What it proves its sender with.")] = None
    response: Annotated[
        dict[str, str | int | None] | None, Field(description="What of an HTTP endpoint's response is kept.")
    ] = None
    definition: Annotated[
        dict[str, Any] | None, Field(description="The topology definition that is run; null for a graph of its own.")
    ] = None
    arn: Annotated[str | None, Field(description="Of an AWS resource.")] = None
    mode: Annotated[LambdaMode | None, Field(description="Of a Lambda function.")] = None
    detail_type: Annotated[DetailType | None, Field(description="Of an event; null for the type of the task.")] = None
    wait: Annotated[WaitsForEnd | None, Field(description="Of a state machine.")] = None
    cluster: Annotated[str | None, Field(description="Of an ECS task.")] = None
    container: Annotated[str | None, Field(description="Of an ECS task.")] = None
    queue: Annotated[str | None, Field(description="Of a Batch job.")] = None
    parameters: Annotated[JobParameters | None, Field(description="Of a job, replaced as a whole; null for none.")] = (
        None
    )
    timeout_seconds: Annotated[ApprovalSeconds | None, Field(description="Of an approval.")] = None
    on_timeout: Annotated[Literal["fail", "reject", "approve"] | None, Field(description="Of an approval.")] = None


class TaskPatch(Body):
    """What to change of a task that has not started, merged (RFC 7396); `payload` is replaced as a whole."""

    model_config = ConfigDict(json_schema_extra=_as_update)
    READ_ONLY: ClassVar[frozenset[str]] = TaskFields.READ_ONLY - set(TaskCreate.model_fields)
    FIXED: ClassVar[frozenset[str]] = frozenset(TaskCreate.model_fields) - set(TaskFields.model_fields)

    priority: TaskPriority | None = None
    callback_url: Annotated[CallbackUrl | None, Field(description="URL that receives the outcome; null for none.")] = (
        None
    )
    notify_on: Annotated[
        NotifyOnPatch | None, Field(description="Who is told of a failure or of a late start; null for nobody.")
    ] = None
    expires_seconds: ExpiresSeconds | None = None
    name: Annotated[TaskName | None, Field(description="A name for people; null removes it.")] = None
    tags: Annotated[
        Annotated[dict[TagKey, TagValue | None], Field(json_schema_extra={"additionalProperties": False})] | None,
        Field(
            description="Labels to add or to replace; null removes one, and null for all of them removes all.",
            examples=[{"team": "dba", "step": None}],
        ),
    ] = None
    payload: Payload = None
    due_at: Annotated[
        Moment | None, Field(description="When it is due. Excludes `delay_seconds`; null is as if left out.")
    ] = None
    delay_seconds: DelaySeconds | None = None
    target: Annotated[TargetPatch | None, Field(description="What is called; null for what its type says.")] = None
    retry: Annotated[RetryPatch | None, Field(description="How it is tried again; null for the default.")] = None
    timeout_seconds: TimeoutSeconds | None = None
    notify_within_seconds: NotifyWithinSeconds | None = None
    rollback_on_failure: RollbackOnFailure | None = None
    rate: Annotated[
        RatePatch | None, Field(description="How often attempts of its key can start; null for no limit.")
    ] = None
    lock: Annotated[LockPatch | None, Field(description="What it needs for itself while it runs; null for none.")] = (
        None
    )
