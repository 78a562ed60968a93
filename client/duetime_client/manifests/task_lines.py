"""Reads the tasks of a JSON lines or CSV file, with their line numbers."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TEXTS = frozenset({"type", "name", "due_at", "priority", "callback_url"})
"""Columns whose cells are text even if they look like JSON; tags are text, too."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task of a file.

    Attributes:
        line: the number of the task's line, counted from 1.
        fields: the task's fields for the API.
        fault: why the task cannot be sent; empty if the task is valid.
    """

    line: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""


def lines_of_json(text: str) -> Iterator[TaskLine]:
    """Yield the tasks in JSON lines, which have one object each; empty lines are skipped."""
    # `splitlines()` is not used, because a JSON string can contain other line separators, such as U+2028.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            yield TaskLine(number, fault=f"is not JSON: {error}")
            continue
        if isinstance(value, dict):
            yield TaskLine(number, value)
        else:
            yield TaskLine(number, fault="should be an object with the fields of a task")


def lines_of_csv(text: str) -> Iterator[TaskLine]:
    """Yield the tasks in CSV data; each column is a field, or part of a field, such as `tags.team`.

    A cell is read as JSON if possible, otherwise as text; empty cells are omitted.
    """
    rows = csv.reader(StringIO(text, newline=""), strict=True)
    header = [name.strip() for name in next(rows, [])]
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield TaskLine(rows.line_num, fault=f"is not CSV: {error}")
            return
        if row:
            yield _of_row(rows.line_num, header, row)


def with_defaults(line: TaskLine, defaults: Mapping[str, Any]) -> TaskLine:
    """Fill in a task's omitted fields from the options, and add the options' tags to its own tags."""
    if line.fault:
        return line
    fields = {**defaults, **line.fields}
    tags = line.fields.get("tags")
    if isinstance(tags, dict) and "tags" in defaults:
        fields["tags"] = {**defaults["tags"], **tags}
    if {"due_at", "delay_seconds"} & set(line.fields):
        # The line's own due time or delay overrides a due time or delay from the options.
        fields = {name: value for name, value in fields.items() if name in line.fields or name not in _DUE}
    if "type" not in fields:
        return replace(line, fault="type: is required: write it, or give TYPE")
    return replace(line, fields=fields)


_DUE = frozenset({"due_at", "delay_seconds"})


def _of_row(number: int, header: Sequence[str], row: Sequence[str]) -> TaskLine:
    if len(row) > len(header):
        return TaskLine(number, fault=f"has {len(row)} cells, and the header {len(header)}")
    fields: dict[str, Any] = {}
    for name, cell in zip(header, row, strict=False):
        if not cell:
            continue
        place = fields
        *parents, last = name.split(".")
        for parent in parents:
            inner = place.setdefault(parent, {})
            if not isinstance(inner, dict):
                return TaskLine(number, fault=f"{name}: {parent} has a value of its own")
            place = inner
        place[last] = cell if name in _TEXTS or parents[:1] == ["tags"] else _value_of(cell)
    return TaskLine(number, fields)


def _value_of(cell: str) -> object:
    try:
        return json.loads(cell, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return cell


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
