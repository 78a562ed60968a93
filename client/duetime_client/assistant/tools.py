"""Builds tools from the API's OpenAPI document, the only source of the tools' names, descriptions and schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]

_READ_ONLY = "x-read-only"
"""The OpenAPI extension that marks a read-only operation whose method is not GET."""
_LEFT_OUT_TAGS = frozenset({"leases", "live updates", "keys", "links"})
"""Tags of operations that are not offered, because they return secrets, or renew leases, which assistants do not do."""
_LEFT_OUT = frozenset(
    # `previewTask` is left out because its schema is as long as those of all other read-only tools together.
    {"getApiIndex", "getOpenApiDocument", "previewTask", "reportOutcome", "reportHeartbeat", "reportProgress"}
    # It returns secrets.
    | {"listSigningSecrets"}
)
_HEADERS = {"Idempotency-Key": "idempotency_key", "If-Match": "if_match"}
"""Argument names for headers that a caller can set, by header name."""
_COMPONENTS, _DEFINITIONS = "#/components/schemas/", "#/$defs/"
BODY = "body"


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a tool that is a parameter of its operation.

    Attributes:
        name: name of the argument.
        sent_as: the parameter's name in the API.
        place: `path`, `query` or `header`.
        schema: schema and description of the argument's value.
        is_required: whether the argument must be given.
    """

    name: str
    sent_as: str
    place: str
    schema: Schema
    is_required: bool


@dataclass(frozen=True, slots=True)
class OperationTool:
    """An operation as a tool.

    Attributes:
        name: the operation's name in snake case, like the client's methods.
        title: a short description.
        description: the full description.
        method: HTTP method.
        path: path of the operation, with parameters in braces.
        parameters: path, query and header parameters.
        body: schema of the request body; `None` if the operation has no request body.
        body_is_required: whether the body must be given.
        is_read_only: whether the operation only reads.
    """

    name: str
    title: str
    description: str
    method: str
    path: str
    parameters: Sequence[Parameter]
    body: Schema | None
    body_is_required: bool
    is_read_only: bool
    definitions: Schema

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the tool's arguments."""
        properties = {each.name: dict(each.schema) for each in self.parameters}
        required = [each.name for each in self.parameters if each.is_required]
        if self.body is not None:
            properties[BODY] = dict(self.body)
            required += [BODY] if self.body_is_required else []
        schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            schema["required"] = required
        used = _used(properties, self.definitions)
        return {**schema, "$defs": used} if used else schema


def tools_of(document: Schema, *, allow_writes: bool) -> dict[str, OperationTool]:
    """Return the tools for an OpenAPI document, by name; tools that write are included only if allowed."""
    definitions = _relocated(document.get("components", {}).get("schemas", {}))
    every = (
        _tool(method.upper(), path, operation, definitions)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if operation["operationId"] not in _LEFT_OUT and not _LEFT_OUT_TAGS & set(operation.get("tags", ()))
    )
    return {tool.name: tool for tool in every if allow_writes or tool.is_read_only}


def _tool(method: str, path: str, operation: Schema, definitions: Schema) -> OperationTool:
    body = operation.get("requestBody", {})
    schema = body.get("content", {}).get("application/json", {}).get("schema")
    summary, description = operation.get("summary", ""), operation.get("description", "")
    return OperationTool(
        name=re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", operation["operationId"]),
        title=summary,
        description=summary if description in {"", summary} else f"{summary}\n\n{description}",
        method=method,
        path=path,
        parameters=tuple(_parameters(operation)),
        body=None if schema is None else _relocated(schema),
        body_is_required=bool(body.get("required")),
        is_read_only=method == "GET" or bool(operation.get(_READ_ONLY)),
        definitions=definitions,
    )


def _parameters(operation: Schema) -> Sequence[Parameter]:
    found = []
    for each in operation.get("parameters", ()):
        name = _HEADERS.get(each["name"]) if each["in"] == "header" else each["name"]
        if name is not None:
            schema = _relocated({**each.get("schema", {}), "description": each.get("description", "")})
            found.append(Parameter(name, each["name"], each["in"], schema, bool(each.get("required"))))
    return found


def _relocated(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Copy a part of the document, and point its references into the tool's own schema."""
    if isinstance(schema, Mapping):
        return {
            key: value.replace(_COMPONENTS, _DEFINITIONS)
            if key == "$ref" and isinstance(value, str)
            else _relocated(value)
            for key, value in schema.items()
            # Discriminators refer to components that are not in a tool's schema, and only repeat the schema.
            if key != "discriminator"
        }
    return [_relocated(each) for each in schema] if isinstance(schema, list) else schema


def _used(schema: object, definitions: Schema) -> dict[str, Any]:
    """Return the definitions that a schema refers to, directly or indirectly."""
    found: dict[str, Any] = {}
    pending = [schema]
    while pending:
        for name in _references(pending.pop()):
            if name not in found and name in definitions:
                found[name] = definitions[name]
                pending.append(definitions[name])
    return found


def _references(schema: object) -> set[str]:
    if isinstance(schema, Mapping):
        own = schema.get("$ref")
        named = {own.removeprefix(_DEFINITIONS)} if isinstance(own, str) else set()
        return named.union(*map(_references, schema.values()))
    return set().union(*map(_references, schema)) if isinstance(schema, list) else set()
