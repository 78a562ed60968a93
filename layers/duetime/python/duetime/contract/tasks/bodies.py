"""Request bodies for tasks. Field descriptions also appear in the OpenAPI document."""

# This module does not use `from __future__ import annotations`, because pydantic would then parse each annotation's
# text at every start.

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.fields import (
    AllowUnknownType,
    At,
    DelaySeconds,
    DependencyId,
    ExpiresSeconds,
    FairKey,
    FairWeight,
    GroupId,
    LockKey,
    LockWaitSeconds,
    MaxDurationSeconds,
    MaxHolders,
    Moment,
    NotifyWithinSeconds,
    OrderedKey,
    ParentTaskId,
    RateBurst,
    RateKey,
    RateLimit,
    RateSeconds,
    RollbackOnFailure,
    ScheduleName,
    TagKey,
    Tags,
    TagValue,
    TaskName,
    TaskPriority,
    TaskType,
    TimeoutSeconds,
)
from duetime.contract.tasks.responses import TaskResponse
from duetime.contract.tasks.target_fields import (
    ApprovalSeconds,
    CallbackUrl,
    DetailType,
    EventKey,
    HandlerTarget,
    JobParameters,
    LambdaMode,
    LookbackSeconds,
    OfferedQueries,
    RequestMethod,
    SignalCondition,
    SuccessStatuses,
    Target,
    TargetKind,
    TargetPhases,
    TargetUrl,
    WaitsForEnd,
    base64_text,
    http_url,
)
from duetime.domain.limits import (
    MAX_ATTEMPTS,
    MAX_BATCH,
    MAX_DEBOUNCE_SECONDS,
    MAX_DEPENDENCIES,
    MAX_LATE_SECONDS,
    MAX_LOCKS,
    MAX_PAYLOAD_BYTES,
    MAX_RETRY_MULTIPLIER,
    MAX_RETRY_WAIT_SECONDS,
    MAX_RUNNING_SECONDS,
    MAX_UNIQUE_KEY_LENGTH,
    MAX_URL_LENGTH,
    MIN_LATE_SECONDS,
)
from duetime.domain.tasks.notices import is_notice_arn
from duetime.domain.tasks.placeholders import PLACEHOLDERS, PREFIX
from duetime.domain.tasks.targets import AwsService, arn_pattern, service_of
from duetime.domain.tasks.task_options import (
    AfterFailure,
    LockMode,
    LockScope,
    OnConflict,
    Priority,
    RetryPolicy,
    Until,
)
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime.domain.uploads import UPLOAD, UPLOAD_ID_PATTERN
from duetime_common.payload_codecs import BINARY, CONTENT_TYPE_PATTERN, MAX_CONTENT_TYPE_LENGTH, OCTET_STREAM

UniqueKey = Annotated[
    str,
    Field(
        pattern=rf"^[!-~]{{1,{MAX_UNIQUE_KEY_LENGTH}}}$",
        description="The unique key, scoped to the owner; `unique` and `debounce` keys share one namespace.",
        examples=["customer-17"],
    ),
]
DebounceSeconds = Annotated[int, Field(ge=1, le=MAX_DEBOUNCE_SECONDS)]


class Unique(Body):
    """Allows only one task per key among the owner's tasks."""

    key: UniqueKey
    until: Annotated[
        Until,
        Field(strict=False, description="Whether the task holds the key until it starts or until it ends."),
    ] = Until.ENDED
    on_conflict: Annotated[
        OnConflict,
        Field(
            strict=False,
            description="What happens if another task holds the key: that task is returned unchanged (`keep`), gets "
            "this request's fields if not yet started (`replace`), or this request is a conflict (`refuse`).",
        ),
    ] = OnConflict.KEEP


