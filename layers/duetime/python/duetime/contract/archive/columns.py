"""The columns of the archive: the fields of a task in API responses, and additional fields."""

from __future__ import annotations

from enum import StrEnum
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints

from duetime.contract.tasks.responses import Instant, TaskResponse

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """The type of a column's values."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    INSTANT = "instant"
    """Text such as `2026-11-22T20:43:08.123Z`."""
    JSON = "json"
    """Any JSON, including objects and lists."""


def kind_of(hint: Any) -> Kind:  # noqa: ANN401 - a type hint
    """The kind of a field by its type; fields that may be null have the same kind."""
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Annotated:
            return Kind.INSTANT if get_args(Instant)[1] in arguments else kind_of(arguments[0])
        case origin if origin is NotRequired:
            return kind_of(arguments[0])
        case origin if origin in {Union, UnionType}:
            return kind_of(next(each for each in arguments if each is not type(None)))
    if not isinstance(hint, type):
        return Kind.JSON
    kinds = {str: Kind.TEXT, bool: Kind.BOOLEAN, int: Kind.INTEGER}
    return next((kind for type_, kind in kinds.items() if issubclass(hint, type_)), Kind.JSON)


COLUMNS: Mapping[str, Kind] = {
    **{name: kind_of(hint) for name, hint in get_type_hints(TaskResponse, include_extras=True).items()},
    "owner": Kind.TEXT,
    "attempts": Kind.JSON,
    "events": Kind.JSON,
    "events_dropped": Kind.INTEGER,
    "archive_format": Kind.INTEGER,
}
"""All fields of a line."""
