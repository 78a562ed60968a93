"""Writes schemas in the constructs that generators of clients understand.

What JSON Schema can say and generated clients cannot express is said in the description instead: the API refuses
by its own models, so that the document may be wider than they are, but never narrower.
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
"""Defaults that need no word: what is left out is not there."""
_CONDITIONS = ("oneOf", "anyOf", "allOf", "not", "if", "then", "else")
_CONDITION_KEYS = frozenset({"required", "properties", *_CONDITIONS})


def portable(schema: Schema) -> Schema:
    """A schema, and all those within it, in portable constructs."""
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
    """A schema whose description ends with a sentence more."""
    description = schema.get("description", "")
    return {**schema, "description": f"{description} {sentence}".strip()}


def _without_title(schema: Schema) -> Schema:
    """Titles that repeat a field's name; a field may itself be called title."""
    return {name: value for name, value in schema.items() if name != "title" or not isinstance(value, str)}


def _with_map(schema: Schema) -> Schema:
    """A map says what its keys are by `propertyNames`: generators take `patternProperties` for an empty object."""
    patterns: Mapping[str, Schema] = schema.get("patternProperties", {})
    if len(patterns) != 1 or schema.get("additionalProperties") is not False:
        return schema
    ((pattern, value),) = patterns.items()
    kept = {name: each for name, each in schema.items() if name != "patternProperties"}
    return {**kept, "additionalProperties": value, "propertyNames": {"pattern": pattern}}


def _with_default_in_words(schema: Schema) -> Schema:
    """A default is a sentence: clients send a declared one, and some of them then require the field."""
    if "default" not in schema:
        return schema
    kept = {name: value for name, value in schema.items() if name != "default"}
    default = schema["default"]
    if default in _NOTHING:
        return kept
    # 5.0 is 5 to everybody but Python.
    text = json.dumps(default).replace(".0,", ",").replace(".0}", "}") if isinstance(default, dict) else _text(default)
    return with_sentence(kept, f"{DEFAULT}{text}.")


def _text(default: object) -> str:
    if isinstance(default, str):
        return default
    return f"{default:g}" if isinstance(default, float) else json.dumps(default)


def _with_description_outside(schema: Schema) -> Schema:
    """What describes the only choice besides null describes the field."""
    choices = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(choices) != 1 or "description" in schema or "description" not in choices[0]:
        return schema
    text = choices[0]["description"]
    inner = [{k: v for k, v in each.items() if k != "description"} for each in schema["anyOf"]]
    return {**schema, "anyOf": inner, "description": text}


def _with_conditions_in_words(schema: Schema) -> Schema:
    """Which fields may stand together is a sentence: a choice of bare `required` makes an untyped body of an object."""
    if "properties" not in schema:
        return schema
    conditions = {name: schema[name] for name in _CONDITIONS if name in schema and _is_bare(schema[name])}
    if not conditions:
        return schema
    kept = {name: value for name, value in schema.items() if name not in conditions}
    sentences = [sentence for name, value in conditions.items() for sentence in _sentences(name, value)]
    return with_sentence(kept, " ".join(sentences))


def _is_bare(condition: object) -> bool:
    """Whether a condition says nothing but which fields are there, and what is true of them then."""
    if isinstance(condition, list):
        return all(_is_bare(each) for each in condition)
    return isinstance(condition, dict) and set(condition) <= _CONDITION_KEYS


def _sentences(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - a schema, or a list of them
    if name == "oneOf":
        yield f"Exactly one of {_names(field for each in value for field in each.get('required', ()))} is required."
    elif name == "not":
        groups = [each["required"] for each in value.get("anyOf", [value]) if "required" in each]
        yield from _exclusions(groups)
    # What a condition with `if` says is written in the description by whoever declares it.


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
