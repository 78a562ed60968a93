"""The OpenAPI document, made of the very models that requests are read by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from duetime.contract.http import problems
from duetime.contract.http.operation import IF_NONE_MATCH
from duetime.contract.http.routes import OPERATIONS
from duetime.contract.http.version import CONTRACT_VERSION
from duetime.contract.pull.lease_tokens import TOKEN_PATTERN
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN
from duetime.contract.tasks.report_bodies import NoFields
from duetime.domain.limits import MAX_OWNER_LENGTH
from duetime.domain.switches import SwitchScope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime.contract.http.operation import Operation, Returns

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/{model}"
_NO_VALUES: tuple[tuple[str, object], ...] = (("default", None), ("default", []))
_TAGS = {"dead-letters": "tasks", "health": "service", "openapi.json": "service"}
_PATH_PARAMETERS: Schema = {
    "task_id": {
        "description": "The task's id.",
        "schema": {
            "type": "string",
            "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$",
            "examples": ["01M7XZ8CGJ0013P2ZBN3YDT3DX"],
        },
    },
    "topology_id": {
        "description": "The topology's id, which is its task's.",
        "schema": {
            "type": "string",
            "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$",
            "examples": ["01M7XZ8CGJ0013P2ZBN3YDT3DX"],
        },
    },
    "operation_id": {
        "description": "The operation's id.",
        "schema": {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    },
    "lease_id": {"description": "The lease.", "schema": {"type": "string", "pattern": TOKEN_PATTERN}},
    "key": {"description": "The lock's key.", "schema": {"type": "string", "pattern": LOCK_KEY_PATTERN}},
    "backfill_id": {"description": "The backfill's id.", "schema": {"type": "string"}},
    "scope": {
        "description": "What the switch is about.",
        "schema": {"type": "string", "enum": [scope.value for scope in SwitchScope]},
    },
    "name": {
        "description": "The name of the schedule or the calendar.",
        "schema": {"type": "string", "pattern": SCHEDULE_NAME_PATTERN},
    },
}

_SWITCH_NAME: Schema = {
    "description": "The type or the owner, with every `/` as `%2F`; for the scope `all` it is `all`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_OWNER_LENGTH, "examples": ["report"]},
}


def document() -> Schema:
    """The whole document."""
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "duetime",
            "version": CONTRACT_VERSION,
            "description": "A distributed task scheduler in your own AWS account. "
            "A deployment accepts one of the named ways to authenticate.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"sigv4": []}, {"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "description": "AWS Signature Version 4; the owner is the user, or the role of all its sessions.",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                },
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
        },
    }


def _schemas() -> dict[str, Schema]:
    adapters: list[tuple[str, Literal["validation", "serialization"], TypeAdapter[Any]]] = [
        (model.__name__, mode, TypeAdapter(model)) for model, mode in dict.fromkeys(_models())
    ]
    _, together = TypeAdapter.json_schemas(adapters, ref_template=_REFERENCE)
    definitions: dict[str, Schema] = together["$defs"]
    return dict(sorted(definitions.items()))


def _models() -> Iterator[tuple[type, Literal["validation", "serialization"]]]:
    """The models of all bodies, of requests and of responses."""
    yield problems.Problem, "serialization"
    for operation in OPERATIONS:
        if operation.body is not None:
            yield operation.body, "validation"
        for success in operation.successes:
            if success.model is not dict:
                yield success.model, "serialization"


def _operation(operation: Operation) -> Schema:
    described: Schema = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description or operation.summary,
        "tags": [_tag(operation)],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_headers(operation)],
        "responses": {**_successes(operation), **_problems(operation)},
    }
    if operation.body is not None:
        content: Schema = {"application/json": {"schema": _reference(operation.body)}}
        content |= {media_type: {"schema": {"type": "string"}} for media_type in operation.body_types}
        described["requestBody"] = {"required": operation.body is not NoFields, "content": content}
    return described


def _tag(operation: Operation) -> str:
    """What an operation is about: the first part of its path, if that is not another's."""
    subject = operation.path.split("/")[2]
    return _TAGS.get(subject, subject.replace("-", " "))


def _path_parameters(operation: Operation) -> list[Schema]:
    known = {**_PATH_PARAMETERS, "name": _SWITCH_NAME} if "{scope}" in operation.path else _PATH_PARAMETERS
    return [
        {"name": name, "in": "path", "required": True, **described}
        for name, described in known.items()
        if f"{{{name}}}" in operation.path
    ]


def _query_parameters(operation: Operation) -> list[Schema]:
    if operation.query is None:
        return []
    properties: dict[str, Schema] = operation.query.model_json_schema(ref_template=_REFERENCE)["properties"]
    return [_query_parameter(name, dict(schema)) for name, schema in properties.items()]


def _query_parameter(name: str, schema: Schema) -> Schema:
    description = schema.pop("description")
    # A parameter that is not given is left out: it is never null.
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    schema = {key: value for key, value in schema.items() if key != "title" and (key, value) not in _NO_VALUES}
    parameter: Schema = {"name": name, "in": "query", "description": description, "schema": schema}
    if schema.get("type") == "array":
        parameter |= {"style": "form", "explode": name == "tag"}
    return parameter


def _headers(operation: Operation) -> list[Schema]:
    return [
        {
            "name": header.name,
            "in": "header",
            "description": header.description,
            "schema": {"type": "string", **header.schema},
        }
        for header in operation.all_headers
    ]


def _successes(operation: Operation) -> dict[str, Schema]:
    found = {str(success.status): _success(success) for success in operation.successes}
    if IF_NONE_MATCH in operation.headers:
        found["304"] = {
            "description": "The caller's copy, named by `If-None-Match`, is still the task.",
            "headers": _described(operation.returns.headers),
        }
    return found


def _success(success: Returns) -> Schema:
    schema: Schema = {"type": "object"} if success.model is dict else _reference(success.model)
    described: Schema = {"description": success.description, "content": {"application/json": {"schema": schema}}}
    return described | ({"headers": _described(success.headers)} if success.headers else {})


def _described(headers: Mapping[str, str]) -> Schema:
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()}


def _problems(operation: Operation) -> dict[str, Schema]:
    kinds: dict[str, list[problems.Kind]] = {}
    for error in operation.all_errors:
        kinds.setdefault(str(problems.KINDS[error].status.value), []).append(problems.KINDS[error])
    kinds["500"] = [problems.INTERNAL]
    return {status: _problem(same) for status, same in sorted(kinds.items())}


def _problem(kinds: list[problems.Kind]) -> Schema:
    by_code = {kind.code: kind for kind in kinds}
    described: Schema = {
        "description": "; ".join(f"`{kind.code}`: {kind.title}" for kind in by_code.values()),
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
    }
    if "unavailable" in by_code:
        seconds = {"description": "Seconds to wait before asking again.", "schema": {"type": "string"}}
        described["headers"] = {"Retry-After": seconds}
    return described


def _reference(model: type) -> Schema:
    return {"$ref": _REFERENCE.format(model=model.__name__)}
