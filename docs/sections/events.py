"""The events on the bus: each kind with its JSON schema, made of the documents in the code."""

from __future__ import annotations

import inspect
import json
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from duetime.domain.changes.events import DOCUMENTS, EventKind

_TYPES = {str: "string", int: "integer", NoneType: "null"}


def event_schemas() -> str:
    """Each kind: its meaning and its schema."""
    parts = []
    for kind in EventKind:
        meaning = inspect.cleandoc(DOCUMENTS[kind].__doc__ or "")
        parts.append(f"## `{kind.value}`\n\n{meaning}\n\n```json\n{json.dumps(schema_of(kind), indent=2)}\n```\n")
    return "\n".join(parts)


def schema_of(kind: EventKind) -> dict[str, Any]:
    """The JSON schema of a kind's `detail`."""
    hints = get_type_hints(DOCUMENTS[kind], include_extras=True)
    properties = {name: _property(hint) for name, hint in hints.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.value,
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _property(hint: Any) -> dict[str, Any]:  # noqa: ANN401 - an annotation
    what, description = get_args(hint)
    return {**_type(what), "description": description}


def _type(what: Any) -> dict[str, Any]:  # noqa: ANN401 - same
    if what in _TYPES:
        return {"type": _TYPES[what]}
    arguments = get_args(what)
    if NoneType in arguments:
        return {"type": [_TYPES[each] for each in arguments]}
    assert get_origin(what) is not None  # noqa: S101 - a mapping of texts
    return {"type": "object", "additionalProperties": _type(arguments[1])}
