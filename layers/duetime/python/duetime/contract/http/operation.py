"""What is said of an operation, and what many of them share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.contract.http import request_errors
from duetime.domain import errors
from duetime.domain.limits import MAX_IDEMPOTENCY_KEY_LENGTH, MAX_OWNER_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.tasks.bodies import Body


@dataclass(frozen=True, slots=True)
class Header:
    """A header that a request may carry."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)


OWNER = Header(
    "X-Duetime-Owner",
    "Names the owner on a deployment without authentication (the local stack); all others ignore it.",
    {"minLength": 1, "maxLength": MAX_OWNER_LENGTH, "default": "local"},
)
KEY = Header(
    "Idempotency-Key",
    "Repeating a request with the same key and body answers the same task; with another body it is refused.",
    {"pattern": f"^[!-~]{{1,{MAX_IDEMPOTENCY_KEY_LENGTH}}}$"},
)
IF_MATCH = Header("If-Match", "Only if the task is still at this ETag; without it, whatever it is at.")
IF_NONE_MATCH = Header("If-None-Match", "ETags that the caller has; if the task is at one of them, the answer is 304.")

ETAG = {"ETag": "The task's version."}
CACHED = {**ETAG, "Cache-Control": "`no-store` until the task has ended, then how long its outcome may be kept."}

EVERYWHERE = (request_errors.ParametersInvalid,)
OWNED = (*EVERYWHERE, request_errors.CallerUnknown, request_errors.CallerForbidden, errors.Unavailable)
READ_BODY = (
    request_errors.BodyUnreadable,
    request_errors.BodyTooLarge,
    request_errors.MediaTypeUnsupported,
    request_errors.FieldsInvalid,
)
ONE_CHANGED = (errors.TaskNotFound, errors.StateConflict, errors.VersionMismatch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path.

    Attributes:
        id: its name in generated clients.
        body: model of its request's body.
        body_types: media types that its body may have besides JSON.
        answer: model of its answer's body.
        answer_schema: instead of a reference to that model.
        accepted: what its 202 means, if it answers that besides `status`.
        accepted_response: model of that answer's body, if it is another.
        accepted_headers: of that answer, besides the others.
        query: model of its parameters.
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
    body: type[Body] | None = None
    body_types: tuple[str, ...] = ()
    answer_schema: Mapping[str, Any] | None = None
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[Header, ...] = ()
    accepted: str = ""
    accepted_response: type | None = None
    accepted_headers: Mapping[str, str] = field(default_factory=dict)
    query: type[Body] | None = None
    has_not_modified: bool = False
