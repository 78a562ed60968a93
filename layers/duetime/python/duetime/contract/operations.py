"""What each operation takes and answers: the part of the OpenAPI document that no model tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.contract import answers, bodies, refusals, routes
from duetime.domain import errors
from duetime.domain.limits import MAX_BATCH, MAX_IDEMPOTENCY_KEY_LENGTH, MAX_OWNER_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Header:
    """A header that a request may carry."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)


_OWNER = Header(
    "X-Duetime-Owner",
    "Names the owner on a deployment without authentication (the local stack); all others ignore it.",
    {"minLength": 1, "maxLength": MAX_OWNER_LENGTH, "default": "local"},
)
_KEY = Header(
    "Idempotency-Key",
    "Repeating a request with the same key and body answers the same task; with another body it is refused.",
    {"pattern": f"^[!-~]{{1,{MAX_IDEMPOTENCY_KEY_LENGTH}}}$"},
)
_IF_MATCH = Header("If-Match", "Only if the task is still at this ETag; without it, whatever it is at.")
_IF_NONE_MATCH = Header("If-None-Match", "ETags that the caller has; if the task is at one of them, the answer is 304.")

_ETAG = {"ETag": "The task's version."}
_CACHED = {**_ETAG, "Cache-Control": "`no-store` until the task has ended, then how long its outcome may be kept."}

_EVERYWHERE = (refusals.ParametersInvalid,)
_OWNED = (*_EVERYWHERE, refusals.CallerUnknown, refusals.CallerRefused, errors.Unavailable)
_READ_BODY = (
    refusals.BodyUnreadable,
    refusals.BodyTooLarge,
    refusals.MediaTypeUnsupported,
    refusals.FieldsInvalid,
)
_ONE_CHANGED = (errors.TaskUnknown, errors.MoveRefused, errors.VersionDiffers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path.

    Attributes:
        id: its name in generated clients.
        body: model of its request's body.
        answer: model of its answer's body.
        answer_schema: instead of a reference to that model.
        has_query: it takes the parameters of a list.
        has_not_modified: it may answer 304.
        refusals: the errors it may answer besides an unforeseen one.
    """

    id: str
    method: str
    path: str
    summary: str
    answer: type
    answer_description: str
    refusals: tuple[type[Exception], ...]
    description: str = ""
    tag: str = "tasks"
    status: int = 200
    body: type | None = None
    answer_schema: Mapping[str, Any] | None = None
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[Header, ...] = ()
    has_query: bool = False
    has_not_modified: bool = False


OPERATIONS = (
    Operation(
        id="createTask",
        method="POST",
        path=routes.TASKS,
        summary="Create a task",
        description="Once it is answered, the task is durable. A due time in the past is accepted: it runs now.",
        status=201,
        body=bodies.TaskCreate,
        answer=answers.TaskAnswer,
        answer_description="The task.",
        answer_headers={**_ETAG, "Location": "Path of the task."},
        headers=(_KEY, _OWNER),
        refusals=(*_OWNED, *_READ_BODY, errors.KeyReused),
    ),
    Operation(
        id="createTasks",
        method="POST",
        path=routes.BATCH,
        summary="Create many tasks",
        description=f"Up to {MAX_BATCH} at once, each with its own result: one that is refused stops no other. "
        "The idempotency key holds for each task together with its place in the list.",
        body=bodies.TaskBatch,
        answer=answers.BatchAnswer,
        answer_description="What became of each task, in the order they were given.",
        headers=(_KEY, _OWNER),
        refusals=(*_OWNED, *_READ_BODY),
    ),
    Operation(
        id="listTasks",
        method="GET",
        path=routes.TASKS,
        summary="List one's tasks",
        description="In order of their due times. A page may be short, or empty, and still name a next one.",
        answer=answers.PageAnswer,
        answer_description="A page of the list.",
        headers=(_OWNER,),
        has_query=True,
        refusals=_OWNED,
    ),
    Operation(
        id="getTask",
        method="GET",
        path=routes.TASK,
        summary="Read a task",
        answer=answers.TaskAnswer,
        answer_description="The task.",
        answer_headers=_CACHED,
        headers=(_IF_NONE_MATCH, _OWNER),
        has_not_modified=True,
        refusals=(*_OWNED, errors.TaskUnknown),
    ),
    Operation(
        id="changeTask",
        method="PATCH",
        path=routes.TASK,
        summary="Change a task that has not started",
        body=bodies.TaskPatch,
        answer=answers.TaskAnswer,
        answer_description="The task after the change.",
        answer_headers=_ETAG,
        headers=(_IF_MATCH, _OWNER),
        refusals=(*_OWNED, *_READ_BODY, *_ONE_CHANGED),
    ),
    Operation(
        id="cancelTask",
        method="DELETE",
        path=routes.TASK,
        summary="Cancel a task that has not started",
        description="Cancelling it again changes nothing and answers the same.",
        answer=answers.TaskAnswer,
        answer_description="The cancelled task.",
        answer_headers=_ETAG,
        headers=(_IF_MATCH, _OWNER),
        refusals=(*_OWNED, *_ONE_CHANGED),
    ),
    Operation(
        id="getHealth",
        method="GET",
        path=routes.HEALTH,
        summary="Ask whether the API answers",
        tag="service",
        answer=answers.HealthAnswer,
        answer_description="It does.",
        refusals=_EVERYWHERE,
    ),
    Operation(
        id="getOpenApi",
        method="GET",
        path=routes.OPENAPI,
        summary="Describe the API",
        tag="service",
        answer=dict,
        answer_schema={"type": "object"},
        answer_description="This document.",
        refusals=_EVERYWHERE,
    ),
)
