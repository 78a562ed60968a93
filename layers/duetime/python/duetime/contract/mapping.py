"""Copies fields that have the same name in a domain value and in its form in the API.

`tests/contract/test_mapping.py` checks every call: each name exists on both sides, and their types fit.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, overload

from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from _typeshed import DataclassInstance

    from duetime.contract.http.request_model import Body

F = TypeVar("F", bound="Mapping[str, object]")
D = TypeVar("D", bound="DataclassInstance")
INSTANTS = ("_at", "_until")
"""Endings of the names of instants: milliseconds in the domain, ISO 8601 in responses."""


@overload
def response_of(form: type[F], value: None, /, **given: object) -> None: ...
@overload
def response_of(form: type[F], value: DataclassInstance, /, **given: object) -> F: ...
def response_of(form: type[F], value: object, /, **given: object) -> F | None:
    """A response with the fields of a value; `None` for no value.

    Args:
        form: a `TypedDict`.
        value: has every field of the form that is not given.
        given: fields that the value has under another name or in another form.
    """
    if value is None:
        return None
    blank, plain, instants = _layout(form, tuple(given))
    response: Any = blank.copy()
    for name in plain:
        response[name] = getattr(value, name)
    for name in instants:
        response[name] = _instant(getattr(value, name))
    response.update(given)
    return response  # type: ignore[no-any-return]


@overload
def value_of(kind: type[D], body: None, /, **given: object) -> None: ...
@overload
def value_of(kind: type[D], body: Body, /, **given: object) -> D: ...
def value_of(kind: type[D], body: Body | None, /, **given: object) -> D | None:
    """A domain value with the fields of a body; `None` for no body.

    Args:
        kind: a dataclass.
        body: has every field of the dataclass that is not given.
        given: fields that the body has under another name or in another form.
    """
    if body is None:
        return None
    if not given:
        return kind(*_values(kind)(body))
    return kind(**{name: getattr(body, name) for name in _fields(kind) if name not in given}, **given)


def _instant(at: int | None) -> str | None:
    return None if at is None else to_iso(at)


@cache
def _layout(form: type, given: tuple[str, ...]) -> tuple[dict[str, None], Sequence[str], Sequence[str]]:
    """The names of a form in order, and those that are not given: of plain fields, and of instants."""
    blank = dict.fromkeys(form.__annotations__)
    names = [name for name in blank if name not in given]
    instants = [name for name in names if name.endswith(INSTANTS)]
    return blank, [name for name in names if name not in instants], instants


@cache
def _values(kind: type[DataclassInstance]) -> Callable[[object], tuple[Any, ...]]:
    """Reads the values of a dataclass with several fields from a body, in their order."""
    return attrgetter(*_fields(kind))


@cache
def _fields(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
