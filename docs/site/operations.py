"""Generates a page with every operation and model of the OpenAPI document: `python -m docs.site.operations`.

The page is generated when the site is built and by `make openapi`; it is not in the checkout.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from docs.sections.api import bounds
from docs.sections.markdown import code
from duetime.contract.openapi.document import OPERATIONS, document, tag_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.contract.http.operation import Operation

NAME = "reference/operations.md"
"""The name of the page on the site."""
_INTRODUCTION = """\
# Operations and models

Every operation, parameter and field of [the REST API](api.md), written from the OpenAPI document."""
_REF = "#/components/schemas/"
_OFTEN = 12
"""A header that at least this many operations have is explained only once."""
_ERRORS_OF_SOME = ("404", "409", "410", "412", "422", "502", "504")
"""The error statuses that only some operations return."""


def text() -> str:
    """Return the page's Markdown text."""
    described = document()
    shared = _shared_headers(described)
    parts = [_INTRODUCTION, "## Headers of many operations", _bullets(map(_parameter, shared.values()))]
    for tag in described["tags"]:
        found = [one for one in OPERATIONS if tag_of(one) == tag["name"]]
        if found:
            parts += [f"## {tag['name'].capitalize()}", tag["description"]]
            parts += [_operation(described, one, shared) for one in found]
    parts.append("## Webhooks")
    parts += [
        _part(one["summary"], _about(one, {})) for each in described["webhooks"].values() for one in each.values()
    ]
    parts.append("## Models")
    parts += [_model(name, each) for name, each in described["components"]["schemas"].items()]
    return "\n\n".join([*parts, ""])


def _shared_headers(described: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the headers that many operations have, by name."""
    headers = [
        each
        for methods in described["paths"].values()
        for one in methods.values()
        for each in one.get("parameters", [])
        if each["in"] == "header"
    ]
    often = {name for name, count in Counter(each["name"] for each in headers).items() if count >= _OFTEN}
    return {each["name"]: each for each in headers if each["name"] in often}


def _operation(described: Mapping[str, Any], one: Operation, shared: Mapping[str, Any]) -> str:
    method, _, path = one.route.partition(" ")
    found = described["paths"][path][method.lower()]
    roles = {role for each in found.get("security", []) for scopes in each.values() for role in scopes}
    facts = [code(one.route), code(found["operationId"]), *(f"role {code(role)}" for role in sorted(roles))]
    return _part(one.summary, ", ".join(facts), _about(found, shared), _bullets(_responses(found["responses"])))


def _about(found: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    """Return the description of an operation, with its body and parameters."""
    named = [code(each["name"]) for each in found.get("parameters", []) if each["name"] in shared]
    lines = [_parameter(each) for each in found.get("parameters", []) if each["name"] not in shared]
    lines += [f"Headers: {', '.join(named)}"] if named else []
    content = found.get("requestBody", {}).get("content", {})
    lines += [f"Body: {_form(each.get('schema', {}))} as {code(kind)}" for kind, each in content.items()]
    return "\n\n".join(filter(None, [found.get("description", ""), _bullets(lines)]))


def _responses(responses: Mapping[str, Any]) -> list[str]:
    """List each success with its model, and the problem codes that not every operation has."""
    lines = []
    refusals = []
    for status, response in responses.items():
        if status in _ERRORS_OF_SOME:
            codes = re.findall(r"`(\w+)`: ", response.get("description", ""))
            refusals += [f"{status} {', '.join(map(code, codes))}"] if codes else []
        elif status < "400":
            forms = {_form(each["schema"]) for each in response.get("content", {}).values() if "schema" in each}
            lines.append(" ".join([f"{code(status)}: {response['description']}", *sorted(forms)]))
    return [*lines, *([f"Refusals: {'; '.join(refusals)}"] if refusals else [])]


def _model(name: str, schema: Mapping[str, Any]) -> str:
    is_request = schema.get("additionalProperties") is False
    required = schema.get("required", ()) if is_request else ()
    fields = [
        _field(field, f"{_form(each)}{'; required' if field in required else ''}", each.get("description", ""))
        for field, each in schema.get("properties", {}).items()
    ]
    return _part(name, schema.get("description", ""), _bullets(fields) if fields else _form(schema))


def _parameter(each: Mapping[str, Any]) -> str:
    return _field(each["name"], f"{each['in']}; {_form(each['schema'])}", each.get("description", ""))


def _field(name: str, form: str, meaning: str) -> str:
    return f"{code(name)} ({form}){': ' if meaning else ''}{meaning}"


def _form(schema: Mapping[str, Any]) -> str:
    """Return the form of a value, with links to models."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    if options := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(map(_form, options)))
    kind = schema.get("format") or schema.get("type", "any JSON")
    if "items" in schema:
        kind = f"list of {_form(schema['items'])}"
    elif isinstance(schema.get("additionalProperties"), dict):
        kind = f"object of {_form(schema['additionalProperties'])}"
    return ", ".join([str(kind), *bounds(schema)])


def _part(heading: str, *paragraphs: str) -> str:
    return "\n\n".join([f"### {heading}", *filter(None, paragraphs)])


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(text())
