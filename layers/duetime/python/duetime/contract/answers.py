"""The bodies of answers. A field that has no value yet is null; list entries carry no payload and no result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.problems import Problem  # noqa: TC001 - same
from duetime.domain.states import State  # noqa: TC001 - same
from duetime.domain.task import Priority  # noqa: TC001 - same

Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
ErrorAnswer = TypedDict("ErrorAnswer", {"class": str, "message": str})
ErrorAnswer.__doc__ = "Why the last attempt failed: the error's class and message."


class ProgressAnswer(TypedDict):
    """How far the running attempt says it has come."""

    percent: int
    message: str


class RetryAnswer(TypedDict):
    """How often and how patiently the task is tried."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float


class HandlerTargetAnswer(TypedDict):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class HttpTargetAnswer(TypedDict):
    """An HTTP endpoint."""

    kind: Literal["http"]
    url: str


class TaskEntry(TypedDict):
    """A task as lists show it."""

    id: Annotated[str, Field(description="A ULID; ids sort by due time.")]
    state: State
    type: str
    name: str | None
    tags: Mapping[str, str]
    priority: Priority
    target: HandlerTargetAnswer | HttpTargetAnswer
    retry: RetryAnswer
    timeout_seconds: int
    due_at: Annotated[Instant, Field(description="When its user wants it to run.")]
    next_at: Annotated[Instant | None, Field(description="When it is looked at next; null once it has ended.")]
    created_at: Instant
    started_at: Annotated[Instant | None, Field(description="When the first attempt started.")]
    finished_at: Annotated[Instant | None, Field(description="When its outcome was stored and followed up.")]
    attempt: Annotated[int, Field(description="How many attempts have begun.")]
    fence: Annotated[int, Field(description="Grows with every claim; a target can refuse an older one.")]
    progress: ProgressAnswer | None
    error: ErrorAnswer | None
    lateness_ms: Annotated[int | None, Field(description="How long after its due time it started.")]
    version: Annotated[int, Field(description="Grows with every write; the ETag is made of it.")]


class TaskAnswer(TaskEntry):
    """A task, whole."""

    payload: Any
    result: Annotated[Any, Field(description="What the target returned; null before that.")]


class PageAnswer(TypedDict):
    """Some of the tasks of a list."""

    tasks: Sequence[TaskEntry]
    next_token: Annotated[
        str | None, Field(description="Asks for the next page; null on the last one. A page may be short, or empty.")
    ]


class BatchAccepted(TypedDict):
    """A task of a batch that was created."""

    status: Literal[201]
    task: TaskEntry


class BatchRefused(TypedDict):
    """A task of a batch that was not created."""

    status: int
    problem: Problem


class BatchAnswer(TypedDict):
    """What became of each task of a batch, in its order."""

    results: Sequence[BatchAccepted | BatchRefused]


class HealthAnswer(TypedDict):
    """The API answers."""

    status: Literal["ok"]
    version: str
