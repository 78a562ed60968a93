"""The fields of the API's requests about tasks, as typed dictionaries.

On creation, an absent field takes its default. On update, an absent field keeps its value, as does an absent part of
`tags`, `retry`, `lock`, `rate`, `notify_on` or a `target` of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NotRequired, Required, TypeAlias, TypedDict

# The package's lazy imports find these names in this module.
from duetime_common.option_fields import (  # noqa: TC001 - see above
    LockSpec,
    NotifyOn,
    OrderedKey,
    RateSpec,
    RetryPolicy,
    UniqueKey,
)
from duetime_common.payload_codecs import json_of_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from duetime_client.literals import TaskPriority, TaskState


class Priority(StrEnum):
    """Which of several tasks due at the same time starts first."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class HttpContent(TypedDict, total=False):
    """The body of a request, in one of four forms."""

    json: object
    form: Mapping[str, str]
    text: str
    base64: str


class HttpAuth(TypedDict):
    """Authentication of a request: `secret` is a name in the deployment's settings.

    `header` is for the scheme `header`.
    """

    secret: str
    scheme: Literal["bearer", "basic", "header", "oauth_client"]
    header: NotRequired[str | None]


class HttpResponseOptions(TypedDict, total=False):
    """Which part of a response becomes the task's result."""

    keep: Literal["body", "all", "none"]
    max_bytes: int
    when_larger: Literal["fail", "truncate"]


class HttpBatch(TypedDict, total=False):
    """How several due tasks share one request to an endpoint."""

    max_size: int
    max_wait_seconds: float


class HttpTarget(TypedDict):
    """An HTTP endpoint that is called when the task is due.

    With `method` or `body`, a custom request is sent instead of duetime's signed one.
    """

    kind: Literal["http"]
    url: str
    phases: NotRequired[Sequence[str]]
    queries: NotRequired[Sequence[str]]
    method: NotRequired[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] | None]
    headers: NotRequired[Mapping[str, str | None]]
    query: NotRequired[Mapping[str, str | None]]
    body: NotRequired[HttpContent | None]
    success: NotRequired[Sequence[int] | None]
    auth: NotRequired[HttpAuth | None]
    response: NotRequired[HttpResponseOptions | None]
    batch: NotRequired[HttpBatch | None]


class Debounce(TypedDict):
    """Each create request with the key replaces the task's fields and makes the task due `seconds` later."""

    key: str
    seconds: int
    max_seconds: NotRequired[int | None]


class ScheduleOccurrence(TypedDict):
    """A schedule's occurrence that a task waits for, identified by its scheduled time."""

    schedule: str
    occurrence: datetime | str


class PullTarget(TypedDict):
    """Pull workers, which lease the tasks of a type; the deployment's settings declare the types."""

    kind: Literal["pull"]


class AwsTarget(TypedDict):
    """An AWS resource that is called with the task; the deployment's settings say which resources are allowed.

    `mode` is for Lambda functions, `detail_type` for event buses, `wait` for state machines; ECS task definitions
    require `cluster` and `container`; `queue` is for Batch job definitions; `parameters` is for ECS, Batch, CodeBuild
    and Glue.
    """

    kind: Literal["lambda", "sqs", "sns", "eventbridge", "step_functions", "ecs", "batch", "codebuild", "glue"]
    arn: str
    mode: NotRequired[Literal["sync", "async", "durable"]]
    detail_type: NotRequired[str]
    wait: NotRequired[bool]
    cluster: NotRequired[str]
    container: NotRequired[str]
    queue: NotRequired[str]
    parameters: NotRequired[Mapping[str, object]]


class DefinitionRun(TypedDict):
    """A run of a topology definition, by default of its latest version."""

    name: str
    version: NotRequired[int | None]
    parameters: NotRequired[Mapping[str, object]]


class TopologyTarget(TypedDict):
    """A topology whose graph comes from the payload or from a definition."""

    kind: Literal["topology"]
    definition: NotRequired[DefinitionRun | None]


class ApprovalTarget(TypedDict):
    """A person approves or rejects the task; `on_timeout` applies if nobody decides within `timeout_seconds`."""

    kind: Literal["approval"]
    timeout_seconds: NotRequired[int]
    on_timeout: NotRequired[Literal["fail", "reject", "approve"]]


class EventTarget(TypedDict):
    """The task waits for a signal with this name and key, which `client.signals.send` sends.

    `when` is a JMESPath condition on the signal's `payload`.
    """

    kind: Literal["wait_for_event"]
    event: str
    key: NotRequired[str]
    timeout_seconds: NotRequired[int]
    lookback_seconds: NotRequired[int]
    when: NotRequired[str | None]


TriggerRule: TypeAlias = Literal["all_success", "all_done", "one_success", "one_failed", "none_failed", "always"]
"""How the tasks in `after` must have ended for a task to run."""
Target = HttpTarget | PullTarget | TopologyTarget | ApprovalTarget | EventTarget | AwsTarget


class GroupMembership(TypedDict):
    """The group that a task joins."""

    id: str


