"""Generates the sections about API operations, fields and error codes from the OpenAPI document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docs.sections.markdown import code, table
from duetime.contract.http.problems import INTERNAL, rest_kinds
from duetime.contract.openapi.document import OPERATIONS, document
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
"""The first words of operation summaries that say no more than the HTTP method, by method."""


def calls() -> str:
    """List each resource with its operations; an operation whose path does not explain it is shown with its summary."""
    rows: dict[str, list[str]] = {}
    for one in sorted(OPERATIONS, key=lambda one: one.route.partition(" ")[2]):
        method, _, path = one.route.partition(" ")
        resource = _resource(path)
        below = path.removeprefix(resource)
        name = code(f"{method} {below}".rstrip())
        rows.setdefault(resource, []).append(
            name if _is_explained(method, below, one.summary) else f"{name} ({one.summary[0].lower()}{one.summary[1:]})"
        )
    return "\n".join(f"* {code(resource)}: {', '.join(named)}" for resource, named in rows.items())


def _resource(path: str) -> str:
    """Return the part of the path up to its first parameters, or up to the collection if it has no parameters."""
    found = re.match(r"(?:/[\w.-]+)+(?:/\{\w+\})+", path) or re.match(r"(?:/[\w.-]+){1,2}", path)
    return found[0] if found else path


def _is_explained(method: str, below: str, summary: str) -> bool:
    """Return whether the operation's path or method already says what its summary says."""
    words = summary.lower()
    if not below:
        return words.split()[0] in _USUAL[method]
    last = re.sub(r"/\{\w+\}$", "", below).rpartition("/")[2]
    return any(each.rstrip("s") in words for each in last.split("-"))


def task_fields() -> str:
    """List the names of the fields in a request that creates a task."""
    schema = document()["components"]["schemas"]["TaskCreate"]
    required = schema["required"]
    names = sorted(schema["properties"], key=lambda name: (name not in required, name))
    return ", ".join(f"{code(name)}{' (required)' if name in required else ''}" for name in names)


def problem_table() -> str:
    """Return a table of the problem codes by HTTP status."""
    rows: dict[str, list[str]] = {}
    for kind in sorted({*rest_kinds().values(), INTERNAL}, key=lambda kind: (kind.status.value, kind.code)):
        rows.setdefault(str(kind.status.value), []).append(code(kind.code))
    return table(("status", "codes"), [(status, ", ".join(codes)) for status, codes in rows.items()])


def bounds(field: Mapping[str, Any]) -> Iterator[str]:
    """Yield the limits that a JSON schema sets for a value."""
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
    """List the names that other systems use for request fields, one line per meaning; Celery has a separate page."""
    lines: dict[str, list[str]] = {}
    for system, meanings in SYSTEMS.items():
        if system == "Celery":
            continue
        named: dict[str, list[str]] = {}
        for name, meaning in meanings.items():
            named.setdefault(_here(meaning), []).append(code(name))
        for here, names in named.items():
            lines.setdefault(here, []).append(f"{system} {', '.join(names)}")
    return "\n".join(f"* {here}: {'; '.join(names)}" for here, names in sorted(lines.items()))


def _here(meaning: Meaning) -> str:
    """Return what the meaning's text says to use, or the request fields, or, if there are no fields, the text."""
    names = [each for each in meaning.fields if not each.startswith("task.")]
    if not names:
        return meaning.text
    if (named := re.search(r"^use (`.*)", meaning.text)) is not None:
        return re.sub(r" of the task$| \(POST [^)]*\)", "", named[1])
    return " or ".join(code(each) for each in names if not any(other.endswith(f".{each}") for other in names))