class Debounce(Body):
    """Until the task starts, each later creation with the same key delays the task and replaces its fields."""

    key: UniqueKey
    seconds: Annotated[
        DebounceSeconds, Field(description="The task is due this many seconds after the latest creation.")
    ]
    max_seconds: Annotated[
        DebounceSeconds | None,
        Field(description="The task is due at most this many seconds after the first creation; null for no limit."),
    ] = None

    @model_validator(mode="after")
    def _allows_one(self) -> Self:
        if self.max_seconds is not None and self.max_seconds < self.seconds:
            raise ValueError("has a `max_seconds` below its `seconds`")
        return self


class GroupMembership(Body):
    """The group of a task."""

    id: GroupId


class AfterOccurrence(Body):
    """A past or future occurrence of a schedule that a task waits for."""

    schedule: Annotated[ScheduleName, Field(description="Name of the schedule.", examples=["nightly"])]
    occurrence: Annotated[
        Moment,
        Field(description="The scheduled time of the occurrence, before jitter and calendars."),
    ]


def _not_twice(after: list[str | AfterOccurrence] | None) -> list[str | AfterOccurrence] | None:
    seen = {each if isinstance(each, str) else (each.schedule, each.occurrence) for each in after or ()}
    if len(seen) < len(after or ()):
        raise ValueError("contains the same twice")
    return after


class OrderKey(Body):
    """Runs the owner's tasks with the same key one after another, in creation order."""

    key: OrderedKey
    on_failure: Annotated[
        AfterFailure,
        Field(
            strict=False,
            description="What happens after the task's final failure: the next task with the key runs (`continue`), or "
            "waits until the failed task is deleted, or retried and succeeds (`stop`).",
        ),
    ] = AfterFailure.CONTINUE


class TaskUniqueness(Body):
    """Creation fields that relate a task to other tasks: its unique or ordered key, group, parent and dependencies."""

    unique: Annotated[Unique | None, Field(description="The task's unique key; null for no key.")] = None
    debounce: Annotated[
        Debounce | None,
        Field(
            description="Makes later creations with the same key delay the task. Cannot be given with a due time or "
            "`unique`; null for no debouncing."
        ),
    ] = None
    order: Annotated[
        OrderKey | None,
        Field(
            description="Makes the task wait until the previously created task with the same key has ended, retries "
            "included, even if the previous task is due later; null for no ordered key."
        ),
    ] = None
    parent_task_id: ParentTaskId | None = None
    group: Annotated[
        GroupMembership | None,
        Field(description="The group that the task joins, created if it does not exist; null for no group."),
    ] = None
    after: Annotated[
        Annotated[
            list[DependencyId | AfterOccurrence],
            Field(
                max_length=MAX_DEPENDENCIES,
                examples=[
                    ["01KB8Z4QYJ0000GH3V5TZK7M2P", {"schedule": "nightly", "occurrence": "2026-12-01T02:00:00Z"}]
                ],
            ),
        ]
        | None,
        AfterValidator(_not_twice),
        Field(
            description="The tasks that must end before this task starts, by id or as schedule occurrences. The task "
            "is `blocked` until `trigger_rule` is met, and never starts before its due time. Null for no dependencies."
        ),
    ] = None
    trigger_rule: Annotated[
        Annotated[TriggerRule, Field(strict=False)] | None,
        Field(description="How the tasks in `after` must end for this task to run; null for `all_success`."),
    ] = None


def without_uniqueness(schema: dict[str, Any], *, may_be_ordered: bool = False) -> None:
    """Removes the fields of `TaskUniqueness` from the schema of a task in a schedule or topology.

    The parser rejects these fields with a reason.

    Args:
        schema: schema of the part.
        may_be_ordered: whether the part may have an ordered key.
    """
    for name in TaskUniqueness.model_fields:
        # A node has its own trigger rule.
        is_of_node = name == "trigger_rule" and "depends_on" in schema["properties"]
        if not is_of_node and not (name == "order" and may_be_ordered):
            schema["properties"].pop(name)


