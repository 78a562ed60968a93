"""The parameters of operations, and their responses: successes, and errors of the API and of the gateway before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duetime.contract.http import problems
from duetime.contract.http.routes import OPERATIONS
from duetime.contract.openapi.descriptions import described, portable
from duetime.contract.openapi.names import REFERENCE, Schema, reference
from duetime.contract.pull.lease_decoding import TOKEN_PATTERN as LEASE_PATTERN
from duetime.contract.tasks.fields import GROUP_ID_PATTERN, LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN
from duetime.contract.unique_keys import UNIQUE_KEY_PATTERN
from duetime.domain.limits import MAX_OWNER_LENGTH
from duetime.domain.links import ID_PATTERN, TOKEN_PATTERN
from duetime.domain.switches import SwitchScope
from duetime_common.steps import STEP_NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.operation import Header, Operation, Returns


_ID: Schema = {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
_NAME: Schema = {"type": "string", "pattern": SCHEDULE_NAME_PATTERN}
_IN_PATH: Mapping[str, tuple[str, Schema]] = {
    "task_id": ("The task's id.", _ID),
    "topology_id": ("The topology's id.", _ID),
    "operation_id": ("The bulk operation's id.", _ID),
    "group_id": ("The group's id.", {"type": "string", "pattern": GROUP_ID_PATTERN}),
    "lease_id": ("The lease's id.", {"type": "string", "pattern": LEASE_PATTERN}),
    "key": ("The key of the {subject}.", {"type": "string", "pattern": LOCK_KEY_PATTERN}),
    "unique_key": (
        "The unique key, with every `/` as `%2F`.",
        {"type": "string", "pattern": UNIQUE_KEY_PATTERN, "examples": ["customer-17"]},
    ),
    "ordered_key": (
        "The ordered key, with every `/` as `%2F`.",
        {"type": "string", "pattern": UNIQUE_KEY_PATTERN, "examples": ["customer-17"]},
    ),
    "key_id": ("The API key's id.", {"type": "string", "pattern": "^[0-9a-f]{20}$"}),
    "link_id": ("The link's id.", {"type": "string", "pattern": f"^{ID_PATTERN}$"}),
    "token": ("The token of the link.", {"type": "string", "pattern": f"^{TOKEN_PATTERN}$"}),
    "backfill_id": ("The backfill's id.", {"type": "string"}),
    "scope": ("The scope of the switch.", {"type": "string", "enum": [scope.value for scope in SwitchScope]}),
    "name": ("The {subject}'s name.", _NAME),
    "step": ("The step's name.", {"type": "string", "pattern": STEP_NAME_PATTERN, "examples": ["charge"]}),
}
_SWITCH_NAME: tuple[str, Schema] = (
    "The type or the owner, with every `/` as `%2F`; `all` for the scope `all`.",
    {"type": "string", "minLength": 1, "maxLength": MAX_OWNER_LENGTH, "examples": ["report"]},
)
_NAMED = {"schedules": "schedule", "calendars": "calendar", "locks": "lock", "rates": "rate"}


def parameters(operation: Operation) -> list[Schema]:
    """All parameters of an operation."""
    return [*_in_path(operation), *_in_query(operation), *map(_header, operation.all_headers)]


def _in_path(operation: Operation) -> list[Schema]:
    subject = next((_NAMED[part] for part in operation.path.split("/") if part in _NAMED), "resource")
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    known = {**_IN_PATH, "name": _SWITCH_NAME} if "scope" in names else _IN_PATH
    return [_path_parameter(known, name, subject) for name in names]


def _path_parameter(known: Mapping[str, tuple[str, Schema]], name: str, subject: str) -> Schema:
    text, schema = known.get(name, (f"The {name.replace('_', ' ')}.", {"type": "string"}))
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": text.format(subject=subject),
        "schema": schema,
    }


def _in_query(operation: Operation) -> list[Schema]:
    if operation.query is None:
        return []
    schema: Schema = operation.query.model_json_schema(ref_template=REFERENCE)
    required = schema.get("required", [])
    return [
        _query_parameter(name, portable(field), is_required=name in required)
        for name, field in schema["properties"].items()
    ]


def _query_parameter(name: str, schema: Schema, *, is_required: bool) -> Schema:
    description = schema.pop("description", "")
    # Omitted parameters are absent, never null.
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    parameter: Schema = {"name": name, "in": "query", "description": description, "schema": described(schema)}
    if schema.get("type") == "array":
        # The default of all generators; commas are also accepted if the description says so.
        parameter |= {"style": "form", "explode": True}
    return parameter | ({"required": True} if is_required else {})


def _header(header: Header) -> Schema:
    described_by = portable({"type": "string", **header.schema, "description": header.description})
    description = described_by.pop("description")
    if "const" in described_by:
        # openapi-python-client omits operations with a header that has only one possible value.
        described_by["pattern"] = f"^{re.escape(described_by.pop('const'))}$"
    return {"name": header.name, "in": "header", "description": description, "schema": described_by}


_COMPONENT = "#/components/responses/{name}"
_OF_THE_GATEWAY = {
    "401": "The API gateway does not accept the credentials.",
    "403": "The API gateway does not allow the caller this request.",
    "413": "The API gateway does not accept a body of this size.",
    "429": "Too many requests: repeat it later, with exponential backoff.",
    "500": "The request failed with an internal error; it can be repeated.",
    "503": "The API did not respond; the request can be repeated.",
    "504": "The API did not respond in time; the request may have taken effect.",
}
"""Statuses that the gateway also returns by itself: see `ApiError`."""
_OF_A_CALLER = ("401", "403")
_OF_ITS_END = {
    "Deprecation": "Since when the operation is deprecated.",
    "Sunset": "When the operation will be removed.",
}
_RETRY_AFTER: Schema = {
    "Retry-After": {
        "description": "Seconds to wait before the request is repeated. The gateway's own responses do not have it.",
        "schema": {"type": "string"},
    }
}
_WITH_RETRY_AFTER = frozenset({"429", "503"})
_SHARED = {"429": "TooManyRequests", "500": "InternalError", "default": "OtherRefusal"}


def shared_responses() -> dict[str, Schema]:
    """The responses that are common to all operations."""
    kinds = {"500": [problems.INTERNAL], "default": _of_no_operation()}
    return {name: _refusal(status, kinds.get(status, [])) for status, name in _SHARED.items()}


def _of_no_operation() -> list[problems.Kind]:
    """The problems of requests that match no operation, for example with an unknown path."""
    codes = {problems.KINDS[error].code for operation in OPERATIONS for error in operation.all_errors}
    return [kind for kind in problems.rest_kinds().values() if kind.code not in codes]


def responses(operation: Operation) -> dict[str, Schema]:
    """All responses of an operation, by status."""
    return {**_successes(operation), **_refusals(operation)}


def _successes(operation: Operation) -> dict[str, Schema]:
    ends = {name: _OF_ITS_END[name] for name in operation.deprecation_headers}
    found = {str(success.status): _success(success, ends) for success in operation.successes}
    if operation.method == "GET":
        found["304"] = {
            "description": "Not modified: the copy that `If-None-Match` names is current.",
            "headers": _described(operation.successes[0].headers),
        }
    return found


def _success(success: Returns, more_headers: Mapping[str, str]) -> Schema:
    described: Schema = {"description": success.description}
    if success.model is not None:
        schema: Schema = {"type": "object"} if success.model is dict else reference(success.model)
        described["content"] = {"application/json": {"schema": schema}}
    headers = {**success.headers, **more_headers}
    return described | ({"headers": _described(headers)} if headers else {})


def _described(headers: Mapping[str, str]) -> Schema:
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()}


def _refusals(operation: Operation) -> dict[str, Schema]:
    kinds: dict[str, list[problems.Kind]] = {} if operation.is_public else {status: [] for status in _OF_A_CALLER}
    for error in operation.all_errors:
        kinds.setdefault(str(problems.KINDS[error].status.value), []).append(problems.KINDS[error])
    own = {status: _refusal(status, same) for status, same in kinds.items()}
    shared = {status: {"$ref": _COMPONENT.format(name=name)} for status, name in _SHARED.items()}
    return dict(sorted({**shared, **own}.items()))


def _refusal(status: str, kinds: list[problems.Kind]) -> Schema:
    by_code: dict[str, problems.Kind] = {kind.code: kind for kind in kinds}
    words = "; ".join(f"`{kind.code}`: {kind.title}" for kind in by_code.values())
    if status == "default":
        words = f"Any other error. {words}".strip()
    gateway = _OF_THE_GATEWAY.get(status)
    described: Schema = {
        "description": " ".join(part for part in (f"{words}." if words and gateway else words, gateway) if part),
        "content": _content(by_code, may_be_the_gateways=gateway is not None or status == "default"),
    }
    return described | ({"headers": _RETRY_AFTER} if status in _WITH_RETRY_AFTER else {})


def _content(by_code: Mapping[str, problems.Kind], *, may_be_the_gateways: bool) -> Schema:
    """The content of an error response.

    If the gateway may also respond, both media types have both schemas: generated clients parse responses by the first
    media type of the document, whatever the `Content-Type` is.
    """
    examples = {code: {"$ref": f"#/components/examples/{code}"} for code in by_code}
    problem: Schema = {"schema": reference("ApiError" if may_be_the_gateways else "Problem")}
    content: Schema = {problems.MEDIA_TYPE: problem | ({"examples": examples} if examples else {})}
    if may_be_the_gateways:
        content["application/json"] = {"schema": reference("ApiError")}
    return content
