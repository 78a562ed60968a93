"""Builds the complete OpenAPI document, for all deployments or for one deployment."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from duetime.contract.http import problems
from duetime.contract.http.operation import CONTRACT_VERSION, DECLARED_IN, operations_of
from duetime.contract.leases import TOKEN_PATTERN as LEASE_PATTERN
from duetime.contract.openapi.descriptions import (
    DEFAULT,
    GROWS,
    PREFIX,
    REFERENCE,
    Schema,
    describe_fields,
    described,
    name_of,
    portable,
    reference,
    renamed,
    with_sentence,
)
from duetime.contract.openapi.webhooks import MODELS, WEBHOOKS, webhooks
from duetime.contract.tasks.fields import GROUP_ID_PATTERN, LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN
from duetime.contract.tasks.operations import OPTIONAL_BODIES
from duetime.contract.unique_keys import UNIQUE_KEY_PATTERN
from duetime.domain.limits import MAX_OWNER_LENGTH
from duetime.domain.links import ID_PATTERN, TOKEN_PATTERN
from duetime.domain.switches import SwitchScope
from duetime_common.frozen_classes import frozen
from duetime_common.steps import STEP_NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from duetime.contract.http.operation import Header, Operation, Returns
    from duetime.domain.callers import Role

OPERATIONS: Sequence[Operation[Any]] = tuple(
    operation for module in dict.fromkeys(chain(*DECLARED_IN.values())) for operation in operations_of(module)
)
"""All operations of the API; importing this module also imports all modules that declare operations."""

_ID: Schema = {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
_NAME: Schema = {"type": "string", "pattern": SCHEDULE_NAME_PATTERN}
_IN_PATH: Mapping[str, tuple[str, Schema]] = {
    "task_id": ("The task's id.", _ID),
    "topology_id": ("The topology's id.", _ID),
    "operation_id": ("The bulk operation's id.", _ID),
    "group_id": ("The group's id.", {"type": "string", "pattern": GROUP_ID_PATTERN}),
    "lease_id": ("The lease's id.", {"type": "string", "pattern": LEASE_PATTERN}),
    "key": ("The {subject}'s key.", {"type": "string", "pattern": LOCK_KEY_PATTERN}),
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
    "The type or owner, with every `/` as `%2F`; `all` for the scope `all`.",
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
        # All client generators repeat a list parameter by default. Commas are also accepted if the parameter's
        # description says so.
        parameter |= {"style": "form", "explode": True}
    return parameter | ({"required": True} if is_required else {})


def _header(header: Header) -> Schema:
    described_by = portable({"type": "string", **header.schema, "description": header.description})
    description = described_by.pop("description")
    if "const" in described_by:
        # openapi-python-client omits operations that have a header with only one possible value.
        described_by["pattern"] = f"^{re.escape(described_by.pop('const'))}$"
    return {"name": header.name, "in": "header", "description": description, "schema": described_by}


_COMPONENT = "#/components/responses/{name}"
_OF_THE_GATEWAY = {
    "401": "The API gateway does not accept the credentials.",
    "403": "The API gateway does not allow the caller to make this request.",
    "413": "The API gateway does not accept a body of this size.",
    "429": "Too many requests: retry later, with exponential backoff.",
    "500": "Internal error; the request can be repeated.",
    "503": "The API did not respond; the request can be repeated.",
    "504": "The API did not respond in time; the request may have taken effect.",
}
"""Statuses that the gateway can return without calling the API (see `ApiError`)."""
_OF_A_CALLER = ("401", "403")
_OF_ITS_END = {
    "Deprecation": "Date from which the operation is deprecated.",
    "Sunset": "Date on which the operation will be removed.",
}
_RETRY_AFTER: Schema = {
    "Retry-After": {
        "description": "Seconds to wait before repeating the request. The gateway's own responses do not have this "
        "header.",
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
    """The problems of requests that match no operation, such as requests with an unknown path."""
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

    If the gateway may also respond, both media types have both schemas, because generated clients parse responses by
    the document's first media type, regardless of the `Content-Type`.
    """
    examples = {code: {"$ref": f"#/components/examples/{code}"} for code in by_code}
    problem: Schema = {"schema": reference("ApiError" if may_be_the_gateways else "Problem")}
    content: Schema = {problems.MEDIA_TYPE: problem | ({"examples": examples} if examples else {})}
    if may_be_the_gateways:
        content["application/json"] = {"schema": reference("ApiError")}
    return content