def _notice_address(address: str) -> str:
    if not address.startswith("arn:"):
        return http_url(address)
    if not is_notice_arn(address) or not re.match(arn_pattern(service_of(address) or AwsService.SNS), address):
        raise ValueError("should be a URL, or the ARN of an SNS topic that is not FIFO, or of an event bus")
    return address


NoticeAddress = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_URL_LENGTH,
        description="A URL that receives signed notices, or the ARN of an SNS topic or event bus that the "
        "deployment's settings let tasks call.",
        examples=["https://example.org/alerts", "arn:aws:sns:eu-west-1:123456789012:alerts"],
        json_schema_extra={"pattern": "^(https?://|arn:)"},
    ),
    AfterValidator(_notice_address),
]
NotifiesFailure = Annotated[bool, Field(description="Whether a notice is sent when the task fails for good.")]
LateSeconds = Annotated[
    int,
    Field(
        ge=MIN_LATE_SECONDS,
        le=MAX_LATE_SECONDS,
        description=(
            "How many seconds after its due time a notice is sent if the task has not started; null for no notice."
        ),
    ),
]
RunningSeconds = Annotated[
    int,
    Field(
        ge=1,
        le=MAX_RUNNING_SECONDS,
        description="How many seconds after an attempt's start a notice is sent if the attempt has not ended; null for "
        "no notice.",
    ),
]


_RETRY = RetryPolicy()
_SPEC = TaskSpec("")
WaitSeconds = Annotated[float, Field(ge=0, le=MAX_RETRY_WAIT_SECONDS)]
ONE_DUE_TIME: dict[str, Any] = {"not": {"required": ["due_at", "delay_seconds"]}}


def _as_creation(schema: dict[str, Any]) -> None:
    """Makes due times optional but not nullable in the schema."""
    schema["properties"]["due_at"].pop("default")
    # The default depends on the task's type.
    schema["properties"]["target"].pop("default")
    schema |= ONE_DUE_TIME


def _or_empty(text: str | None) -> str:
    """Converts null, which responses contain, into an empty string."""
    return text or ""


class Retry(Body):
    """The retry policy of a task: exponential backoff with full jitter."""

    max_attempts: Annotated[
        int,
        Field(
            ge=1, le=MAX_ATTEMPTS, description="Maximum number of attempts, including lost attempts; 1 means no retry."
        ),
    ] = _RETRY.max_attempts
    initial_seconds: Annotated[WaitSeconds, Field(description="Upper limit of the first wait, in seconds.")] = (
        _RETRY.initial_seconds
    )
    multiplier: Annotated[
        float,
        Field(
            ge=1,
            le=MAX_RETRY_MULTIPLIER,
            description="Factor by which the upper limit grows after each wait.",
        ),
    ] = _RETRY.multiplier
    max_seconds: Annotated[WaitSeconds, Field(description="Upper limit of all waits, in seconds.")] = _RETRY.max_seconds
    max_duration_seconds: MaxDurationSeconds | None = None


class Lock(Body):
    """A lock that a task holds while it runs; other tasks that need the lock wait in order of due time."""

    key: LockKey
    mode: Annotated[
        LockMode,
        Field(
            strict=False,
            description=(
                "Tasks with `shared` can hold the lock at the same time, like readers; a task with `exclusive` "
                "excludes all shared tasks."
            ),
        ),
    ] = LockMode.EXCLUSIVE
    max_holders: MaxHolders | None = None
    scope: Annotated[
        LockScope,
        Field(strict=False, description="Whether the lock is held for all phases of an attempt, or for `run` only."),
    ] = LockScope.TASK
    wait_seconds: LockWaitSeconds | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_one_holder(cls, value: object) -> object:
        """Defaults `max_holders` to 1 for an exclusive lock, and to null for a shared lock."""
        is_plain = isinstance(value, dict) and value.get("mode", LockMode.EXCLUSIVE) == LockMode.EXCLUSIVE
        if not isinstance(value, dict) or not is_plain or value.get("max_holders") is not None:
            return value
        return {**value, "max_holders": 1}

    @model_validator(mode="after")
    def _can_be_shared(self) -> Self:
        if self.mode is LockMode.SHARED and self.max_holders == 1:
            raise ValueError(
                "has `max_holders` 1, so no two tasks can share the lock: set `max_holders` to null or to more than 1"
            )
        return self