class TaskOptions(TypedDict, total=False):
    """The fields of a task, except its type, its payload and its due time.

    `allow_unknown_type`, `unique`, `debounce`, `order`, `parent_task_id`, `group`, `after` and `trigger_rule` are for
    new tasks only. `allow_unknown_type` accepts a type whose handler is not deployed yet; `parent_task_id` is the task
    that starts the new task, and `after` names the tasks that must end before it starts.
    """

    priority: Priority | TaskPriority
    retry: RetryPolicy
    timeout_seconds: int
    notify_within_seconds: int
    rollback_on_failure: bool
    lock: LockSpec | None
    locks: Sequence[LockSpec]
    rate: RateSpec | None
    target: Target
    callback_url: str | None
    notify_on: NotifyOn | None
    expires_seconds: int | None
    fair_key: str | None
    fair_weight: int
    tags: Mapping[str, str | None]
    name: str | None
    allow_unknown_type: bool
    unique: UniqueKey | None
    debounce: Debounce | None
    order: OrderedKey | None
    parent_task_id: str | None
    group: GroupMembership | None
    after: Sequence[str | ScheduleOccurrence] | None
    trigger_rule: TriggerRule | None


class TaskFields(TaskOptions, total=False):
    """The fields of a task, except its type."""

    payload: object
    due_at: datetime | str
    delay_seconds: float


class NewTask(TaskFields, total=False):
    """One task of a batch."""

    type: Required[str]


class TaskFilter(TypedDict, total=False):
    """Which tasks to list (those that match all fields), and in which order.

    `parent` lists the nodes of a topology, and `parent_task_id` the children of a task.

    `name_contains` and `error_contains` examine tasks one by one; use `created_after` or another field to limit how
    many tasks are examined.

    Nodes of topologies are listed only with `state`, `parent` or `include_nodes`. The order `finished_at` lists only
    ended tasks, and is the default with `finished_after` or `finished_before`. With `expand`, tasks include their
    `payload` or `result`, which are `None` otherwise.
    """

    state: TaskState | Sequence[TaskState]
    parent: str
    parent_task_id: str
    group: str
    schedule: str
    type: str
    name: str
    name_contains: str
    tags: Mapping[str, str]
    error_type: str
    error_contains: str
    due_after: datetime | str
    due_before: datetime | str
    created_after: datetime | str
    created_before: datetime | str
    finished_after: datetime | str
    finished_before: datetime | str
    order: Literal["asc", "desc"]
    order_by: Literal["due_at", "finished_at"]
    include_nodes: bool
    ids: Sequence[str]
    expand: Sequence[Literal["payload", "result"]]


class BulkFilter(TypedDict, total=False):
    """Which tasks to cancel or to update: those that match all fields. `state` can name several states."""

    state: TaskState | Sequence[TaskState]
    type: str
    name: str
    name_contains: str
    tags: Mapping[str, str]
    error_type: str
    error_contains: str
    schedule: str
    group: str
    due_after: datetime | str
    due_before: datetime | str
    created_after: datetime | str
    created_before: datetime | str


class DeadLetterFilter(TypedDict, total=False):
    """Which failed tasks to run again: those that match all fields. `error_type` is the type of the last error."""

    type: str
    name: str
    name_contains: str
    tags: Mapping[str, str]
    error_type: str
    error_contains: str
    schedule: str
    group: str
    due_after: datetime | str
    due_before: datetime | str
    created_after: datetime | str
    created_before: datetime | str
    finished_after: datetime | str
    finished_before: datetime | str


class EndedTaskFilter(DeadLetterFilter, total=False):
    """Which ended tasks to delete: those that match all fields, in any final state if `state` is left out."""

    state: TaskState | Sequence[TaskState]


class ListedDeadLetters(DeadLetterFilter, total=False):
    """Which failed tasks to list, and in which order."""

    order: Literal["asc", "desc"]
    order_by: Literal["due_at", "finished_at"]


class BulkOptions(TypedDict, total=False):
    """How to process many tasks: `all` allows an empty filter; `limit` processes tasks page by page.

    `confirmation_token` comes from the result of a dry run; tasks created after the dry run are not changed. `reason`
    is recorded with each task.
    """

    all: bool
    order: Literal["asc", "desc"]
    limit: int
    per_second: float
    dry_run: bool
    confirmation_token: str
    reason: str


class TimeWithoutZone(ValueError):
    """A time without a zone was given, which is ambiguous."""

    def __init__(self, moment: datetime) -> None:
        super().__init__(f"{moment.isoformat()} has no time zone: give it one, such as datetime.UTC")


def body_of(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields as the API's JSON, including the task of a schedule or group and the nodes of a topology."""
    body = {name: encoded(value) for name, value in fields.items()}
    match body:
        case {"task": Mapping() as task}:
            body["task"] = body_of(task)
        case {"nodes": Mapping() as nodes}:
            body["nodes"] = {key: body_of(node) if isinstance(node, Mapping) else node for key, node in nodes.items()}
    return body


def query_of(filters: Mapping[str, object], limit: int | None) -> Iterator[tuple[str, str]]:
    """The filter as query parameters of a list."""
    for name, value in filters.items():
        yield from parameters_of(name, value)
    if limit is not None:
        yield "limit", str(limit)


def parameters_of(name: str, value: object) -> Iterable[tuple[str, str]]:
    """One filter field as query parameters: one parameter for each tag, and a single parameter for all ids."""
    match name, value:
        case "tags", dict() as tags:
            return [("tag", f"{key}:{tag}") for key, tag in tags.items()]
        case "ids" | "state" | "expand", list() | tuple() | set() | frozenset() as several:
            return [(name, ",".join(map(str, several)))]
        case _, bool():
            return [(name, "true" if value else "false")]
        case _:
            return [(name, str(encoded(value)))]


def encoded(value: object) -> object:
    """Convert a time to RFC 3339 text with its own offset, and bytes to a binary payload; other values are unchanged.

    Raises:
        TimeWithoutZone: The time has no zone.
    """
    if isinstance(value, bytes):
        return json_of_bytes(value)
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise TimeWithoutZone(value)
    return value.isoformat()
