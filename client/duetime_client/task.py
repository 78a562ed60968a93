"""Tasks as the API returns them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, field_serializer

from duetime_client.open_literals import (
    ActorType,
    AttemptOutcome,
    EventType,
    RequestedAction,
    TaskPriority,
    TaskState,
    WaitReason,
)
from duetime_client.request_estimates import RequestEstimate
from duetime_client.task_definitions import ResultInvalid
from duetime_common.payload_codecs import json_of_bytes, value_of
from duetime_common.payload_models import from_json

M = TypeVar("M")
ClassOf: TypeAlias = type[M]
"""An alias for the built-in `type`, because task classes have a field with the name `type`."""
TERMINAL = frozenset({"succeeded", "failed", "rolled_back", "cancelled"})
"""Final states: the outcome of the task is known."""
OnConflict: TypeAlias = Literal["keep", "replace"]
"""How a create request was handled, because this task already holds the request's unique key."""


class Progress(BaseModel):
    """The progress that a running task reported."""

    model_config = ConfigDict(frozen=True, extra="allow")

    percent: float | None = None
    message: str | None = None


class Failure(BaseModel):
    """Why a task or its last attempt failed."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str = ""
    message: str = ""


class Lease(BaseModel):
    """The worker of a task, and when its lease expires."""

    model_config = ConfigDict(frozen=True, extra="allow")

    worker: str = ""
    expires_at: datetime


class WaitingFor(BaseModel):
    """The reason why a task waits: a code and a description."""

    model_config = ConfigDict(frozen=True, extra="allow")

    reason: WaitReason = "other"
    text: str = ""


class ResponseModel(BaseModel):
    """Base of response models. Fields added by a newer API become extra attributes."""

    model_config = ConfigDict(frozen=True, extra="allow")

    _document: Mapping[str, object] = PrivateAttr(default_factory=dict)

    @classmethod
    def of_document(cls, document: Mapping[str, object]) -> Self:
        """Parse a response's JSON.

        Raises:
            pydantic.ValidationError: The JSON is not valid.
        """
        value = cls.model_validate(document)
        value._document = document  # noqa: SLF001 - pydantic sets private attributes after validation only
        return value

    @property
    def document(self) -> Mapping[str, object]:
        """The JSON as the API sent it."""
        return self._document


class AttemptFailure(Failure):
    """Why an attempt failed. Only the last failure of a Python handler keeps its traceback."""

    traceback: str | None = None


class Attempt(ResponseModel):
    """An attempt that has ended. If an attempt was lost with its worker, only its number is known."""

    attempt: int
    fence: int
    outcome: AttemptOutcome
    worker: str | None = None
    function_version: str | None = None
    planned_at: datetime | None = None
    started_at: datetime | None = None
    lateness_ms: float | None = None
    duration_ms: float | None = None
    error: AttemptFailure | None = None
    cost_dollars: float | None = None


class TaskStep(ResponseModel):
    """A step that a handler has completed; later attempts get the stored result and do not repeat the step."""

    phase: str
    name: str
    attempt: int
    fence: int
    finished_at: datetime
    duration_ms: int
    result: Any = None


class Actor(BaseModel):
    """The actor of an event: a user, a schedule, a topology, or the system, which has no name."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: ActorType
    name: str | None = None


class TaskEvent(ResponseModel):
    """An event in the life of a task; fields that do not apply to its type are `None`."""

    type: EventType
    at: datetime | None = None
    actor: Actor | None = None
    reason: str | None = None
    version: int | None = None
    fields_changed: tuple[str, ...] = Field(default=(), alias="fields")
    nodes: tuple[str, ...] = ()
    bulk_operation_id: str | None = None
    attempt: int | None = None
    fence: int | None = None
    worker: str | None = None
    outcome: AttemptOutcome | None = None
    error: Failure | None = None
    state: TaskState | None = None


class TaskCount(ResponseModel):
    """How many tasks match a filter.

    Attributes:
        tasks: the number of matching tasks, or of matches among the first thousand examined tasks.
        is_exact: whether all possible matches were examined.
        cost_dollars: the matching tasks' estimated cost so far, at assumed prices.
    """

    tasks: int
    is_exact: bool
    cost_dollars: float = 0.0


class TaskHistory(ResponseModel):
    """The events of a task, oldest first; `dropped` is the number of older actions that are no longer kept."""

    events: tuple[TaskEvent, ...]
    dropped: int = 0


class TargetReply(ResponseModel):
    """The response of an endpoint to a query about a task, with its HTTP status and JSON."""

    status: int
    body: object = None


