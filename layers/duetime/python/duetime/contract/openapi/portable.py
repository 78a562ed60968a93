"""Converts schemas to constructs that client generators support.

Constraints that generated clients cannot express are moved to the description: the API validates by its own models, so
the document may be more permissive than they are, but never stricter.
"""

from __future__ import annotations

import json
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Schema = dict[str, Any]
DEFAULT = "Default: "
_NOTHING: tuple[object, ...] = (None, "", [], {})
"""Defaults that are not mentioned: an omitted field is absent."""
_CONDITIONS = ("oneOf", "anyOf", "allOf", "not", "if", "then", "else")
_CONDITION_KEYS = frozenset({"required", "properties", *_CONDITIONS})


def portable(schema: Schema) -> Schema:
    """Converts a schema, including nested ones."""
    within = {name: _portable_value(name, value) for name, value in schema.items()}
    for rewrite in _REWRITES:
        within = rewrite(within)
    return within


def _portable_value(name: str, value: object) -> object:
    if name in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
        return {key: portable(each) for key, each in value.items()}
    if name in ("examples", "default", "const", "enum"):
        return value
    if isinstance(value, dict):
        return portable(value)
    return [portable(each) if isinstance(each, dict) else each for each in value] if isinstance(value, list) else value


def with_sentence(schema: Schema, sentence: str) -> Schema:
    """Adds a sentence to a schema's description."""
    description = schema.get("description", "")
    return {**schema, "description": f"{description} {sentence}".strip()}


def _without_title(schema: Schema) -> Schema:
    """Removes titles that repeat a field's name; a field may itself be named title."""
    return {name: value for name, value in schema.items() if name != "title" or not isinstance(value, str)}


def _with_map(schema: Schema) -> Schema:
    """Describes a map's keys by `propertyNames`: generators interpret `patternProperties` as an empty object."""
    patterns: Mapping[str, Schema] = schema.get("patternProperties", {})
    if len(patterns) != 1 or schema.get("additionalProperties") is not False:
        return schema
    ((pattern, value),) = patterns.items()
    kept = {name: each for name, each in schema.items() if name != "patternProperties"}
    return {**kept, "additionalProperties": value, "propertyNames": {"pattern": pattern}}


def _with_default_in_words(schema: Schema) -> Schema:
    """Describes a default in words: clients send a declared default, and some then require the field."""
    if "default" not in schema:
        return schema
    kept = {name: value for name, value in schema.items() if name != "default"}
    default = schema["default"]
    if default in _NOTHING:
        return kept
    # Only Python distinguishes 5.0 from 5.
    text = json.dumps(default).replace(".0,", ",").replace(".0}", "}") if isinstance(default, dict) else _text(default)
    return with_sentence(kept, f"{DEFAULT}{text}.")


def _text(default: object) -> str:
    if isinstance(default, str):
        return default
    return f"{default:g}" if isinstance(default, float) else json.dumps(default)


def _with_description_outside(schema: Schema) -> Schema:
    """Moves the description of a nullable field's only other choice to the field itself."""
    choices = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(choices) != 1 or "description" in schema or "description" not in choices[0]:
        return schema
    text = choices[0]["description"]
    inner = [{k: v for k, v in each.items() if k != "description"} for each in schema["anyOf"]]
    return {**schema, "anyOf": inner, "description": text}


def _with_conditions_in_words(schema: Schema) -> Schema:
    """Describes allowed combinations in words: a choice of bare `required` makes generators produce an untyped body."""
    if "properties" not in schema:
        return schema
    conditions = {name: schema[name] for name in _CONDITIONS if name in schema and _is_bare(schema[name])}
    if not conditions:
        return schema
    kept = {name: value for name, value in schema.items() if name not in conditions}
    sentences = [sentence for name, value in conditions.items() for sentence in _sentences(name, value)]
    return with_sentence(kept, " ".join(sentences))


def _is_bare(condition: object) -> bool:
    """Whether a condition contains only the presence of fields and its consequences."""
    if isinstance(condition, list):
        return all(_is_bare(each) for each in condition)
    return isinstance(condition, dict) and set(condition) <= _CONDITION_KEYS


def _sentences(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - a schema, or a list of them
    if name == "oneOf":
        yield f"Exactly one of {_names(field for each in value for field in each.get('required', ()))} is required."
    elif name == "not":
        groups = [each["required"] for each in value.get("anyOf", [value]) if "required" in each]
        yield from _exclusions(groups)
    # Conditions with `if` are described by their declaration.


def _exclusions(groups: list[list[str]]) -> Iterator[str]:
    fields = list(dict.fromkeys(field for group in groups for field in group))
    pairs = {frozenset(pair) for pair in combinations(fields, 2)}
    if pairs == {frozenset(group) for group in groups}:
        yield f"At most one of {_names(fields)} can be given."
    else:
        yield from (f"{_names(group)} cannot be given together." for group in groups)


def _names(fields: Iterable[str]) -> str:
    *others, last = [f"`{field}`" for field in fields]
    return f"{', '.join(others)} and {last}" if others else last


_REWRITES: tuple[Callable[[Schema], Schema], ...] = (
    _without_title,
    _with_map,
    _with_default_in_words,
    _with_description_outside,
    _with_conditions_in_words,
)
