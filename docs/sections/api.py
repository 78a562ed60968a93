"""The calls of the API, what they take, and how they refuse: from the very document that the API serves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docs.sections.markdown import bullets, code, table
from duetime.contract.http.operations import OPERATIONS
from duetime.contract.http.problems import INTERNAL, rest_kinds
from duetime.contract.openapi.descriptions import GROWS, default_in
from duetime.contract.openapi.document import document
from duetime_common.foreign_names import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime_common.foreign_names import Meaning


_USUAL = {
    "GET": ("get", "list"),
    "POST": ("create", "send", "acquire", "upload", "purge"),
    "PUT": ("set", "create"),
    "PATCH": ("update",),
    "DELETE": ("delete",),
}
"""The first words of summaries that the method says already."""


def calls() -> str:
    """Each resource with its calls; one that its path does not explain has its summary."""
    rows: dict[str, list[str]] = {}
    for one in sorted(OPERATIONS, key=lambda one: one.route.partition(" ")[2]):
        method, _, path = one.route.partition(" ")
        resource = _resource(path)
        below = path.removeprefix(resource)
        name = code(f"{method} {below}".rstrip())
        rows.setdefault(resource, []).append(
            name if _is_explained(method, below, one.summary) else f"{name} ({one.summary[0].lower()}{one.summary[1:]})"
        )
    return table(("resource", "calls"), [(code(resource), ", ".join(named)) for resource, named in rows.items()])


def _resource(path: str) -> str:
    """The path up to its first parameters, or the collection."""
    found = re.match(r"(?:/[\w.-]+)+(?:/\{\w+\})+", path) or re.match(r"(?:/[\w.-]+){1,2}", path)
    return found[0] if found else path


def _is_explained(method: str, below: str, summary: str) -> bool:
    """Whether the path, or what the method usually does, says what the summary does."""
    words = summary.lower()
    if not below:
        return words.split()[0] in _USUAL[method]
    last = re.sub(r"/\{\w+\}$", "", below).rpartition("/")[2]
    return any(each.rstrip("s") in words for each in last.split("-"))


def _first(meaning: str) -> str:
    """The first sentence; the document has the others."""
    sentence, stop, _ = meaning.partition(". ")
    return f"{sentence}." if stop else sentence


def task_fields() -> str:
    """The fields of a task to be created."""
    schemas = document()["components"]["schemas"]
    return _fields(schemas["TaskCreate"], schemas)


def retry_fields() -> str:
    """The fields of a retry policy."""
    schemas = document()["components"]["schemas"]
    return _fields(schemas["RetryPolicyInput"], schemas)


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
    return ", ".join([names.get(kind, names.get(field.get("type", ""), kind)), *bounds(field)]), meaning


def bounds(field: Mapping[str, Any]) -> Iterator[str]:
    """The limits of a value."""
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


def foreign_names() -> str:
    """What other systems call fields of requests: a line for each meaning here."""
    lines: dict[str, list[str]] = {}
    for system, meanings in SYSTEMS.items():
        named: dict[str, list[str]] = {}
        for name, meaning in meanings.items():
            named.setdefault(_here(meaning), []).append(code(name))
        for here, names in named.items():
            lines.setdefault(here, []).append(f"{system} {', '.join(names)}")
    return "\n".join(f"* {here}: {'; '.join(names)}" for here, names in sorted(lines.items()))


def _here(meaning: Meaning) -> str:
    """The fields of a meaning with what its text says after them; without fields, its text."""
    names = [each for each in meaning.fields if not each.startswith("task.")]
    if not names:
        return meaning.text
    if (named := re.search(r"^use (`.*)", meaning.text)) is not None:
        return re.sub(r" of the task$| \(POST [^)]*\)", "", named[1])
    return " or ".join(code(each) for each in names if not any(other.endswith(f".{each}") for other in names))
