"""What is declared of an operation, once: routing, `Allow`, the OpenAPI document and the docs follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar  # with a default, before Python 3.13

from duetime.contract.http import request_errors
from duetime.contract.http.etags import IF_MATCH_PATTERN, IF_NONE_MATCH_PATTERN, MAX_CONDITION_LENGTH
from duetime.domain import errors
from duetime.domain.bulk import errors as for_bulk
from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE, MAX_IDEMPOTENCY_KEY_LENGTH, MAX_OWNER_LENGTH
from duetime.domain.schedules import errors as for_schedules
from duetime.domain.times import SECOND
from duetime.domain.topologies import errors as for_topologies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.query_parameters import Parameters
    from duetime.contract.http.request_model import Body

OK, ACCEPTED = 200, 202
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
Q = TypeVar("Q", bound="Parameters", default=Any)


@dataclass(frozen=True, slots=True)
class Header:
    """A header that a request may carry."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)


OWNER = Header(
    "X-Duetime-Owner",
    "Names the owner on a deployment without authentication (the local stack); ignored by all others.",
    {"minLength": 1, "maxLength": MAX_OWNER_LENGTH, "default": "local"},
)
KEY = Header(
    "Idempotency-Key",
    "A request that repeats the key and the body returns what the first one created; the same key with another body "
    "is refused.",
    {"pattern": f"^[!-~]{{1,{MAX_IDEMPOTENCY_KEY_LENGTH}}}$"},
)
KEY_LIFE = Header(
    "Idempotency-Key-Seconds",
    f"For how many seconds the idempotency key is remembered: at most as long as the deployment keeps ended tasks; by "
    f"default, {IDEMPOTENCY_KEY_LIFE // SECOND}.",
    {"pattern": "^[0-9]{1,9}$", "example": "604800"},
)
TRACEPARENT = Header(
    "traceparent",
    "The trace of the request, by W3C Trace Context: the task keeps it as its creation context and hands it on to its "
    "handler or target, to its callback and to the nodes of a topology; a schedule hands it on to its runs. One that "
    "is not well-formed is ignored.",
    {"example": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
)
IF_MATCH = Header(
    "If-Match",
    "Only if the resource still has this ETag; without the header, or with `*`, whatever its version.",
    {"pattern": IF_MATCH_PATTERN, "maxLength": MAX_CONDITION_LENGTH, "example": '"3"'},
)
IF_NONE_MATCH = Header(
    "If-None-Match",
    "ETags of the caller's copies, separated by commas: if the resource still has one of them, the response is 304.",
    {"pattern": IF_NONE_MATCH_PATTERN, "maxLength": MAX_CONDITION_LENGTH, "example": '"3"'},
)

REPLAYED = "Idempotent-Replayed"
"""Header of a response that an earlier request with the same idempotency key got as well."""

ON_CONFLICT = "Duetime-On-Conflict"
"""Header of a response that is a task which holds the unique key of the one that was to be created."""

CONDITIONS = (IF_MATCH.name, IF_NONE_MATCH.name, "If-Unmodified-Since", KEY.name, KEY_LIFE.name)
"""Headers on which it depends whether a request takes effect: none is ever ignored by what changes something."""

_ALWAYS = (request_errors.ParametersInvalid,)
_OF_A_CALLER = (request_errors.CallerUnknown, request_errors.CallerForbidden, errors.Unavailable)
_OF_A_BODY = (
    request_errors.BodyUnreadable,
    request_errors.BodyTooLarge,
    request_errors.MediaTypeUnsupported,
    request_errors.EncodingUnsupported,
    request_errors.FieldsInvalid,
)
_NOT_FOUND: Mapping[str, tuple[type[Exception], ...]] = {
    "/{task_id}": (errors.TaskNotFound, errors.TaskArchived),
    "/definitions/{name}": (for_topologies.DefinitionNotFound,),
    "/{topology_id}": (errors.TaskNotFound,),
    "/bulk-operations/{operation_id}": (for_bulk.BulkNotFound,),
    "/leases/{lease_id}": (errors.LeaseNotFound,),
    "/locks/{key}": (errors.LockNotFound,),
    "/schedules/{name}": (for_schedules.ScheduleNotFound,),
    "/calendars/{name}": (for_schedules.CalendarNotFound,),
    "/{backfill_id}": (for_schedules.BackfillNotFound,),
}
"""What a part of a path names may not exist."""


@dataclass(frozen=True, slots=True)
class Returns:
    """One way in which an operation succeeds.

    Attributes:
        model: of the response's body; `dict` for any object, `None` for no body.
        headers: of the response, each with its description.
    """

    model: type | None
    description: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200

    def found(self, description: str) -> Returns:
        """The same response with status 200, for what was there already, and what that means."""
        headers = {**self.headers, ON_CONFLICT: "What was done with the task that holds the key: `keep` or `replace`."}
        return replace(self, status=200, description=description, headers=headers)

    def but(self, description: str) -> Returns:
        """The same response in other words."""
        return replace(self, description=description)

    def created(self, location: str) -> Returns:
        """The same response with status 201 and a `Location`."""
        return replace(self, status=201, headers={**self.headers, "Location": location})

    def accepted(self, description: str) -> Returns:
        """The same response with status 202, and what that means."""
        return replace(self, status=202, description=description)


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[Q]):
    """One method of one path.

    Attributes:
        id: its name in generated clients.
        route: its method and its path.
        returns: how it succeeds.
        accepted: how it succeeds with status 202, if it does that besides.
        kept: how it succeeds with status 200 if another task holds the unique key of the one to be created.
        query: model of its parameters; none are taken without it.
        body: model of its request's body; `EmptyRequest` for a body that may be left out and says nothing.
        body_types: media types that its body may have besides JSON.
        nesting: levels that the body puts around a task.
        headers: that it takes besides the owner's, and `If-None-Match` on a GET.
        errors: that it may answer, besides those that follow from its body, its path and its caller.
        has_open_path: the last parameter of its path may hold slashes: the gateway hands paths on decoded.
        is_public: it answers callers without an identity.
        is_question: it changes nothing, although its method is not GET.
        deprecated: the day since which another operation should be used instead, which its description names.
        sunset: the day on which it goes.
    """

    id: str
    route: str
    summary: str
    returns: Returns
    description: str = ""
    accepted: Returns | None = None
    kept: Returns | None = None
    query: type[Q] | None = None
    body: type[Body] | None = None
    body_types: tuple[str, ...] = ()
    nesting: int = 0
    headers: tuple[Header, ...] = ()
    errors: tuple[type[Exception], ...] = ()
    has_open_path: bool = False
    is_public: bool = False
    is_question: bool = False
    deprecated: date | None = None
    sunset: date | None = None

    @property
    def method(self) -> str:
        """Its HTTP method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """Its path, with its parameters in braces."""
        return self.route.partition(" ")[2]

    @property
    def is_safe(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET" or self.is_question

    @property
    def media_types(self) -> tuple[str, ...]:
        """What its body may be declared to be."""
        return (JSON, *((MERGE_PATCH,) if self.method == "PATCH" else ()), *self.body_types)

    @property
    def successes(self) -> tuple[Returns, ...]:
        """All ways in which it succeeds, with the headers that every such answer has."""
        declared = (each for each in (self.returns, self.accepted, self.kept) if each is not None)
        return tuple(replace(each, headers={**each.headers, **self._derived(each)}) for each in declared)

    def _derived(self, success: Returns) -> Mapping[str, str]:
        is_tagged = self.method == "GET" and success.status == OK and "ETag" not in success.headers
        where = success.headers.get("Location", "").removesuffix(".")
        return {
            **({"Location": f"{where}, relative to the URL of the request (RFC 9110, 10.2.2)."} if where else {}),
            **({"ETag": "A hash of the response."} if is_tagged else {}),
            "Request-Id": "Id of this request, as in the gateway's access log.",
            **({"Retry-After": "Seconds to wait before the next request."} if success.status == ACCEPTED else {}),
            **({REPLAYED: "`true` if an earlier request with the same key did this."} if KEY in self.headers else {}),
        }

    @property
    def all_headers(self) -> tuple[Header, ...]:
        """Every header that it takes."""
        of_reading = (IF_NONE_MATCH,) if self.method == "GET" else ()
        return (*self.headers, *of_reading, *(() if self.is_public else (OWNER,)))

    @property
    def all_errors(self) -> tuple[type[Exception], ...]:
        """Every error that it may answer besides an unforeseen one."""
        return (
            *_ALWAYS,
            *(() if self.is_public else _OF_A_CALLER),
            # What takes no body refuses one, so that nothing in it is overlooked.
            *(() if self.body is None and self.method == "GET" else _OF_A_BODY),
            *(error for part, found in _NOT_FOUND.items() if part in self.path for error in found),
            *self.errors,
        )

    @property
    def deprecation_headers(self) -> Mapping[str, str]:
        """What each of its responses says of its end, if that is near (Source: RFC 9745, RFC 8594)."""
        found: dict[str, str] = {}
        if self.deprecated is not None:
            found["Deprecation"] = f"@{int(_beginning(self.deprecated).timestamp())}"
        if self.sunset is not None:
            found["Sunset"] = _beginning(self.sunset).strftime("%a, %d %b %Y %H:%M:%S GMT")
        return found

    def url(self, **parameters: object) -> str:
        """Its path with values for its parameters."""
        return self.path.format(**parameters)


def _beginning(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