def _without_repeats(locks: list[Lock]) -> list[Lock]:
    """Rejects a list that names a lock twice."""
    keys = [lock.key for lock in locks]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise ValueError(f"names the lock {twice} twice")
    return locks


Locks = Annotated[
    list[Lock],
    Field(
        max_length=MAX_LOCKS,
        description="The locks that a task needs while it runs, instead of `lock`; the task starts once it holds all "
        "of them. A list with one lock is the same as `lock`.",
    ),
    AfterValidator(_without_repeats),
]


class Rate(Body):
    """Rate limit on attempts of all tasks with the same key. Attempts over the limit wait by priority, then by age."""

    key: RateKey
    limit: RateLimit
    per_seconds: RateSeconds = 1
    burst: RateBurst = 0


class NotifyOn(Body):
    """Notices about a final failure (`failed`), a late start (`late_seconds`) or a long run (`running_seconds`).

    At least one of these three fields is required.
    """

    to: NoticeAddress
    failed: NotifiesFailure = False
    late_seconds: LateSeconds | None = None
    running_seconds: RunningSeconds | None = None

    @model_validator(mode="after")
    def _wants_something(self) -> Self:
        if not self.failed and self.late_seconds is None and self.running_seconds is None:
            raise ValueError("needs `failed`, `late_seconds` or `running_seconds`, or no notice is ever sent")
        return self