class CancelledChildren(BaseModel):
    """The effect of a cancellation on the children of a task.

    Attributes:
        cancelled: the number of cancelled children.
        stopping: the number of running children that are asked to stop.
        running: the number of running children that were not stopped because `force` was not given.
        has_more: whether the cancellation must be repeated to cancel the other children.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    cancelled: int = 0
    stopping: int = 0
    running: int = 0
    has_more: bool = False


class Task(ResponseModel):
    """A unit of work with a due time."""

    id: str
    state: TaskState
    type: str
    due_at: datetime
    next_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    name: str | None = None
    tags: Mapping[str, str] = Field(default_factory=dict)
    priority: TaskPriority = "normal"
    target: Mapping[str, object] | None = None
    callback_url: str | None = None
    notify_on: Mapping[str, object] | None = None
    expires_seconds: int | None = None
    fair_key: str | None = None
    fair_weight: int = 1
    expires_at: datetime | None = None
    payload: Annotated[object, BeforeValidator(value_of)] = None
    """JSON, or the bytes of a binary payload as a `Binary`."""
    retry: Mapping[str, object] | None = None
    timeout_seconds: int | None = None
    notify_within_seconds: int | None = None
    rollback_on_failure: bool = False
    attempt: int = 0
    fence: int = 0
    version: int = 0
    lease: Lease | None = None
    awaiting_notification: bool = False
    job: Mapping[str, object] | None = None
    requested_action: RequestedAction | None = None
    traceparent: str | None = None
    lock: Mapping[str, object] | None = None
    locks: tuple[Mapping[str, object], ...] = ()
    rate: Mapping[str, object] | None = None
    unique: Mapping[str, object] | None = None
    debounce: Mapping[str, object] | None = None
    order: Mapping[str, object] | None = None
    waiting_for: WaitingFor | None = None
    schedule: Mapping[str, object] | None = None
    topology: Mapping[str, object] | None = None
    parent_task_id: str | None = None
    """The task that started this task, if any."""
    group: Mapping[str, object] | None = None
    """The group that the task is a member of, if any."""
    completes_group: str | None = None
    """The group whose members must end before this task runs, if any."""
    kept_until: datetime | None = None
    """The time until which the task can be read; `None` before the task ends."""
    after: tuple[str | Mapping[str, object], ...] | None = None
    """The task ids and schedule occurrences that must end before this task starts."""
    trigger_rule: str | None = None
    """How the tasks in `after` must have ended for this task to run."""
    progress: Progress | None = None
    result: Annotated[object, BeforeValidator(value_of)] = None
    error: Failure | None = None
    lateness_ms: int | None = None
    cost_dollars: float | None = None
    """Estimated cost so far; see the reference page about costs."""
    estimate: RequestEstimate | None = None
    """Estimated cost, if requested at creation."""
    children: CancelledChildren | None = None
    """The effect of a cancellation on the task's children, if the cancellation included them."""
    content_expired: tuple[str, ...] = ()
    """The large fields (`payload`, `result`) that expired before the task; they are `None` here."""

    _etag: str | None = PrivateAttr(default=None)
    _on_conflict: OnConflict | None = PrivateAttr(default=None)

    @classmethod
    def of_document(cls, document: Mapping[str, object], etag: str | None = None) -> Self:
        """Read a task from a response's JSON.

        Raises:
            pydantic.ValidationError: The JSON is not a task.
        """
        task = super().of_document(document)
        task._etag = etag  # noqa: SLF001 - pydantic sets private attributes after validation only
        return task

    @field_serializer("payload", "result", when_used="json")
    def _bytes_as_json(self, value: object) -> object:
        return json_of_bytes(value) if isinstance(value, bytes) else value

    @property
    def etag(self) -> str:
        """The version for `tasks.update(if_match=…)`."""
        return self._etag or f'"{self.version}"'

    @property
    def on_conflict(self) -> OnConflict | None:
        """`keep` or `replace` if the create request returned this existing task because it holds the unique key."""
        return self._on_conflict

    def answering(self, on_conflict: str | None) -> Self:
        """Record how a create request with the task's unique key was handled, and return the task."""
        self._on_conflict = "replace" if on_conflict == "replace" else None if on_conflict is None else "keep"
        return self

    def result_as(self, model: ClassOf[M]) -> M:
        """The result as an instance of a class (a pydantic model or a dataclass).

        Raises:
            ResultInvalid: The result is not valid, or the task has no result.
        """
        try:
            return from_json(model, self.result)
        except ValueError as error:
            raise ResultInvalid(f"the result of task {self.id} ({self.state}) is {error}") from None

    @property
    def is_terminal(self) -> bool:
        """Whether the task's outcome is known."""
        return self.state in TERMINAL
