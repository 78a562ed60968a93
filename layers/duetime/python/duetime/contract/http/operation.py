"""Declares operations and routes requests.

`Allow`, the OpenAPI document and the docs are derived from the declarations.

The API does not know its path prefix, because an API stage, a custom domain with a base path, the local stack or a
proxy may add one. Prefixes of request paths are therefore ignored, and references are relative.

Modules that declare operations are imported when a request first needs them, because requests for tasks should not wait
for the models of schedules, graphs and bulk operations.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic
from urllib.parse import parse_qsl

from pydantic import BeforeValidator, WithJsonSchema
from typing_extensions import TypeVar  # required for defaults before Python 3.13

from duetime.contract.http import request_errors
from duetime.contract.http.etags import IF_MATCH_PATTERN, IF_NONE_MATCH_PATTERN, MAX_CONDITION_LENGTH
from duetime.contract.http.request_errors import (
    Fault,
    FaultCode,
    FieldsInvalid,
    MediaTypeUnsupported,
    MethodUnsupported,
    ParametersInvalid,
    PathNotFound,
)
from duetime.contract.http.request_json import shown
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import validated
from duetime.domain import errors
from duetime.domain import errors as for_bulk
from duetime.domain import errors as for_schedules
from duetime.domain import errors as for_topologies
from duetime.domain.callers import Role
from duetime.domain.limits import (
    IDEMPOTENCY_KEY_LIFE,
    MAX_IDEMPOTENCY_KEY_LENGTH,
    MAX_LEASE_TOKEN_LENGTH,
    MAX_OWNER_LENGTH,
)
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


P = TypeVar("P", bound="Parameters")
_MOST_PARAMETERS = 100
_WHOLE = re.compile(r"[0-9]{1,3}")
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


def whole_number(text: object, least: int, most: int) -> int:
    """Parses a whole number within limits."""
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else -1
    if not least <= number <= most:
        raise ValueError(f"should be a whole number from {least} to {most}")
    return number


def _flag(text: object) -> bool:
    if text not in _FLAGS:
        raise ValueError("should be 1 (true) or 0 (false)")
    return _FLAGS[str(text)]


Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""Parses a boolean, which is `1` or `true`, or `0` or `false`."""


class Parameters(Body):
    """The query parameters of a request.

    Attributes:
        repeatable: parameters that may be repeated.
    """

    repeatable: ClassVar[frozenset[str]] = frozenset()

    def contradictions(self) -> Sequence[Fault]:
        """Returns faults in combinations of parameters that are individually valid."""
        return ()


def read_query(model: type[P], raw: str) -> P:
    """Parses a query.

    Raises:
        ParametersInvalid: a parameter is unknown, repeated, or has an invalid value.
    """
    pairs = _pairs(raw, model.repeatable)
    values: dict[str, object] = dict(pairs)
    values |= {name: [value for key, value in pairs if key == name] for name in model.repeatable & values.keys()}
    try:
        query = validated(model, values)
    except FieldsInvalid as refusal:
        raise ParametersInvalid(replace(each, reason=_of_parameter(each.reason)) for each in refusal.faults) from None
    if faults := query.contradictions():
        raise ParametersInvalid(faults)
    return query


def no_query(raw: str) -> None:
    """Rejects all parameters; the error names them.

    Raises:
        ParametersInvalid: there is a parameter.
    """
    if pairs := _pairs(raw):
        raise ParametersInvalid(
            Fault(shown(name), "is not a known parameter: this operation has none", FaultCode.UNKNOWN_FIELD)
            for name, _ in pairs
        )


def _pairs(raw: str, repeatable: frozenset[str] = frozenset()) -> Sequence[tuple[str, str]]:
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
    except UnicodeDecodeError:
        raise ParametersInvalid.of("query", "is not UTF-8", FaultCode.UNREADABLE) from None
    except ValueError:
        reason = f"has more than {_MOST_PARAMETERS} parameters"
        raise ParametersInvalid.of("query", reason, FaultCode.TOO_LONG) from None
    times = Counter(name for name, _ in pairs)
    repeated = [name for name, count in times.items() if count > 1 and name not in repeatable]
    if repeated:
        reason = "is given more than once, and takes one value"
        raise ParametersInvalid(Fault(shown(name), reason, FaultCode.DUPLICATE) for name in repeated)
    return pairs


