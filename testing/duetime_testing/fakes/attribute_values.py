"""Compares, validates and measures attribute values as DynamoDB does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

Value: TypeAlias = Mapping[str, Any]
Item: TypeAlias = dict[str, Value]

_ORDERED = frozenset("SNB")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DIGITS = 38
"""Maximum number of digits in a number (Source: DynamoDB Developer Guide, "Naming rules and data types")."""
MOST_BYTES = 400 * 1024
"""Maximum size of an item, in bytes (Source: DynamoDB quotas)."""


class ValueInvalid(ValueError):
    """A value that DynamoDB rejects."""


def kind_of(value: Value) -> str:
    """A value's type descriptor, such as `S` or `N`."""
    return next(iter(value))


def number_of(text: str) -> int | Decimal:
    """Parse a number."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def number_text(number: int | Decimal) -> str:
    """Format a number as DynamoDB does, without an exponent and without trailing zeros after the decimal point."""
    if isinstance(number, int):
        return str(number)
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def equal(one: Value, other: Value) -> bool:
    """Whether two values are equal and have the same type."""
    if one == other:
        return True
    kind = kind_of(one)
    if kind != kind_of(other):
        return False
    mine, theirs = one[kind], other[kind]
    if kind == "N":
        return number_of(mine) == number_of(theirs)
    if kind == "M":
        return mine.keys() == theirs.keys() and all(equal(each, theirs[name]) for name, each in mine.items())
    if kind == "L":
        return len(mine) == len(theirs) and all(map(equal, mine, theirs))
    if kind in {"SS", "BS", "NS"}:
        return set(mine) == set(theirs)
    return bool(mine == theirs)


def contains(value: Value, part: Value) -> bool:
    """Whether a string contains a substring, or a list or set contains a member."""
    ((kind, inside),), wanted = value.items(), kind_of(part)
    if kind in {"SS", "NS", "BS"}:
        return kind[0] == wanted and any(equal({wanted: each}, part) for each in inside)
    if kind == "L":
        return any(equal(each, part) for each in inside)
    return kind == wanted and kind in {"S", "B"} and part[kind] in inside


def joined(one: Value, other: Value) -> Value:
    """The union of two sets of the same type."""
    kind = kind_of(one)
    more = [each for each in other[kind] if not contains(one, {kind[0]: each})]
    return {kind: [*one[kind], *more]}


def order(one: Value, other: Value) -> int | None:
    """Return -1, 0 or 1 if `one` is less than, equal to or greater than `other`; `None` if they are incomparable."""
    kind = kind_of(one)
    if kind not in _ORDERED or kind != kind_of(other):
        return None
    mine: Any = one[kind]
    theirs: Any = other[kind]
    if kind == "N":
        mine, theirs = number_of(mine), number_of(theirs)
    return int(mine > theirs) - int(mine < theirs)


def checked(value: Value) -> Value:
    """Validate and normalize a value for storage.

    Raises:
        ValueInvalid: DynamoDB would reject the value.
    """
    ((kind, inside),) = value.items()
    if kind == "S":
        return value
    if kind == "N":
        return value if inside.isascii() and inside.isdigit() and _is_plain(inside) else {"N": _checked_number(inside)}
    if kind == "M":
        return {"M": {name: checked(each) for name, each in inside.items()}}
    if kind == "L":
        return {"L": [checked(each) for each in inside]}
    if kind in {"SS", "NS", "BS"}:
        return {kind: _checked_set(kind, inside)}
    return value


def _checked_set(kind: str, inside: list[Any]) -> list[Any]:
    node_refs = [checked({kind[0]: each})[kind[0]] for each in inside]
    if not node_refs or len(set(node_refs)) < len(node_refs):
        raise ValueInvalid("One or more parameter values were invalid: a set may not be empty, nor have duplicates")
    return node_refs


def _is_plain(digits: str) -> bool:
    return len(digits) <= _DIGITS and (digits[0] != "0" or digits == "0")


def _checked_number(text: str) -> str:
    if _NUMBER.fullmatch(text) is None:
        raise ValueInvalid(f"The parameter cannot be converted to a numeric value: {text}")
    number = Decimal(text)
    significant = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(significant) > _DIGITS:
        raise ValueInvalid("Attempting to store more than 38 significant digits in a Number")
    return number_text(int(number) if number == number.to_integral_value() else number)


def size_of(item: Mapping[str, Value]) -> int:
    """The approximate size of an item in bytes, including attribute names.

    Source: DynamoDB Developer Guide, "Item sizes".
    """
    total = 0
    for name, value in item.items():
        ((kind, inside),) = value.items()
        total += len(name if name.isascii() else name.encode())
        if kind == "S":
            total += len(inside if inside.isascii() else inside.encode())
        elif kind == "N":
            total += (len(inside) + 3) // 2 if inside[0] != "-" else len(inside) // 2 + 1
        else:
            total += _size(kind, inside)
    return total


def _size(kind: str, inside: Any) -> int:  # noqa: ANN401 - any attribute value
    match kind:
        case "S":
            return len(inside.encode())
        case "B":
            return len(inside)
        case "N":
            return -(-len(inside.lstrip("-")) // 2) + 1
        case "M":
            return 3 + len(inside) + size_of(inside)
        case "L":
            return 3 + sum(1 + _size(*item) for each in inside for item in each.items())
        case "SS" | "NS" | "BS":
            return sum(_size(kind[0], each) for each in inside)
        case _:
            return 1
