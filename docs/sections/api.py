"""The calls of the API, what they take, and how they refuse: from the very document that the API serves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docs.sections.markdown import bullets, code, table
from duetime.contract.http.operations import OPERATIONS
from duetime.contract.http.problems import INTERNAL, rest_kinds
from duetime.contract.openapi.descriptions import GROWS, default_in
from duetime.contract.openapi.document import document, tag_of
from duetime.contract.tasks.operations import LIST
from duetime_common.foreign_names import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_common.foreign_names import Meaning


_PLAIN_MEANINGS = {"state": "Where it stands: see [states](states.md)."}
"""Where the document's own sentence is about more than the field."""


def calls() -> str:
    """Every call, by what it is about."""
    parts: dict[str, list[str]] = {}
    for one in OPERATIONS:
        parts.setdefault(tag_of(one), []).append(f"* {code(one.route)}: {one.summary}")
    return "\n\n".join("\n".join([f"**{tag}**", "", *lines]) for tag, lines in parts.items())


def request_fields(schema: str, *, besides: str | None = None) -> str:
    """The fields of a request's body, without those that another request explains."""
    schemas = document()["components"]["schemas"]
    fields = schemas[schema]
    if besides is None:
        return _fields(fields, schemas)
    shared = _shared(fields["properties"], schemas[besides]["properties"], schemas)
    own = {name: field for name, field in fields["properties"].items() if name not in shared}
    return f"{_sentence(shared)}\n\n{_fields({**fields, 'properties': own}, schemas)}"


def response_fields(schema: str, *, besides: str | None = None) -> str:
    """The fields of a response, without those that another schema explains."""
    schemas = document()["components"]["schemas"]
    fields = schemas[schema]["properties"]
    shared = _shared(fields, schemas[besides]["properties"], schemas) if besides else []
    rows = [
        (code(name), _form(field, schemas)[0], _PLAIN_MEANINGS.get(name) or _first(_form(field, schemas)[1]))
        for name, field in fields.items()
        if name not in shared
    ]
    shown = bullets(rows)
    return f"{_sentence(shared)}\n\n{shown}" if shared else shown