def _of_parameter(reason: str) -> str:
    return reason.replace("is not a known field", "is not a known parameter")


_JSON_PATCH = "application/json-patch+json"
_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
_UTF_8 = re.compile(r"charset\s*=\s*(\"utf-?8\"|utf-?8)", re.ASCII | re.IGNORECASE)
_MOST_SHOWN = 64


def reject_unless_json(declared: str, accepted: Sequence[str]) -> None:
    """Rejects a `Content-Type` that is not JSON in UTF-8.

    Args:
        declared: value of the header.
        accepted: media types that the operation accepts.

    Raises:
        MediaTypeUnsupported: the type is not supported; the error names the invalid part of the header.
    """
    media_type, *parameters = (part.strip() for part in declared.split(";"))
    if media_type.lower() not in (JSON, MERGE_PATCH) or media_type.lower() not in accepted:
        raise MediaTypeUnsupported(_why_not(media_type), accepted)
    for parameter in parameters:
        if parameter and _UTF_8.fullmatch(parameter) is None:
            raise MediaTypeUnsupported(f"the parameter {_shown(parameter)} is not supported: JSON is UTF-8", accepted)


def _why_not(media_type: str) -> str:
    if media_type.lower() == _JSON_PATCH:
        return "JSON Patch (RFC 6902) is not supported"
    return f"{_shown(media_type)} is not supported" if _TYPE.fullmatch(media_type) else "is not a media type"


def _shown(text: str) -> str:
    return repr(text[:_MOST_SHOWN])


OK, ACCEPTED = 200, 202
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
Q = TypeVar("Q", bound="Parameters", default=Any)


