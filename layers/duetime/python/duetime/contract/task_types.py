"""The REST API for task types: bodies, queries, responses and operations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
)

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.http.request_errors import FaultCode, ParametersInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body, validated, words_of
from duetime.contract.tasks.bodies import Lock, Locks, NotifyOn, Rate, Retry, Unique
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.field_decoding import reject_two_forms_of_locks
from duetime.contract.tasks.fields import (
    TYPE_PATTERN,
    ExpiresSeconds,
    FairKey,
    FairWeight,
    NotifyWithinSeconds,
    RollbackOnFailure,
    TaskPriority,
    TimeoutSeconds,
)
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.domain import errors
from duetime.domain.errors import TypeNotFound
from duetime.domain.limits import MAX_PAGE, MAX_TYPES_WITH_DEFAULTS
from duetime.domain.operating_parameters import TYPE_DEFAULTS_LIFE
from duetime.domain.times import DAY, SECOND

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.redaction import Redaction
    from duetime.domain.tasks.type_defaults import TypeStatus
    from duetime.domain.type_settings import RetentionPolicy

_TYPE = re.compile(TYPE_PATTERN.removesuffix("$"))
_KEPT_ESCAPE = "%25"
"""The only escape sequence in a path that the gateway does not decode (Source: observed in `rawPath` of HTTP APIs)."""


class TypeDefaultsPut(Body):
    """A type's defaults, which are the task options for creations that do not set these options.

    An omitted option keeps the handler's default. Null turns off the handler's default.
    """

    priority: TaskPriority | None = None
    retry: Annotated[
        Retry | None, Field(description="How often a failed task is retried, and the wait before each retry.")
    ] = None
    timeout_seconds: TimeoutSeconds | None = None
    notify_within_seconds: NotifyWithinSeconds | None = None
    rollback_on_failure: RollbackOnFailure | None = None
    lock: Annotated[Lock | None, Field(description="The lock that a task needs while it runs.")] = None
    locks: Annotated[Locks | None, Field(description="The locks that a task needs, instead of `lock`.")] = None
    rate: Annotated[Rate | None, Field(description="How often attempts of tasks with the same key can start.")] = None
    notify_on: Annotated[NotifyOn | None, Field(description="Notices about a failure, a late start or a long run.")] = (
        None
    )
    expires_seconds: ExpiresSeconds | None = None
    fair_key: FairKey | None = None
    fair_weight: FairWeight | None = None
    unique: Annotated[
        Unique | None,
        Field(
            description="The unique key of tasks. Does not apply to schedule occurrences, topology nodes, and "
            "creations with `debounce`."
        ),
    ] = None


class TypeListQuery(Parameters):
    """Parameters of `GET /v1/types`."""

    limit: Annotated[PageSize, Field(description="Maximum number of types on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


class TypeResponse(TypedDict):
    """A task type, with its workers or handler and its tasks' default options."""

    type: str
    has_handler: Annotated[bool | None, Field(description="Whether the type has a Python handler; null if unknown.")]
    is_pulled: Annotated[bool, Field(description="Whether pull workers lease tasks of this type.")]
    phases: Annotated[Sequence[str], Field(description="Phases of the type's handler; empty if unknown.")]
    payload_schema: Annotated[
        Mapping[str, Any] | None,
        Field(description="JSON Schema of the handler's payload; null for any JSON, or if unknown."),
    ]
    defaults: Annotated[Mapping[str, Any], Field(description="Default options of the type's tasks.")]
    sources: Annotated[
        Mapping[str, Literal["handler", "owner"]],
        Field(description="Source of each default: the `handler`, or the `owner`, who set it with a PUT."),
    ]
    retention_days: Annotated[float, Field(description="How long an ended task can be read, in days.")]
    redacted: Annotated[
        Sequence[str],
        Field(description="The parts of payloads and results that are hidden from read-only callers and the archive."),
    ]
    updated_at: Annotated[
        Instant | None, Field(description="When the owner set the defaults; null if the owner never set them.")
    ]
    updated_by: Annotated[str | None, Field(description="Who set the defaults; null if nobody set them.")]


class TypePage(TypedDict):
    """A page of types."""

    types: Annotated[Sequence[TypeResponse], Field(description="The types, by name.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


def type_name(text: str) -> str:
    """Parses the type in a path.

    Raises:
        TypeNotFound: the text cannot be a type.
    """
    name = text.replace(_KEPT_ESCAPE, "%")
    if _TYPE.fullmatch(name) is None:
        raise TypeNotFound(name)
    return name


def new_type_name(text: str) -> str:
    """Parses the type in the path of a PUT.

    Raises:
        ParametersInvalid: the text cannot be a type.
    """
    try:
        return type_name(text)
    except TypeNotFound:
        reason = words_of(TYPE_PATTERN) or "is not a type"
        raise ParametersInvalid.of("name", reason, FaultCode.PATTERN) from None


def defaults_of(document: Document) -> Mapping[str, Any]:
    """Decodes the defaults of a type.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return _given(read_body(TypeDefaultsPut, document))


def defaults_of_value(value: object) -> Mapping[str, Any]:
    """Decodes the defaults that a handler gives its type.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return _given(validated(TypeDefaultsPut, value))


def _given(body: TypeDefaultsPut) -> Mapping[str, Any]:
    reject_two_forms_of_locks(body.lock, body.locks)
    return body.model_dump(mode="json", include=body.model_fields_set)


def type_response(status: TypeStatus, retention: RetentionPolicy, redaction: Redaction) -> TypeResponse:
    """The response for a type."""
    handler, own = status.handler, status.own
    schema = None if handler is None else handler.payload_schema
    return TypeResponse(
        type=status.type,
        has_handler=status.has_handler,
        is_pulled=status.is_pulled,
        phases=[] if handler is None else list(handler.phases),
        payload_schema=None if schema is None else json.loads(schema),
        defaults=status.defaults,
        sources=status.sources,  # type: ignore[typeddict-item]  # one of the two
        retention_days=retention.of(status.type) / DAY,
        redacted=redaction.texts_of(status.type),
        updated_at=None if own is None else instant(own.updated_at),
        updated_by=None if own is None else own.updated_by,
    )


LIST = Operation(
    "listTypes",
    "GET /v1/types",
    "List task types",
    Returns(TypePage, "A page of types."),
    description="Types with a Python handler, pull workers or defaults of the caller, ordered by name.",
    query=TypeListQuery,
)
READ = Operation(
    "getType",
    "GET /v1/types/{name}",
    "Get a task type",
    Returns(TypeResponse, "The type."),
    description="The type's defaults, the phases of its handler, and the JSON Schema of its payload.",
    has_open_path=True,
)
PUT = Operation(
    "putType",
    "PUT /v1/types/{name}",
    "Set the defaults of a type",
    Returns(TypeResponse, "The type."),
    description="Sets defaults for the caller's own tasks, including tasks of schedules and topologies. Replaces the "
    "caller's earlier defaults. Options in a creation take precedence over these defaults, which take precedence over "
    f"the handler's defaults. New tasks get the defaults within {TYPE_DEFAULTS_LIFE // SECOND} seconds; existing tasks "
    f"do not change. A caller can set defaults for at most {MAX_TYPES_WITH_DEFAULTS} types.",
    body=TypeDefaultsPut,
    errors=(errors.TypesFull,),
    has_open_path=True,
)
DELETE = Operation(
    "deleteType",
    "DELETE /v1/types/{name}",
    "Delete the defaults of a type",
    Returns(TypeResponse, "The type before the deletion."),
    description="Deletes the defaults that the caller set; the handler's defaults apply again.",
    has_open_path=True,
)
