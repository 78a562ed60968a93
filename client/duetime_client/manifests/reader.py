"""Reads the schedules of a YAML or JSON lines file, with their line numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CORE = {
    "tag:yaml.org,2002:null": (r"~|null|Null|NULL|", "~nN\0"),
    "tag:yaml.org,2002:bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "tag:yaml.org,2002:int": (r"[-+]?[0-9]+", "-+0123456789"),
    "tag:yaml.org,2002:float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
    "tag:yaml.org,2002:merge": ("<<", "<"),
}
_MOST_ENTRIES = 100_000


class ManifestUnreadable(Exception):
    """A file is neither YAML nor JSON lines."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One schedule of a file.

    Attributes:
        line: The number of the entry's first line, counted from 1.
        name: The schedule's name.
        fields: The schedule's fields for the API, without the name.
        fault: Why the entry is not valid; empty if the entry is valid.
    """

    line: int
    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""


class CoreLoader(yaml.SafeLoader):
    """A loader for YAML 1.2's core schema, in which times, `on` and `22:00` are strings, as in JSON."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name


for _tag, (_pattern, _first) in _CORE.items():
    CoreLoader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), ["" if c == "\0" else c for c in _first])


def entries_of(text: str) -> list[Entry]:
    """Return the schedules of a file: one JSON object per line, or YAML with a list or a document for each schedule.

    Raises:
        ManifestUnreadable: The file is neither YAML nor JSON lines; the message names the position of the error.
    """
    # `splitlines()` is not used, because a JSON string can contain other line separators, such as U+2028.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        return []
    found = _of_lines(lines) if _is_object(lines[0][1]) else _of_yaml(text)
    return _each_once(_entry(line, value) for line, value in found)


def with_defaults(
    entry: Entry, *, task_type: str | None = None, timezone: str | None = None, tags: Mapping[str, str] | None = None
) -> Entry:
    """Fill in an entry's omitted fields from the options, and add the options' tags to its task's tags."""
    if entry.fault:
        return entry
    fields = {**({"timezone": timezone} if timezone else {}), **entry.fields}
    task = fields.get("task", {})
    if not isinstance(task, Mapping):
        return replace(entry, fault="task: should be an object")
    task = {**({"type": task_type} if task_type else {}), **task}
    if tags:
        task["tags"] = {**(task.get("tags") or {}), **tags}
    if "type" not in task:
        return replace(entry, fault="task.type: is required: write it, or give --type")
    return replace(entry, fields={**fields, "task": task})


def _of_lines(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, object]]:
    for number, line in lines:
        try:
            yield number, json.loads(line, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            yield number, ValueError(f"is not JSON: {error}")


def _of_yaml(text: str) -> Iterator[tuple[int, object]]:
    loader = CoreLoader(text)
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
            for part in parts:
                yield part.start_mark.line + 1, loader.construct_document(part)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestUnreadable(f"is neither YAML nor JSON lines: {_worded(error)}") from error
    finally:
        loader.dispose()


def _entry(line: int, value: object) -> Entry:
    if isinstance(value, ValueError):
        return Entry(line, "", fault=str(value))
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        return Entry(line, "", fault="should be an object with the fields of a schedule")
    name = value.get("name")
    if not isinstance(name, str) or not name:
        return Entry(line, "", fault="name: is required, and is text")
    return Entry(line, name, {key: part for key, part in value.items() if key != "name"})


def _each_once(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries; an entry whose name is already taken gets a fault."""
    lines: dict[str, int] = {}
    found: list[Entry] = []
    for entry in entries:
        if len(found) >= _MOST_ENTRIES:
            raise ManifestUnreadable(f"has more than {_MOST_ENTRIES} schedules")
        first = lines.setdefault(entry.name, entry.line) if entry.name else entry.line
        repeated = first != entry.line
        found.append(replace(entry, fault=f"name: {entry.name!r} is in line {first}, too") if repeated else entry)
    return found


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _worded(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error) or type(error).__name__
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def names_of(entries: Sequence[Entry]) -> set[str]:
    """Return all names in a file, including the names of invalid entries."""
    return {entry.name for entry in entries if entry.name}