def _shared(fields: dict[str, Any], others: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    """The fields that mean the same in another schema."""
    return [
        name
        for name, field in fields.items()
        if name in others and _plain(_form(field, schemas)[1]) in {"", _plain(_form(others[name], schemas)[1])}
    ]


def _plain(meaning: str) -> str:
    return default_in(meaning)[0]


def _first(meaning: str) -> str:
    """The first sentence; the document has the others."""
    sentence, stop, _ = meaning.partition(". ")
    return f"{sentence}." if stop else sentence


def _sentence(shared: list[str]) -> str:
    return f"As of a task: {', '.join(map(code, shared))}. And:"


def task_fields() -> str:
    """The fields of a task to be created."""
    schemas = document()["components"]["schemas"]
    return _fields(schemas["TaskCreate"], schemas)


def schedule_fields() -> str:
    """The fields of a schedule to be created."""
    schemas = document()["components"]["schemas"]
    return _fields(schemas["ScheduleCreate"], schemas)


def schedule_answer_fields() -> str:
    """The fields of a schedule's answer that no request has."""
    schemas = document()["components"]["schemas"]
    asked = schemas["ScheduleCreate"]["properties"]
    shown = schemas["Schedule"]["properties"]
    rows = [
        (code(name), _form(field, schemas)[0], _first(_form(field, schemas)[1]))
        for name, field in shown.items()
        if name not in asked
    ]
    return bullets(rows)


def calendar_fields() -> str:
    """The fields of a calendar."""
    schemas = document()["components"]["schemas"]
    return _fields(schemas["CalendarPut"], schemas)


def retry_fields() -> str:
    """The fields of a retry policy."""
    schemas = document()["components"]["schemas"]
    return _fields(schemas["RetryPolicyInput"], schemas)


def answer_fields() -> str:
    """The fields of a task that only responses have."""
    schemas = document()["components"]["schemas"]
    asked = schemas["TaskCreate"]["properties"]
    rows = []
    for name, field in schemas["Task"]["properties"].items():
        if name not in asked:
            form, meaning = _form(field, schemas)
            rows.append((code(name), form, _PLAIN_MEANINGS.get(name) or _first(meaning)))
    return bullets(rows)


def parameters() -> str:
    """The parameters of a list."""
    found = document()["paths"][LIST.path]["get"]["parameters"]
    return bullets((code(one["name"]), "", one["description"]) for one in found if one["in"] == "query")


def problem_table() -> str:
    """Every kind of refusal, by its status; what is not found is named by its code."""
    rows: dict[str, list[str]] = {}
    for kind in sorted({*rest_kinds().values(), INTERNAL}, key=lambda kind: (kind.status.value, kind.code)):
        title = "" if kind.code.endswith("_not_found") else f": {kind.title}"
        rows.setdefault(str(kind.status.value), []).append(f"{code(kind.code)}{title}")
    return table(("status", "codes"), [(status, "; ".join(codes)) for status, codes in rows.items()])


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    required = schema.get("required", [])
    rows = []
    for name, field in sorted(schema["properties"].items(), key=lambda pair: pair[0] not in required):
        form, text = _form(field, schemas)
        meaning, default = default_in(text)
        value = "required" if name in required else f"default {code(default)}" if default else ""
        rows.append((code(name), "; ".join(filter(None, (form, value))), _first(meaning)))
    return bullets(rows)


def _form(field: dict[str, Any], schemas: dict[str, Any]) -> tuple[str, str]:
    """What a value looks like, with its bounds, and what it means."""
    meaning: str = field.get("description", "")
    if "$ref" in field:
        model = schemas[field["$ref"].rpartition("/")[2]]
        meaning = meaning or model.get("description", "").removesuffix(GROWS).rstrip()
        form = " or ".join(code(value) for value in model["enum"]) if "enum" in model else "object"
        return form if len(model.get("enum", ())) < len("four") else "text", meaning
    options = [one for one in field.get("anyOf", field.get("oneOf", [])) if one.get("type") != "null"]
    if options:
        forms = dict.fromkeys(_form(one, schemas)[0] for one in options)
        meaning = meaning or _form(options[0], schemas)[1]
        nullable = any(one.get("type") == "null" for one in field.get("anyOf", []))
        return " or ".join([*forms, *(["null"] if nullable else [])]), meaning
    names = {"string": "text", "date-time": "time", "integer": "integer"}
    kind = field.get("format") or field.get("type", "any JSON")
    return ", ".join([names.get(kind, names.get(field.get("type", ""), kind)), *_bounds(field)]), meaning


def _bounds(field: dict[str, Any]) -> Iterator[str]:
    if "minimum" in field or "maximum" in field:
        yield (
            f"{field.get('minimum', 0):g}-{_number(field['maximum'])}"
            if "maximum" in field
            else f"≥ {field['minimum']:g}"
        )
    if "maxLength" in field:
        yield f"≤ {field['maxLength']}"
    if "maxProperties" in field:
        yield f"≤ {field['maxProperties']}"
    if "pattern" in field:
        yield code(field["pattern"])


def _number(value: float) -> str:
    return f"{int(value)}" if value == int(value) else f"{value}"


def foreign_names(system: str) -> str:
    """What one other system calls fields of requests, and what they are here: a row for each meaning."""
    rows: dict[str, list[str]] = {}
    for name, meaning in SYSTEMS[system].items():
        rows.setdefault(_here(meaning), []).append(code(name))
    return table(("there", "here"), [(", ".join(names), here) for here, names in rows.items()])


def _here(meaning: Meaning) -> str:
    """The fields of a meaning with what its text says after them; without fields, its text."""
    names = [each for each in meaning.fields if not each.startswith("task.")]
    if not names:
        return meaning.text
    if (named := re.search(r"^use (`.*)", meaning.text)) is not None:
        return re.sub(r" of the task$| \(POST [^)]*\)", "", named[1])
    return " or ".join(code(each) for each in names if not any(other.endswith(f".{each}") for other in names))
