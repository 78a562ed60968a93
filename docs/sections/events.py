"""Generates the sections about the events on the EventBridge bus, and the events' JSON schemas."""

from __future__ import annotations

import inspect
import json
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from docs.sections.markdown import code, table
from duetime.domain.change_events import DOCUMENTS, EventKind

_TYPES = {str: "string", int: "integer", NoneType: "null"}


def event_kinds() -> str:
    """Return a table of the event kinds with their meanings and field names."""
    rows = []
    for kind in EventKind:
        meaning = inspect.cleandoc(DOCUMENTS[kind].__doc__ or "").partition("\n\n")[0]
        rows.append((code(kind.value), meaning, ", ".join(_own(kind))))
    return table(("`detail-type`", "meaning", "fields of `detail`"), rows)


def schemas() -> str:
    """Return the content of a file that contains a JSON schema for each event kind."""
    return f"{json.dumps({kind.value: schema_of(kind) for kind in EventKind}, indent=1, ensure_ascii=False)}\n"


def _own(kind: EventKind) -> list[str]:
    """Return an event kind's field names, or a reference to another kind with the same fields."""
    names = list(get_type_hints(DOCUMENTS[kind]))
    for other in EventKind:
        known = list(get_type_hints(DOCUMENTS[other]))
        if other is kind:
            break
        if known == names:
            return [f"those of {code(other.value)}"]
        if len(left_out := [code(one) for one in known if one not in names]) == len(known) - len(names) == 1:
            return [f"those of {code(other.value)} except {left_out[0]}"]
    return [code(name) for name in names]


def schema_of(kind: EventKind) -> dict[str, Any]:
    """Return the JSON schema for an event kind's `detail`."""
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
    assert get_origin(what) is not None  # noqa: S101 - a mapping of strings
    return {"type": "object", "additionalProperties": _type(arguments[1])}