class _NullAsDefault(Body):
    """Treats null in the same way as an omitted field where null has no other meaning."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset(
        {"tags", "locks", "fair_weight", "retry", "due_at", "delay_seconds", "target"}
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        if not isinstance(value, dict) or None not in value.values():
            return value
        given = {name: each for name, each in value.items() if each is not None or name not in cls.NULLABLE}
        if "retry" in cls.model_fields and value.get("retry", given) is None:
            # This null is explicit, because an omitted field would get the type's default.
            given["retry"] = {}
        return given


ContentType = Annotated[
    str,
    Field(
        pattern=CONTENT_TYPE_PATTERN,
        max_length=MAX_CONTENT_TYPE_LENGTH,
        description="The content type of the bytes.",
        examples=["image/png"],
    ),
]


class BinaryContent(Body):
    """Bytes with a content type."""

    base64: Annotated[
        str,
        AfterValidator(base64_text),
        Field(
            description=f"At most {MAX_PAYLOAD_BYTES} bytes, encoded as base64.",
            examples=["iVBORw0KGgo="],
        ),
    ]
    content_type: ContentType = OCTET_STREAM


class BinaryPayload(Body):
    """A binary payload instead of JSON."""

    binary: Annotated[BinaryContent, Field(alias=BINARY)]


UploadId = Annotated[
    str,
    Field(
        pattern=UPLOAD_ID_PATTERN,
        description="Id of an upload, chosen by the client.",
        examples=["scan-17"],
    ),
]


class UploadPayload(Body):
    """A payload that was uploaded."""

    upload: Annotated[UploadId, Field(alias=UPLOAD)]


_PLACEHOLDERS = ", ".join(f"`{PREFIX}{name}>`" for name in PLACEHOLDERS)
Payload = Annotated[
    Any,
    Field(
        description=f"Any JSON of at most {MAX_PAYLOAD_BYTES} bytes; numbers with a fraction are double-precision. "
        f"Strings may contain placeholders, which are replaced in each attempt: {_PLACEHOLDERS}. "
        f"For bytes, an object whose only field is `{BINARY}`, with `base64` and `content_type` "
        f"(default: `{OCTET_STREAM}`); at most {MAX_PAYLOAD_BYTES} bytes. When a task is created, `{UPLOAD}` with an "
        "upload's id stands for the uploaded bytes.",
        examples=[{"any": "json"}],
    ),
]


class TaskLabels(_NullAsDefault):
    """Fields that tasks and topologies have in common."""

    READ_ONLY: ClassVar[frozenset[str]] = frozenset(TaskResponse.__annotations__)

    priority: TaskPriority = Priority.NORMAL
    callback_url: Annotated[
        CallbackUrl | None, Field(description="URL that receives the outcome; null if there is none.")
    ] = None
    notify_on: Annotated[
        NotifyOn | None, Field(description="Notices about a failure, a late start or a long run; null for no notices.")
    ] = None
    name: Annotated[
        TaskName | None,
        AfterValidator(_or_empty),
        Field(description="Human-readable name, which need not be unique; null for no name."),
    ] = ""
    expires_seconds: ExpiresSeconds | None = None
    fair_key: FairKey | None = None
    fair_weight: FairWeight = _SPEC.fair_weight
    # Pydantic would copy a mutable default for each task, which is slow.
    tags: Tags = Field(default_factory=dict, json_schema_extra={"default": {}})


class TaskWork(_NullAsDefault):
    """Fields that describe the work of a task."""

    payload: Payload = None
    due_at: Annotated[
        At,
        Field(description="When the task is due; a time in the past means now. Cannot be given with `delay_seconds`."),
    ] = None
    delay_seconds: DelaySeconds = 0
    target: Target = HandlerTarget(kind="handler")
    retry: Retry = Retry()
    timeout_seconds: TimeoutSeconds = _SPEC.timeout_seconds
    notify_within_seconds: NotifyWithinSeconds = _SPEC.notify_within_seconds
    rollback_on_failure: RollbackOnFailure = _SPEC.rollback_on_failure
    lock: Annotated[Lock | None, Field(description="The lock that the task needs while it runs; null for no lock.")] = (
        None
    )
    locks: Locks = Field(default_factory=list, json_schema_extra={"default": []})
    rate: Annotated[
        Rate | None, Field(description="How often attempts of tasks with the same key can start; null for no limit.")
    ] = None


class TaskFields(TaskLabels, TaskWork):
    """All fields of a task except the type."""


class TaskCreate(TaskFields, TaskUniqueness):
    """A task to be created, due now unless `due_at` or `delay_seconds` is given."""

    model_config = ConfigDict(json_schema_extra=_as_creation)

    type: TaskType
    allow_unknown_type: AllowUnknownType = False


class BatchEnvelope(Body):
    """A batch whose tasks will be validated individually."""

    tasks: Annotated[list[Any], Field(min_length=1, max_length=MAX_BATCH)]


class TaskBatchCreate(Body):
    """Tasks to be created, each with its own result."""

    tasks: Annotated[list[TaskCreate], Field(min_length=1, max_length=MAX_BATCH, description="The tasks.")]


def _as_update(schema: dict[str, Any]) -> None:
    """Adapts a schema for updates, where omitted fields stay unchanged and at least one field is required."""
    for field in schema["properties"].values():
        field.pop("default", None)
    # Code generators give a map a type only if it cannot be null; null is not needed to remove all tags.
    schema["properties"]["tags"] = _not_null(schema["properties"]["tags"])
    schema |= {"minProperties": 1, **ONE_DUE_TIME}


def _not_null(field: dict[str, Any]) -> dict[str, Any]:
    choice = next(each for each in field["anyOf"] if each != {"type": "null"})
    return {**choice, **{name: value for name, value in field.items() if name != "anyOf"}}


def _as_part(schema: dict[str, Any]) -> None:
    """Adapts the schema of a part of an update, where omitted fields stay unchanged."""
    for field in schema["properties"].values():
        field.pop("default", None)


class RetryPatch(Body):
    """Update of a retry policy; null resets a field to the default."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    max_attempts: Annotated[
        Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)] | None,
        Field(description="Maximum number of attempts, including lost attempts; 1 means no retry."),
    ] = None
    initial_seconds: Annotated[WaitSeconds | None, Field(description="Upper limit of the first wait, in seconds.")] = (
        None
    )
    multiplier: Annotated[
        Annotated[float, Field(ge=1, le=MAX_RETRY_MULTIPLIER)] | None,
        Field(description="Factor by which the upper limit grows after each wait."),
    ] = None
    max_seconds: Annotated[WaitSeconds | None, Field(description="Upper limit of all waits, in seconds.")] = None
    max_duration_seconds: MaxDurationSeconds | None = None