KEY = "key"
"""The security scheme for API keys."""
ANY = "any"
"""All ways to authenticate, for the document that does not describe a specific deployment."""
_SCHEMES: Mapping[str, Schema] = {
    "sigv4": {
        "type": "apiKey",
        "name": "Authorization",
        "in": "header",
        "description": "AWS Signature Version 4; the owner is the IAM user, or the IAM role for all role sessions. The "
        "settings grant roles to identities.",
        "x-amazon-apigateway-authtype": "awsSigv4",
    },
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JWT from the deployment's issuer; the owner is the `sub` claim. Scopes such as "
        "`duetime:reader` limit the caller to the named role.",
    },
    KEY: {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "API key",
        "description": "An API key of the deployment; the request has the key's owner and roles. The path starts with "
        "`/key/v1` instead of `/v1`.",
    },
}
_ACCEPTED: Mapping[str, tuple[str, ...]] = {ANY: tuple(_SCHEMES), "iam": ("sigv4",), "jwt": ("bearer",), "none": ()}
# The document is at /v1/openapi.json behind any prefix, and its paths start with /v1.
SERVERS: list[Schema] = [{"url": "..", "description": "The deployment that serves this document."}]


_WITH_KEY: Schema = {"url": "../key", "description": "The same deployment, for requests with an API key."}


@frozen
class Access:
    """How callers authenticate.

    Attributes:
        authentication: the deployment's method: `iam`, `jwt` or `none`; `ANY` for all methods.
        keys: whether the deployment also accepts API keys.
    """

    authentication: str = ANY
    keys: bool = False

    @property
    def schemes(self) -> Sequence[str]:
        """The names of the security schemes; empty without authentication."""
        known = _ACCEPTED[self.authentication]
        return (*known, KEY) if self.keys and known and KEY not in known else known

    @property
    def servers(self) -> list[Schema]:
        """The addresses of the deployment."""
        return [*SERVERS, _WITH_KEY] if self.keys and self.schemes else SERVERS

    def security(self, role: Role | None = None) -> list[Schema]:
        """The alternative security schemes for a request, with the required role."""
        return [{scheme: [role.value] if role else []} for scheme in self.schemes]


FILE = Path(__file__).with_name("examples.json")


def recorded() -> dict[str, Any]:
    """The recorded requests and responses for each operation, and a problem for each code."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def problem_examples(of: Mapping[str, Any]) -> dict[str, Schema]:
    """An example problem for each code, to which responses refer.

    The example of a problem that was not recorded has only the values that are common to its kind.
    """
    kinds = {kind.code: kind for kind in (*problems.rest_kinds().values(), problems.INTERNAL)}
    found = {code: of["problems"].get(code) or _bare(kind) for code, kind in kinds.items()}
    return {code: {"summary": problem["title"], "value": problem} for code, problem in sorted(found.items())}


def _bare(kind: problems.Kind) -> problems.Problem:
    return problems.Problem(
        type=f"urn:duetime:problem:{kind.code}",
        title=kind.title,
        status=kind.status.value,
        detail=kind.title,
        instance="urn:duetime:request:request",
        code=kind.code,
        errors=[],
    )


def add_examples(operation: Schema, examples: Mapping[str, Any]) -> None:
    """Adds examples to a described operation.

    Args:
        operation: the operation's description in the document.
        examples: bodies of its `request` and `responses`, by media type and by status.
    """
    for media_type, body in examples.get("request", {}).items():
        operation["requestBody"]["content"][media_type]["example"] = body
    for status, body in examples.get("responses", {}).items():
        content = operation["responses"].get(status, {}).get("content", {})
        if "application/json" in content:
            content["application/json"]["example"] = body


TAGS: Mapping[str, str] = {
    "tasks": "Work with a due time: create, read, update, control and report on tasks.",
    "bulk operations": "Actions on all tasks that match a filter, run in the background.",
    "schedules": "Recurring work: each occurrence is a task.",
    "calendars": "Named sets of times in which schedules run, or do not run.",
    "topologies": "Graphs of tasks that run as one task.",
    "locks": "Named resources that only a limited number of running tasks can hold.",
    "leases": "Leases on tasks, for your own pull workers.",
    "switches": "Stop or limit the dispatch of a type's tasks, an owner's tasks or all tasks.",
    "links": "Links that let people without credentials approve or report on one task.",
    "keys": "API keys for programs that call the API.",
    "live updates": "Changes to tasks and schedules as they happen, over a WebSocket.",
    "service": "The API itself: entry point, health and this document.",
    WEBHOOKS: "Requests that the scheduler sends to your URLs.",
}
_OF_ANOTHER = {
    "dead-letters": "tasks",
    "uploads": "tasks",
    "purges": "bulk operations",
    "forecast": "schedules",
    "watch-tickets": "live updates",
    "signing-secrets": "service",
    "signing-keys": "service",
    "health": "service",
    "openapi.json": "service",
}


def tag_of(operation: Operation) -> str:
    """An operation's tag, which is the first part of its path after the version, unless that part has another tag."""
    parts = operation.path.split("/")
    subject = "links" if "links" in parts else [*parts[2:], ""][0]
    name = _OF_ANOTHER.get(subject, subject.replace("-", " "))
    return name if name in TAGS else "service"


_DESCRIPTION = """A distributed task scheduler in your own AWS account.

Later versions may add operations, optional fields and enum values, but do not change or remove anything."""
_INFO: Schema = {
    "title": "duetime",
    "version": CONTRACT_VERSION,
    "summary": "Runs tasks on time: one-time tasks, schedules and graphs of tasks.",
    "description": _DESCRIPTION,
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "contact": {"name": "The operators of this deployment"},
}


