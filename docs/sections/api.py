"""The calls of the API, what they take, and how they refuse: from the very document that the API serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docs.sections.markdown import code, table
from duetime.contract.http.foreign_names import SYSTEMS
from duetime.contract.http.operation import IF_NONE_MATCH
from duetime.contract.http.operations import OPERATIONS
from duetime.contract.http.problem_kinds import INTERNAL
from duetime.contract.http.request_errors import BodyUnreadable
from duetime.contract.openapi.docstring_descriptions import GROWS, default_in
from duetime.contract.openapi.document import document
from duetime.contract.openapi.rest_problems import rest_kinds
from duetime.contract.openapi.tags import tag_of
from duetime.contract.tasks.operations import LIST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.contract.http.operation import Operation
    from duetime.contract.http.problem_kinds import Kind

MOST_NAMED = 12
"""A cell names so many calls at most; the OpenAPI document names the rest."""
_PLAIN_MEANINGS = {"state": "Where it stands: see [states](states.md)."}
"""Where the document's own sentence is about more than the field."""


def call_table() -> str:
    """Every call."""
    return table(("call", "does", "answers"), [(code(one.route), one.summary, _statuses(one)) for one in OPERATIONS])


def tag_table(tag: str) -> str:
    """The calls of one tag, with what the document says of each."""
    rows = [
        (code(one.route), f"{one.summary}. {one.description}".strip(), _statuses(one))
        for one in OPERATIONS
        if tag_of(one) == tag
    ]
    return table(("call", "does", "answers"), rows)


def _statuses(operation: Operation[Any]) -> str:
    """How a call succeeds; how it fails is in the table of problems."""
    unchanged = [304] if IF_NONE_MATCH in operation.all_headers else []
    return ", ".join(str(status) for status in [*(int(one.status) for one in operation.successes), *unchanged])


def request_table(schema: str) -> str:
    """The fields of a request's body."""
    schemas = document()["components"]["schemas"]
    return _field_table(schemas[schema], schemas)


def response_table(schema: str) -> str:
    """The fields of an answer."""
    schemas = document()["components"]["schemas"]
    rows = [(code(name), *_form(field, schemas)) for name, field in schemas[schema]["properties"].items()]
    return table(("field", "form", "meaning"), rows)


def field_table() -> str:
    """The fields of a task to be created."""
    schemas = document()["components"]["schemas"]
    return _field_table(schemas["TaskCreate"], schemas)


def schedule_table() -> str:
    """The fields of a schedule to be created."""
    schemas = document()["components"]["schemas"]
    return _field_table(schemas["ScheduleCreate"], schemas)


def schedule_answer_table() -> str:
    """The fields of a schedule's answer that no request has."""
    schemas = document()["components"]["schemas"]
    asked = schemas["ScheduleCreate"]["properties"]
    told = schemas["Schedule"]["properties"]
    rows = [(code(name), *_form(field, schemas)) for name, field in told.items() if name not in asked]
    return table(("field", "form", "meaning"), rows)


def calendar_table() -> str:
    """The fields of a calendar."""
    schemas = document()["components"]["schemas"]
    return _field_table(schemas["CalendarPut"], schemas)


def retry_table() -> str:
    """The fields of a retry policy."""
    schemas = document()["components"]["schemas"]
    return _field_table(schemas["RetryPolicyInput"], schemas)


def answer_table() -> str:
    """The fields of a task as it is answered."""
    schemas = document()["components"]["schemas"]
    asked = schemas["TaskCreate"]["properties"]
    rows = []
    for name, field in schemas["Task"]["properties"].items():
        form, meaning = _form(field, schemas)
        meaning = _PLAIN_MEANINGS.get(name) or meaning or default_in(_form(asked.get(name, {}), schemas)[1])[0]
        rows.append((code(name), form, meaning))
    return table(("field", "form", "meaning"), rows)


def parameter_table() -> str:
    """The parameters of a list."""
    found = document()["paths"][LIST.path]["get"]["parameters"]
    rows = [(code(one["name"]), one["description"]) for one in found if one["in"] == "query"]
    return table(("parameter", "meaning"), rows)


def header_table() -> str:
    """The headers that calls take."""
    rows: dict[str, tuple[str, list[str]]] = {}
    for operation in OPERATIONS:
        for header in operation.all_headers:
            _, calls = rows.setdefault(header.name, (header.description, []))
            calls.append(code(operation.id))
    return table(("header", "taken by", "meaning"), [(code(n), ", ".join(c), text) for n, (text, c) in rows.items()])


def problem_table() -> str:
    """Every kind of refusal, once."""
    kinds: dict[Kind, list[str]] = {}
    for error, kind in rest_kinds().items():
        calls = [code(one.id) for one in OPERATIONS if error in one.all_errors]
        kinds.setdefault(kind, []).extend(call for call in calls if call not in kinds.get(kind, []))
    kinds[INTERNAL] = [code(one.id) for one in OPERATIONS]
    rows = sorted((str(kind.status.value), code(kind.code), kind.title, _calls(calls)) for kind, calls in kinds.items())
    return table(("status", "code", "title", "calls"), rows)


def _calls(calls: list[str]) -> str:
    """Which calls: all, all with a body, all but a few, the ones that are named, or how many if those are many."""
    if not calls:
        return "no call: the path or the method is wrong"
    every = [code(one.id) for one in OPERATIONS]
    with_body = [code(one.id) for one in OPERATIONS if BodyUnreadable in one.all_errors]
    for what, group in (("all", every), ("all with a body", with_body)):
        if set(calls) == set(group):
            return what
    others = [call for call in every if call not in calls]
    if len(others) <= MOST_NAMED:
        return f"all but {', '.join(others)}"
    return ", ".join(calls) if len(calls) <= MOST_NAMED else f"{len(calls)} calls"


def _field_table(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    required = schema.get("required", [])
    rows = []
    for name, field in sorted(schema["properties"].items(), key=lambda pair: pair[0] not in required):
        form, text = _form(field, schemas)
        meaning, default = default_in(text)
        rows.append((code(name), form, "required" if name in required else code(default) if default else "", meaning))
    return table(("field", "form", "default", "meaning"), rows)


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
    names = {"string": "text", "date-time": "time", "integer": "whole number"}
    kind = field.get("format") or field.get("type", "any JSON")
    return ", ".join([names.get(kind, names.get(field.get("type", ""), kind)), *_bounds(field)]), meaning


def _bounds(field: dict[str, Any]) -> Iterator[str]:
    if "minimum" in field or "maximum" in field:
        yield (
            f"{field.get('minimum', 0):g} to {_number(field['maximum'])}"
            if "maximum" in field
            else (f"at least {field['minimum']:g}")
        )
    if "maxLength" in field:
        yield f"at most {field['maxLength']} characters"
    if "maxProperties" in field:
        yield f"at most {field['maxProperties']}"
    if "pattern" in field:
        yield code(field["pattern"])


def _number(value: float) -> str:
    return f"{int(value)}" if value == int(value) else f"{value}"


def foreign_names(system: str) -> str:
    """What one other system calls fields of requests, and what they are here."""
    rows = []
    for name, meaning in SYSTEMS[system].items():
        others = [each for each in meaning.fields if not each.startswith("task.")]
        rows.append((code(name), ", ".join(map(code, others)), meaning.text))
    return table(("there", "here", "note"), rows)
