"""The schemas of all bodies, generated from the models that parse and build them."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from duetime.contract.http import problems
from duetime.contract.http.operations import OPERATIONS
from duetime.contract.openapi import webhooks
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
    renamed,
    with_sentence,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Mode = Literal["validation", "serialization"]
_REFERENCES = re.compile(rf'"{PREFIX}(\w+)"')
_GATEWAY_MESSAGE: Schema = {
    "description": "The response of the API gateway itself: for missing or wrong credentials, beyond the rate "
    "limit, or when the API did not respond.",
    "type": "object",
    "properties": {"message": {"type": "string", "description": "A text for people.", "examples": ["Forbidden"]}},
    "required": ["message"],
}
_REFUSAL: Schema = {
    "description": "Why a request failed: a problem of the API, or a message of the API gateway.",
    "anyOf": [{"$ref": REFERENCE.format(model="Problem")}, {"$ref": REFERENCE.format(model="GatewayMessage")}],
}


@cache
def schemas() -> dict[str, Schema]:
    """The schemas of all models by name; they are built once and shared, so they must not be changed."""
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
    """The models of all bodies: of requests, of responses and of requests that the scheduler sends."""
    yield problems.Problem, "serialization"
    for model in webhooks.MODELS:
        yield model, "serialization"
    for operation in OPERATIONS:
        if operation.body is not None:
            yield operation.body, "validation"
        for success in operation.successes:
            if success.model not in (dict, None):
                yield success.model, "serialization"


def _describe_references(schema: Schema, found: dict[str, Schema]) -> None:
    """Describes fields that only have a default by the schema they refer to, which would be hidden otherwise."""
    for field in schema.get("properties", {}).values():
        if "$ref" in field and field.get("description", "").startswith(DEFAULT):
            field["description"] = f"{found[field['$ref'].rpartition('/')[2]]['description']} {field['description']}"


def _name_codes(found: dict[str, Schema]) -> None:
    """Limits the codes of problems to those of the REST API."""
    codes, known = found["ProblemCode"], {kind.code for kind in (*problems.rest_kinds().values(), problems.INTERNAL)}
    codes["enum"] = [code for code in codes["enum"] if code in known]


def _reachable(found: dict[str, Schema], roots: Iterable[str]) -> set[str]:
    """The names of all schemas that are reachable from the given ones, including these."""
    reached: set[str] = set()
    ahead = [name for name in roots if name in found]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += [other for other in _REFERENCES.findall(json.dumps(found[name])) if other in found]
    return reached
