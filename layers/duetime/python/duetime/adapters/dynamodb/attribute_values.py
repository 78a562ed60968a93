"""Attribute values: numbers, texts, bytes and instants in DynamoDB's low-level format.

Handwritten because boto3's serializer uses `Decimal` and costs more than the rest of the encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.adapters.compression import deflated, inflated, smaller
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis

Value: TypeAlias = "Mapping[str, Any]"
"""One attribute value: its type's letter and the value."""
Item: TypeAlias = "dict[str, Value]"
"""An item, or the key of one."""
StoredItem: TypeAlias = "Mapping[str, Mapping[str, Any]]"
"""An item as DynamoDB returns it."""


def number(value: float) -> Value:
    """A whole number."""
    return {"N": str(value)}


def integer(value: Value) -> int:
    """Read a whole number."""
    return int(value["N"])


def text(value: str) -> Value:
    """A text."""
    return {"S": value}


def string(value: Value) -> str:
    """Read a text."""
    return str(value["S"])


def flag(value: bool) -> Value | None:  # noqa: FBT001 - the value itself, not a switch
    """A Boolean; `None` for false, which leaves the attribute out."""
    return {"BOOL": True} if value else None


def truth(value: Value) -> bool:
    """Read a Boolean."""
    return bool(value["BOOL"])


def packed(data: bytes) -> Value:
    """Bytes in the shortest form: `S` holds plain text, `B` compressed data."""
    compressed = smaller(data)
    if compressed is None:
        try:
            return {"S": data.decode()}
        except UnicodeDecodeError:
            compressed = deflated(data)
    return {"B": compressed}


def unpacked(value: Value) -> bytes:
    """Read packed bytes."""
    return str(value["S"]).encode() if "S" in value else inflated(value["B"])


def expiry(at: Millis) -> Value:
    """An instant as a TTL attribute: whole seconds, rounded up."""
    return {"N": str(-(-at // SECOND))}


def read_expiry(value: Value) -> Millis:
    """Read an instant from a TTL attribute."""
    return int(value["N"]) * SECOND