@cache
def document(authentication: str = ANY, *, keys: bool = False) -> Schema:
    """The complete document, which is built once and shared, so callers must not change it.

    Args:
        authentication: the deployment's method; by default, all supported methods.
        keys: whether the deployment also accepts API keys.
    """
    access = Access(authentication, keys)
    examples = recorded()
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        described = _operation(operation, access, examples["operations"])
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": access.servers,
        "security": access.security(),
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "webhooks": _webhooks(examples["webhooks"]),
        "components": {
            "schemas": schemas(),
            "responses": shared_responses(),
            "examples": problem_examples(examples),
            "securitySchemes": {scheme: _SCHEMES[scheme] for scheme in access.schemes},
        },
    }


def _operation(operation: Operation, access: Access, examples: Mapping[str, Any]) -> Schema:
    described: Schema = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description or operation.summary,
        "tags": [tag_of(operation)],
        "parameters": parameters(operation),
        "responses": responses(operation),
    }
    if operation.body is not None:
        content: Schema = {"application/json": {"schema": reference(operation.body)}}
        content |= {media_type: {"schema": {"type": "string"}} for media_type in operation.body_types}
        described["requestBody"] = {"required": not issubclass(operation.body, OPTIONAL_BODIES), "content": content}
    if operation.is_question:
        # Tools that only read need this flag, because the method does not show that the operation is safe.
        described["x-read-only"] = True
    described["security"] = [] if operation.is_public else access.security(operation.needs)
    if operation.deprecated is not None:
        described["deprecated"] = True
    add_examples(described, examples.get(operation.id, {}))
    return described


def _webhooks(examples: Mapping[str, Any]) -> dict[str, Schema]:
    found = webhooks()
    for name, methods in found.items():
        for method in methods.values():
            add_examples(method, examples.get(name, {}))
    return found


Mode = Literal["validation", "serialization"]
_REFERENCES = re.compile(rf'"{PREFIX}(\w+)"')
_GATEWAY_MESSAGE: Schema = {
    "description": "A response from the API gateway, if credentials are missing or wrong, the rate limit is exceeded, "
    "or the API did not respond.",
    "type": "object",
    "properties": {"message": {"type": "string", "description": "A text for people.", "examples": ["Forbidden"]}},
    "required": ["message"],
}
_REFUSAL: Schema = {
    "description": "Why a request failed: a problem from the API, or a message from the API gateway.",
    "anyOf": [{"$ref": REFERENCE.format(model="Problem")}, {"$ref": REFERENCE.format(model="GatewayMessage")}],
}


@cache
def schemas() -> dict[str, Schema]:
    """The schemas of all models by name, which are built once and shared, so callers must not change them."""
    models = list(dict.fromkeys(_models()))
    adapters: list[tuple[str, Mode, TypeAdapter[Any]]] = [
        (model.__name__, mode, TypeAdapter(model)) for model, mode in models
    ]
    _, together = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)
    found = renamed({name: described(portable(schema)) for name, schema in together["$defs"].items()})
    for schema in found.values():
        _describe_references(schema, found)
    _name_codes(found)
    describe_fields(found, _reachable(found, {name_of(model) for model, mode in models if mode == "validation"}))
    found |= {"GatewayMessage": _GATEWAY_MESSAGE, "ApiError": _REFUSAL}
    for name in _reachable(found, {name_of(model) for model, mode in models if mode == "serialization"}):
        if "enum" in found[name]:
            found[name] = with_sentence(found[name], GROWS)
    return dict(sorted(found.items()))


def _models() -> Iterator[tuple[type, Mode]]:
    """The models of all bodies of requests, of responses, and of requests that the scheduler sends."""
    yield problems.Problem, "serialization"
    for model in MODELS:
        yield model, "serialization"
    for operation in OPERATIONS:
        if operation.body is not None:
            yield operation.body, "validation"
        for success in operation.successes:
            if success.model not in (dict, None):
                yield success.model, "serialization"


def _describe_references(schema: Schema, found: dict[str, Schema]) -> None:
    """Adds the description of the referenced schema to fields that describe only a default, which would hide it."""
    for field in schema.get("properties", {}).values():
        if "$ref" in field and field.get("description", "").startswith(DEFAULT):
            field["description"] = f"{found[field['$ref'].rpartition('/')[2]]['description']} {field['description']}"


def _name_codes(found: dict[str, Schema]) -> None:
    """Limits problem codes to the codes of the REST API."""
    codes, known = found["ProblemCode"], {kind.code for kind in (*problems.rest_kinds().values(), problems.INTERNAL)}
    codes["enum"] = [code for code in codes["enum"] if code in known]


def _reachable(found: dict[str, Schema], roots: Iterable[str]) -> set[str]:
    """The names of the given schemas, and of all schemas that are reachable from them."""
    reached: set[str] = set()
    ahead = [name for name in roots if name in found]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += [other for other in _REFERENCES.findall(json.dumps(found[name])) if other in found]
    return reached