class LockPatch(Body):
    """Update of a task's lock; `key` is required if the task has no lock."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    key: Annotated[LockKey | None, Field(description="Name of the lock, among the owner's locks.")] = None
    mode: Annotated[
        Annotated[LockMode, Field(strict=False)] | None,
        Field(description="Whether tasks share the lock, or one task holds it alone."),
    ] = None
    max_holders: Annotated[MaxHolders | None, Field(description="Maximum number of simultaneous holders.")] = None
    scope: Annotated[
        Annotated[LockScope, Field(strict=False)] | None,
        Field(description="Whether the lock is held for all phases of an attempt, or for `run` only."),
    ] = None
    wait_seconds: LockWaitSeconds | None = None


class RatePatch(Body):
    """Update of a task's rate; `key` and `limit` are required if the task has no rate."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    key: RateKey | None = None
    limit: RateLimit | None = None
    per_seconds: RateSeconds | None = None
    burst: RateBurst | None = None


class NotifyOnPatch(Body):
    """Update of a task's notices; `to` is required if the task has no notices."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    to: Annotated[NoticeAddress | None, Field(description="Where notices are sent.")] = None
    failed: Annotated[NotifiesFailure | None, Field(description="Whether a notice is sent about a final failure.")] = (
        None
    )
    late_seconds: Annotated[
        LateSeconds | None,
        Field(description="After how many seconds a late start is reported; null if it is not reported."),
    ] = None
    running_seconds: Annotated[
        RunningSeconds | None,
        Field(description="After how many seconds a long run is reported; null if it is not reported."),
    ] = None


class TargetPatch(Body):
    """Update of a task's target. To change the target's `kind`, give the complete target, as in a creation."""

    model_config = ConfigDict(json_schema_extra=_as_part)

    kind: Annotated[
        TargetKind | None,
        Field(
            description="A different kind replaces the target; with the same kind, or without a kind, the fields are "
            "merged."
        ),
    ] = None
    url: Annotated[TargetUrl | None, Field(description="URL of an HTTP endpoint.")] = None
    phases: Annotated[
        TargetPhases | None, Field(description="Phases that an HTTP endpoint supports besides `run`.")
    ] = None
    queries: Annotated[OfferedQueries | None, Field(description="Queries that an HTTP endpoint supports.")] = None
    method: Annotated[RequestMethod | None, Field(description="Method of a request to an HTTP endpoint.")] = None
    headers: Annotated[
        dict[str, str | None] | None,
        Field(description="Headers of the request to add or to replace; null removes a header."),
    ] = None
    query: Annotated[
        dict[str, str | None] | None,
        Field(description="Query parameters of the request to add or to replace; null removes a parameter."),
    ] = None
    body: Annotated[
        dict[str, Any] | None,
        Field(description="New body of the request, which is not merged; null to send the payload."),
    ] = None
    success: Annotated[SuccessStatuses | None, Field(description="Statuses of an HTTP endpoint that mean success.")] = (
        None
    )
    auth: Annotated[dict[str, str | None] | None, Field(description="Authentication of the request.")] = None
    response: Annotated[
        dict[str, str | int | None] | None, Field(description="The part of an HTTP endpoint's response to keep.")
    ] = None
    definition: Annotated[
        dict[str, Any] | None, Field(description="The topology definition to run; null if the payload is the graph.")
    ] = None
    arn: Annotated[str | None, Field(description="ARN of an AWS resource.")] = None
    mode: Annotated[LambdaMode | None, Field(description="How a Lambda function is called.")] = None
    detail_type: Annotated[
        DetailType | None, Field(description="Detail type of an event; null for the type of the task.")
    ] = None
    wait: Annotated[
        WaitsForEnd | None, Field(description="Whether the outcome is the end of the state machine's execution.")
    ] = None
    cluster: Annotated[str | None, Field(description="ARN of the cluster of an ECS task.")] = None
    container: Annotated[str | None, Field(description="Container of an ECS task whose exit code is the outcome.")] = (
        None
    )
    queue: Annotated[str | None, Field(description="ARN of the job queue of a Batch job.")] = None
    parameters: Annotated[
        JobParameters | None,
        Field(description="Additional request fields of a job, which are not merged; null for no additional fields."),
    ] = None
    event: Annotated[str | None, Field(description="Name of the awaited event.")] = None
    key: Annotated[EventKey | None, Field(description="Key of the awaited event.")] = None
    timeout_seconds: Annotated[
        ApprovalSeconds | None, Field(description="How long the task waits for a decision, or for an event.")
    ] = None
    lookback_seconds: LookbackSeconds | None = None
    when: SignalCondition | None = None
    on_timeout: Annotated[
        Literal["fail", "reject", "approve"] | None, Field(description="What happens after `timeout_seconds`.")
    ] = None


class TaskPatch(Body):
    """Update of a task that has not started, as a merge patch (RFC 7396); `payload` is replaced completely."""

    model_config = ConfigDict(json_schema_extra=_as_update)
    READ_ONLY: ClassVar[frozenset[str]] = TaskFields.READ_ONLY - set(TaskCreate.model_fields)
    FIXED: ClassVar[frozenset[str]] = frozenset(TaskCreate.model_fields) - set(TaskFields.model_fields)

    priority: TaskPriority | None = None
    callback_url: Annotated[
        CallbackUrl | None, Field(description="URL that receives the outcome; null if there is none.")
    ] = None
    notify_on: Annotated[
        NotifyOnPatch | None,
        Field(description="Notices about a failure, a late start or a long run; null for no notices."),
    ] = None
    expires_seconds: ExpiresSeconds | None = None
    fair_key: FairKey | None = None
    fair_weight: FairWeight | None = None
    name: Annotated[TaskName | None, Field(description="Human-readable name; null removes the name.")] = None
    tags: Annotated[
        Annotated[dict[TagKey, TagValue | None], Field(json_schema_extra={"additionalProperties": False})] | None,
        Field(
            description="Tags to add or replace; a null value removes that tag, and null instead of an object removes "
            "all tags.",
            examples=[{"team": "dba", "step": None}],
        ),
    ] = None
    payload: Payload = None
    due_at: Annotated[
        Moment | None,
        Field(description="When the task is due; null means unchanged. Cannot be given with `delay_seconds`."),
    ] = None
    delay_seconds: DelaySeconds | None = None
    target: Annotated[TargetPatch | None, Field(description="The target; null for the default of the type.")] = None
    retry: Annotated[RetryPatch | None, Field(description="The retry policy; null for the default.")] = None
    timeout_seconds: TimeoutSeconds | None = None
    notify_within_seconds: NotifyWithinSeconds | None = None
    rollback_on_failure: RollbackOnFailure | None = None
    rate: Annotated[
        RatePatch | None, Field(description="How often attempts with the rate's key can start; null for no limit.")
    ] = None
    lock: Annotated[
        LockPatch | None,
        Field(description="The lock that the task needs while it runs, instead of `locks`; null for no lock."),
    ] = None
    locks: Annotated[
        Locks | None,
        Field(description="The locks that the task needs, which replace the entire list; null for no locks."),
    ] = None
