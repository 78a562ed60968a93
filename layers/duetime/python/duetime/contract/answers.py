"""How tasks are answered. A field that has no value yet is null; list entries carry no payload and no result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.problems import Problem  # noqa: TC001 - see above
from duetime.domain import task as domain
from duetime.domain.states import State  # noqa: TC001 - see above
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.task import Content, Task
    from duetime.domain.times import Millis

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
    priority: domain.Priority
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


def entry(task: Task) -> TaskEntry:
    """A task as lists show it."""
    return TaskEntry(
        id=str(task.id),
        state=task.state,
        type=task.type,
        name=task.name or None,
        tags=task.tags,
        priority=task.priority,
        target=_target(task.target),
        retry=_retry(task),
        timeout_seconds=task.timeout_seconds,
        due_at=to_iso(task.due_at),
        next_at=None if task.is_terminal else to_iso(task.next_at),
        created_at=to_iso(task.created_at),
        started_at=_instant(task.started_at),
        finished_at=_instant(task.finished_at),
        attempt=task.attempt,
        fence=task.fence,
        progress=_progress(task.progress),
        error=_error(task.error),
        lateness_ms=task.lateness,
        version=task.version,
    )


def task_text(task: Task) -> str:
    """A task, whole, as JSON text. Its payload and result are JSON already, and stay as they are."""
    known = json_text(entry(task))
    return f'{known[:-1]},"payload":{_json_of(task.payload)},"result":{_json_of(task.result)}}}'


def json_text(value: Mapping[str, object]) -> str:
    """An answer as JSON text without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _json_of(content: Content | None) -> str:
    return "null" if content is None or content.data is None else content.data.decode()


def _instant(at: Millis | None) -> str | None:
    return None if at is None else to_iso(at)


def _progress(progress: domain.Progress | None) -> ProgressAnswer | None:
    return None if progress is None else ProgressAnswer(percent=progress.percent, message=progress.message)


def _error(error: domain.TaskError | None) -> ErrorAnswer | None:
    return None if error is None else ErrorAnswer({"class": error.kind, "message": error.message})


def _target(target: domain.Target) -> HandlerTargetAnswer | HttpTargetAnswer:
    if isinstance(target, domain.HttpTarget):
        return HttpTargetAnswer(kind="http", url=target.url)
    return HandlerTargetAnswer(kind="handler")


def _retry(task: Task) -> RetryAnswer:
    policy = task.retry
    return RetryAnswer(
        max_attempts=policy.max_attempts,
        initial_seconds=policy.initial_seconds,
        multiplier=policy.multiplier,
        max_seconds=policy.max_seconds,
    )
