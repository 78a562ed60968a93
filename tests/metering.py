"""DynamoDB's pricing rules, from which duetime's figures are computed.

Source: DynamoDB Developer Guide, "DynamoDB item sizes and formats" and "DynamoDB read and write operations".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITE_UNIT_BYTES = 1_024
READ_UNIT_BYTES = 4_096
_CONTAINER_BYTES = 3
"""The overhead of a list or a map; each element costs one byte more."""


def item_size(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return an item's size in bytes, which includes its attribute names and values."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: Mapping[str, Any]) -> int:
    """Return the size of an attribute value in bytes."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            return _number_size(content)
        case "NS":
            return sum(map(_number_size, content))
        case "BOOL" | "NULL":
            return 1
        case "L":
            return _CONTAINER_BYTES + sum(1 + value_size(each) for each in content)
        case "M":
            return _CONTAINER_BYTES + sum(1 + len(key.encode()) + value_size(each) for key, each in content.items())
    raise ValueError(kind)


def _number_size(number: str) -> int:
    """Return a number's size: one byte for each pair of digits, one more, and one for a minus sign.

    Pairs begin at the decimal point, and zeros at both ends do not count (120 is 01 20, and 12 and 1200 are 12).
    """
    whole, _, fraction = number.lstrip("-").partition(".")
    digits = whole.zfill(len(whole) + len(whole) % 2) + fraction + "0" * (len(fraction) % 2)
    pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
    used = [at for at, pair in enumerate(pairs) if pair != "00"]
    return (used[-1] - used[0] + 1 if used else 0) + 1 + number.startswith("-")


def write_units(size: int) -> int:
    """Return the write units for an item of this many bytes (the larger of its two images)."""
    return max(1, -(-size // WRITE_UNIT_BYTES))


def read_units(size: int, *, consistent: bool) -> float:
    """Return the read units for this many bytes, which are halved for an eventually consistent read."""
    return max(1, -(-size // READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)
