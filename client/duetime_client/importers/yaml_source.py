"""Reads YAML and JSON documents with the line of each YAML field; alias bombs and unknown tags are handled safely.

This module does not use PyYAML's constructors, because their merging with `<<` copies mappings without a limit, and
they do not know CloudFormation's tags, such as `!Ref`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from duetime_client.importers.text_sources import SourceUnreadable
from duetime_client.manifests.reader import CoreLoader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client.importers.draft import Draft, Source

_MOST_VALUES = 300_000
_DEEPEST = 60
_MERGE = "tag:yaml.org,2002:merge"


class Fields(dict[str, Any]):
    """A mapping with the line of each of its fields.

    Attributes:
        line: The first line of the mapping.
        lines: The line of each field.
    """

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


def readable_documents(draft: Draft, sources: Sequence[Source]) -> Iterator[tuple[Source, list[Any]]]:
    """The files that can be read, with their documents; other files are reported in the draft."""
    for source in sources:
        try:
            documents = documents_of(source)
        except SourceUnreadable as error:
            draft.unreadable(source, str(error), error.line)
        else:
            yield source, documents


def documents_of(source: Source) -> list[Any]:
    """The documents of a file.

    Raises:
        SourceUnreadable: The file is neither YAML nor JSON, has too many values after aliases are expanded, or is
            nested too deeply.
    """
    if source.text.lstrip()[:1] in {"{", "["}:
        return [_of_json(source)]
    loader = CoreLoader(source.text)
    reader = _NodeReader()
    found = []
    try:
        while loader.check_node():
            found.append(reader.value(loader.get_node()))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        hint = ": render Helm templates first" if "{{" in source.text else ""
        problem = getattr(error, "problem", None) or str(error)
        raise SourceUnreadable(f"is not YAML: {problem}{hint}", mark.line + 1 if mark else 0) from error
    except (RecursionError, ValueError) as error:
        raise SourceUnreadable(f"is not YAML: {error or type(error).__name__}") from error
    finally:
        loader.dispose()
    return found


def _of_json(source: Source) -> Any:  # noqa: ANN401 - any JSON
    def fields(pairs: list[tuple[str, Any]]) -> Fields:
        made = Fields()
        made.update(pairs)
        return made

    try:
        return json.loads(source.text, object_pairs_hook=fields)
    except json.JSONDecodeError as error:
        raise SourceUnreadable(f"is not JSON: {error.msg}", error.lineno) from error
    except (RecursionError, ValueError) as error:
        raise SourceUnreadable(f"is not JSON: {error or type(error).__name__}") from error


def line_of(source: Source, name: str) -> int:
    """The number of the first line that contains a string in a JSON file; 0 if no line contains the string."""
    position = source.text.find(json.dumps(name))
    return source.text.count("\n", 0, position) + 1 if position >= 0 else 0


class _NodeReader:
    """Converts YAML nodes to values, up to a maximum number of values and a maximum depth."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def value(self, node: Any, depth: int = 0) -> Any:  # noqa: ANN401 - PyYAML has no types
        """The value of a node.

        Raises:
            SourceUnreadable: There are too many values, or they are nested too deeply.
        """
        self._left -= 1
        line = node.start_mark.line + 1
        if self._left < 0 or depth > _DEEPEST:
            raise SourceUnreadable("has too many values, or is nested too deeply: aliases are expanded", line)
        made: Any
        if isinstance(node, yaml.MappingNode):
            made = self._fields(node, depth)
        elif isinstance(node, yaml.SequenceNode):
            made = [self.value(each, depth + 1) for each in node.value]
        else:
            made = _scalar(node)
        return _tagged(node.tag, made) if node.tag.startswith("!") else made

    def _fields(self, node: Any, depth: int) -> Fields:  # noqa: ANN401 - PyYAML has no types
        found, merged = Fields(node.start_mark.line + 1), Fields()
        for key_node, value_node in node.value:
            value = self.value(value_node, depth + 1)
            if key_node.tag == _MERGE:
                for each in value if isinstance(value, list) else [value]:
                    merged = _merged(merged, each)
                continue
            key = key_node.value
            name = key if isinstance(key, str) else str(self.value(key_node, depth + 1))
            found[name] = value
            found.lines[name] = key_node.start_mark.line + 1
        return _merged(found, merged) if merged else found


def _merged(first: Fields, second: object) -> Fields:
    """Add the fields of the second mapping that the first mapping lacks, and return the first mapping."""
    if isinstance(second, Fields):
        for key, value in second.items():
            first.setdefault(key, value)
            first.lines.setdefault(key, second.lines.get(key, 0))
    return first


def _scalar(node: Any) -> Any:  # noqa: ANN401 - PyYAML has no types
    text = node.value
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text)
        case "float":
            return float(text)
    return text


def _tagged(tag: str, value: object) -> object:
    """Convert a value with a short CloudFormation tag, such as `!Ref`, to its long form."""
    name = tag[1:]
    if name == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    made = Fields()
    made["Ref" if name == "Ref" else f"Fn::{name}"] = value
    return made
