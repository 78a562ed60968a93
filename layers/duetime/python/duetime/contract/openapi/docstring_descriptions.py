"""Converts docstrings, which are written for readers of the code, to descriptions for users of the API."""

from __future__ import annotations

import re
from typing import Any

from duetime.contract.openapi.portable import DEFAULT

Schema = dict[str, Any]
_SECTION = re.compile(r"\n\n(?:Attributes|Args|Raises):\n(?P<lines>.*)\Z", re.DOTALL)
_ENTRY = re.compile(r"^ {4}(?P<name>\w+): (?P<text>.*?)(?=^ {4}\w+: |\Z)", re.DOTALL | re.MULTILINE)
_DEFAULT = re.compile(rf" ?\b{DEFAULT}(?P<text>.*)\.\Z", re.DOTALL)
GROWS = "Later versions may add values."


def described(schema: Schema) -> Schema:
    """A model's schema with a plain description, and with fields described as in the docstring."""
    summary, attributes = parts_of(schema.get("description", ""))
    if "enum" in schema:
        return {**schema, "description": _with_values(summary, schema["enum"], attributes)}
    if "properties" not in schema:
        return {**schema, "description": summary} if summary else schema
    properties = {
        name: {**field, "description": f"{attributes[name][0].upper()}{attributes[name][1:]}"}
        if name in attributes and "description" not in field
        else field
        for name, field in schema["properties"].items()
    }
    return {**schema, "description": summary, "properties": properties}


def parts_of(docstring: str) -> tuple[str, dict[str, str]]:
    """The text of a docstring, and its description of each attribute."""
    section = _SECTION.search(docstring)
    entries = _ENTRY.finditer(section["lines"]) if section else ()
    text = docstring[: section.start()] if section else docstring
    return _one_line(text), {entry["name"]: _one_line(entry["text"]) for entry in entries}


def default_in(description: str) -> tuple[str, str]:
    """A description without the sentence about a default, and the default; empty if there is none."""
    found = _DEFAULT.search(description)
    return (description[: found.start()], found["text"]) if found else (description, "")


def _with_values(summary: str, values: list[str], attributes: dict[str, str]) -> str:
    meanings = {value: attributes[value.upper()] for value in values if value.upper() in attributes}
    listed = " ".join(f"`{value}`: {meaning}" for value, meaning in meanings.items())
    return f"{summary} {listed}".strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())