@frozen
class Header:
    """A request header."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=dict)


OWNER = Header(
    "X-Duetime-Owner",
    "The owner to act for: the caller (the default), or an owner that the token or the settings allow. An "
    "administrator can read any owner's data. Without authentication (the local stack), any owner is allowed; the "
    "default is `local`.",
    {"minLength": 1, "maxLength": MAX_OWNER_LENGTH},
)
KEY = Header(
    "Idempotency-Key",
    "A request that repeats the key and the body returns what the first request created; the same key with a different "
    "body is rejected.",
    {"pattern": f"^[!-~]{{1,{MAX_IDEMPOTENCY_KEY_LENGTH}}}$"},
)
KEY_LIFE = Header(
    "Idempotency-Key-Seconds",
    "How many seconds the idempotency key is remembered; at most as long as the deployment keeps ended tasks of any "
    f"type. The default is {IDEMPOTENCY_KEY_LIFE // SECOND}.",
    {"pattern": "^[0-9]{1,9}$", "example": "604800"},
)
LEASE = Header(
    "X-Duetime-Lease",
    "The lease under which a pull worker runs a task. Tasks that the request creates belong to the leased task's "
    "owner, and have the leased task as parent. Each leased task has its own idempotency keys. With this header, a "
    "worker that is not the owner can only create tasks, batches and topologies.",
    {"maxLength": MAX_LEASE_TOKEN_LENGTH},
)
TRACEPARENT = Header(
    "traceparent",
    "W3C trace context of the request. The task keeps it as creation context and passes it to its handler or target, "
    "its callback and the nodes of a topology; a schedule passes it to its runs. A malformed value is ignored.",
    {"example": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
)
IF_MATCH = Header(
    "If-Match",
    "Applies the request only if the resource still has this ETag. Without the header, or with `*`, the request "
    "applies to any version.",
    {"pattern": IF_MATCH_PATTERN, "maxLength": MAX_CONDITION_LENGTH, "example": '"3"'},
)
IF_NONE_MATCH = Header(
    "If-None-Match",
    "Comma-separated ETags of the caller's copies: if the resource still has one of these ETags, the response is 304.",
    {"pattern": IF_NONE_MATCH_PATTERN, "maxLength": MAX_CONDITION_LENGTH, "example": '"3"'},
)

FOR_A_LEASE = (errors.TypeNotPulled, errors.LeaseNotFound, errors.FenceMismatch)
"""The errors that a request with the header `X-Duetime-Lease` can cause."""

REPLAYED = "Idempotent-Replayed"
"""Response header that shows that an earlier request with the same idempotency key received the same response."""

ON_CONFLICT = "Duetime-On-Conflict"
"""Response header that shows that the task in the response holds the unique key of the task that was to be created."""

CONDITIONS = (IF_MATCH.name, IF_NONE_MATCH.name, "If-Unmodified-Since", KEY.name, KEY_LIFE.name)
"""Headers that decide whether a request takes effect; operations with side effects therefore never ignore these
headers."""

_ALWAYS = (request_errors.ParametersInvalid,)
_OF_A_CALLER = (
    request_errors.CallerUnknown,
    request_errors.CallerForbidden,
    errors.RoleRequired,
    errors.OwnerForbidden,
    errors.QuotaExceeded,
    errors.Unavailable,
)
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
    "/{operation_id}": (for_bulk.BulkNotFound,),
    "/leases/{lease_id}": (errors.LeaseNotFound,),
    "/locks/{key}": (errors.LockNotFound,),
    "/rates/{key}": (errors.RateNotFound,),
    "/ordered-keys/{ordered_key}": (errors.OrderedKeyNotFound,),
    "/unique-keys/{unique_key}": (errors.UniqueKeyNotFound,),
    "/keys/{key_id}": (errors.ApiKeyNotFound,),
    "/links/{": (errors.LinkNotFound,),
    "/schedules/{name}": (for_schedules.ScheduleNotFound,),
    "/types/{name}": (errors.TypeNotFound,),
    "/intake-rules/{name}": (errors.IntakeRuleNotFound,),
    "/calendars/{name}": (for_schedules.CalendarNotFound,),
    "/{backfill_id}": (for_schedules.BackfillNotFound,),
}
"""Errors for resources that do not exist, by part of the path."""


@frozen
class Returns:
    """One successful response of an operation.

    Attributes:
        model: model of the response body; `dict` for any object, `None` for no body.
        headers: descriptions of the response headers, by name.
    """

    model: type | None
    description: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200

    def found(self, description: str) -> Returns:
        """The same response with status 200 and another description, for a resource that already existed."""
        headers = {**self.headers, ON_CONFLICT: "What happened to the task that holds the key: `keep` or `replace`."}
        return replace(self, status=200, description=description, headers=headers)

    def but(self, description: str) -> Returns:
        """The same response with another description."""
        return replace(self, description=description)

    def created(self, location: str) -> Returns:
        """The same response with status 201 and a `Location`."""
        return replace(self, status=201, headers={**self.headers, "Location": location})

    def accepted(self, description: str) -> Returns:
        """The same response with status 202 and another description."""
        return replace(self, status=202, description=description)


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[Q]):
    """An operation, which is a method of a path.

    Attributes:
        id: name in generated clients.
        route: method and path.
        returns: the successful response.
        accepted: response with status 202, if any.
        kept: response with status 200 if another task holds the unique key of the task to be created.
        query: model of the query parameters; `None` for no parameters.
        body: model of the request's body; `EmptyRequest` for an optional empty body.
        body_types: accepted media types in addition to JSON.
        nesting: number of nesting levels that the body adds around a task.
        headers: request headers, apart from the owner's header, and `If-None-Match` for a GET.
        errors: possible errors, apart from those that body, path and caller imply.
        has_open_path: whether the last path parameter can contain slashes, which happens because the gateway decodes
            paths.
        is_public: whether unauthenticated callers are accepted.
        is_question: whether the operation changes nothing although its method is not GET.
        role: the required role; `None` means reader for a safe operation, and writer for any other operation.
        deprecated: the day from which another operation, which the description names, should be used.
        sunset: the day on which the operation will be removed.
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
    role: Role | None = None
    deprecated: date | None = None
    sunset: date | None = None

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, with parameters in braces."""
        return self.route.partition(" ")[2]

    @property
    def is_safe(self) -> bool:
        """Whether the operation changes nothing."""
        return self.method == "GET" or self.is_question

    @property
    def needs(self) -> Role:
        """The role that a caller needs."""
        return self.role or (Role.READER if self.is_safe else Role.WRITER)

    @property
    def media_types(self) -> tuple[str, ...]:
        """The accepted media types."""
        return (JSON, *((MERGE_PATCH,) if self.method == "PATCH" else ()), *self.body_types)

    @property
    def successes(self) -> tuple[Returns, ...]:
        """All successful responses, with the headers that all operations share."""
        declared = (each for each in (self.returns, self.accepted, self.kept) if each is not None)
        return tuple(replace(each, headers={**each.headers, **self._derived(each)}) for each in declared)

    def _derived(self, success: Returns) -> Mapping[str, str]:
        is_tagged = self.method == "GET" and success.status == OK and "ETag" not in success.headers
        where = success.headers.get("Location", "").removesuffix(".")
        return {
            **({"Location": f"{where}, relative to the URL of the request (RFC 9110, 10.2.2)."} if where else {}),
            **({"ETag": "A hash of the response."} if is_tagged else {}),
            "Request-Id": "Id of this request, also in the gateway's access log.",
            **({"Retry-After": "Seconds to wait before the next request."} if success.status == ACCEPTED else {}),
            **(
                {REPLAYED: "`true` if an earlier request with the same key got this response."}
                if KEY in self.headers
                else {}
            ),
        }

    @property
    def all_headers(self) -> tuple[Header, ...]:
        """All request headers."""
        of_reading = (IF_NONE_MATCH,) if self.method == "GET" else ()
        return (*self.headers, *of_reading, *(() if self.is_public else (OWNER,)))

    @property
    def all_errors(self) -> tuple[type[Exception], ...]:
        """All possible errors except unexpected errors."""
        return (
            *_ALWAYS,
            *(() if self.is_public else _OF_A_CALLER),
            *((errors.OperatorRequired,) if self.needs is Role.OPERATOR else ()),
            # An operation without a body rejects every body, so that content is never silently ignored.
            *(() if self.body is None and self.method == "GET" else _OF_A_BODY),
            *(error for part, found in _NOT_FOUND.items() if part in self.path for error in found),
            *self.errors,
        )

    @property
    def deprecation_headers(self) -> Mapping[str, str]:
        """Response headers about deprecation and removal (Source: RFC 9745, RFC 8594)."""
        found: dict[str, str] = {}
        if self.deprecated is not None:
            found["Deprecation"] = f"@{int(_beginning(self.deprecated).timestamp())}"
        if self.sunset is not None:
            found["Sunset"] = _beginning(self.sunset).strftime("%a, %d %b %Y %H:%M:%S GMT")
        return found

    def url(self, **parameters: object) -> str:
        """The path with values in place of parameters."""
        return self.path.format(**parameters)


def _beginning(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


CONTRACT_VERSION = "1.0.0"
"""The contract's version, which is independent of the package's version because the package can change when the
contract does not."""
TASKS = "duetime.contract.tasks.operations"
_BULK = "duetime.contract.bulk.operations"
_EXPLANATIONS = "duetime.contract.explanations"
_HEALTH = "duetime.contract.health_and_openapi"
_LINKS = "duetime.contract.links"
_SCHEDULES = "duetime.contract.schedules.operations"
_TOPOLOGIES = "duetime.contract.topologies"
DECLARED_IN: Mapping[str, Sequence[str]] = {
    "tasks": (TASKS, _EXPLANATIONS, _BULK, _LINKS),
    "links": (_LINKS,),
    "uploads": ("duetime.contract.uploads",),
    "bulk-operations": (_BULK,),
    "purges": ("duetime.contract.bulk.purges",),
    "locks": ("duetime.contract.locks",),
    "groups": ("duetime.contract.groups",),
    "rates": ("duetime.contract.rates",),
    "unique-keys": ("duetime.contract.unique_keys",),
    "ordered-keys": ("duetime.contract.ordered_keys",),
    "leases": ("duetime.contract.leases",),
    "types": ("duetime.contract.task_types",),
    "switches": ("duetime.contract.switches",),
    "intake-rules": ("duetime.contract.intake_rules",),
    "signals": ("duetime.contract.signals",),
    "quotas": ("duetime.contract.quotas",),
    "schedules": (_SCHEDULES, _EXPLANATIONS),
    "calendars": (_SCHEDULES,),
    "forecast": ("duetime.contract.schedules.forecast",),
    "topologies": (f"{_TOPOLOGIES}.definitions", f"{_TOPOLOGIES}.operations"),
    "summary": ("duetime.contract.summary",),
    "settings": ("duetime.contract.deployment_settings",),
    "dispatch": ("duetime.contract.dispatch_status",),
    "watch-tickets": ("duetime.contract.live_updates.operations",),
    "signing-secrets": ("duetime.contract.signing_secrets",),
    "keys": ("duetime.contract.api_keys",),
    "signing-keys": ("duetime.contract.signing_secrets",),
    "": (_HEALTH,),
    "health": (_HEALTH,),
    "openapi.json": (_HEALTH,),
}
"""The modules that declare operations, by the part of the path after `/v1/`. Frequently used modules come first, but
fixed paths come before patterns that also match them."""
_VERSION = "v1"
_ALLOW_ORDER = ("GET", "POST", "PUT", "PATCH", "DELETE")


def operations_of(module: str) -> Sequence[Operation[Any]]:
    """All operations that a module declares, found by their type, so that no separate list is needed."""
    return tuple(value for value in vars(import_module(module)).values() if isinstance(value, Operation))


def subject_of(path: str) -> str:
    """The part of a path after the version, which is a key of `DECLARED_IN`."""
    return path.partition("/v1")[2].removeprefix("/").partition("/")[0]


def path_within(path: str) -> str:
    """The part of a request's path that starts with the API's version.

    An API stage and a custom domain's base path may come before that part (Source: API Gateway Developer Guide, "Create
    AWS Lambda proxy integrations for HTTP APIs").
    """
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part == _VERSION and (parts[index + 1] if index + 1 < len(parts) else "") in DECLARED_IN:
            return "/" + "/".join(parts[index:])
    return path


def reference_to(path: str, request_path: str) -> str:
    """A path relative to the request's path, which works in responses behind any path prefix.

    Args:
        path: the path to refer to, such as `/v1/tasks/ID`.
        request_path: the path of the request.

    Source: RFC 3986, 4.2 and 5.2; RFC 9110, 10.2.2.
    """
    there, here = path.split("/")[1:], path_within(request_path).split("/")[1:-1]
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    reference = "/".join([".."] * (len(here) - same) + there[same:])
    # Text before a colon would be interpreted as a scheme.
    return f"./{reference}" if ":" in reference.partition("/")[0] else reference


def operation_at(method: str, path: str) -> tuple[Operation[Any], Mapping[str, str]]:
    """The operation of a request, with its path parameters; a `HEAD` request has the operation of `GET`.

    Raises:
        PathNotFound: the path does not exist.
        MethodUnsupported: the path does not support the method.
    """
    method = "GET" if method == "HEAD" else method
    found: set[str] = set()
    for pattern, operations, parameters in _matches(path):
        if method in operations and not any(_is_fixed_where(other, pattern) for other in found):
            return operations[method], parameters
        found.add(pattern)
    raise MethodUnsupported(methods_at(path))


def methods_at(path: str) -> Sequence[str]:
    """The declared methods of a path, in the usual order.

    Raises:
        PathNotFound: the path does not exist.
    """
    # Fixed paths take precedence over patterns that also match these paths.
    found = sorted(_matches(path), key=lambda match: len(match[2]))
    if not found:
        raise PathNotFound
    return sorted(found[0][1], key=_ALLOW_ORDER.index)


def _is_fixed_where(one: str, other: str) -> bool:
    """Whether `one` takes precedence, because only `other` has a parameter where the two patterns first differ."""
    places = zip(one.split("/"), other.split("/"), strict=False)
    differing = next(
        ((mine, others) for mine, others in places if mine.startswith("{") != others.startswith("{")), None
    )
    return differing is not None and differing[1].startswith("{")


@cache
def _by_path(module: str) -> Mapping[str, Mapping[str, Operation[Any]]]:
    """The operations for each path, by method; fixed paths come before patterns that also match them."""
    found: dict[str, dict[str, Operation[Any]]] = {}
    for operation in sorted(operations_of(module), key=lambda one: "{" in one.path):
        found.setdefault(operation.path, {})[operation.method] = operation
    return found


def _matches(path: str) -> Iterator[tuple[str, Mapping[str, Operation[Any]], Mapping[str, str]]]:
    for module in DECLARED_IN.get(subject_of(path), ()):
        for pattern, operations in _by_path(module).items():
            wanted = pattern.split("/")
            # A trailing slash is accepted, except after a name that may contain slashes.
            is_open = any(each.has_open_path for each in operations.values())
            parts = path.split("/", len(wanted) - 1) if is_open else path.removesuffix("/").split("/")
            parameters = _parameters(wanted, parts)
            if parameters is not None:
                yield pattern, operations, parameters


def _parameters(pattern: Sequence[str], parts: Sequence[str]) -> Mapping[str, str] | None:
    """The values of the path parameters; `None` if the path does not match."""
    if len(pattern) != len(parts):
        return None
    found: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{") and part:
            found[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return found
