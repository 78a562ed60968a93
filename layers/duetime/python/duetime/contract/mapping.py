"""Copies fields with identical names between domain values and API models.

`tests/contract/test_mapping.py` checks for every call that each name exists on both sides and that the types
are compatible.
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
"""Name suffixes of instants, which are milliseconds in the domain and ISO 8601 in responses."""


@overload
def response_of(form: type[F], value: None, /, **given: object) -> None: ...
@overload
def response_of(form: type[F], value: DataclassInstance, /, **given: object) -> F: ...
def response_of(form: type[F], value: object, /, **given: object) -> F | None:
    """A response with the fields of a domain value; `None` if there is no value.

    Args:
        form: a `TypedDict`.
        value: a domain value with every field of the form that is not in `given`.
        given: fields whose name or format differs in the value.
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
    """A domain value with the fields of a body; `None` if there is no body.

    Args:
        kind: a dataclass.
        body: a body with every field of the dataclass that is not in `given`.
        given: fields whose name or format differs in the body.
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
    """An empty response with all names in order, and the names of the plain fields and of the instants to copy."""
    blank = dict.fromkeys(form.__annotations__)
    names = [name for name in blank if name not in given]
    instants = [name for name in names if name.endswith(INSTANTS)]
    return blank, [name for name in names if name not in instants], instants


@cache
def _values(kind: type[DataclassInstance]) -> Callable[[object], tuple[Any, ...]]:
    """Returns a function that reads the values of a dataclass's fields from a body, in order.

    The dataclass must have several fields.
    """
    return attrgetter(*_fields(kind))


@cache
def _fields(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
