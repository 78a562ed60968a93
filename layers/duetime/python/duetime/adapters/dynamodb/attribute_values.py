"""Attribute values: numbers, texts, instants and bytes in DynamoDB's low-level format; bytes may be compressed.

The code is handwritten, because boto3's serializer uses `Decimal` and costs more than the rest of the encoding.

Compression is raw deflate, without header or checksum: DynamoDB and S3 check stored data themselves, and six more
bytes per item would only cost money.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any, TypeAlias

from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis


_RAW = -15
"""Raw deflate with the largest window (Source: zlib manual, `deflateInit2`)."""
_BEST = 9
_SMALLEST_WORTH_TRYING = 48
"""Shorter JSON hardly ever shrinks, and compressing it costs more than the rest of encoding a record."""


def deflated(data: bytes) -> bytes:
    """Compress bytes."""
    return zlib.compress(data, _BEST, _RAW)


def inflated(data: bytes) -> bytes:
    """Decompress bytes."""
    return zlib.decompress(data, _RAW)


def smaller(data: bytes) -> bytes | None:
    """The compressed bytes if they are shorter than the given bytes, otherwise `None`."""
    if len(data) < _SMALLEST_WORTH_TRYING:
        return None
    compressed = deflated(data)
    return compressed if len(compressed) < len(data) else None


def text_of(data: bytes) -> str:
    """Bytes as a short text for JSON, even if they are base64 of incompressible bytes: 5 MB become 6 MB of text."""
    # Other strategies find a few repeated texts in base64, and cost more than they save.
    compressor = zlib.compressobj(_BEST, zlib.DEFLATED, _RAW, strategy=zlib.Z_HUFFMAN_ONLY)
    return base64.b85encode(compressor.compress(data) + compressor.flush()).decode()


def bytes_in(text: str) -> bytes:
    """The bytes of a text that `text_of` made."""
    return inflated(base64.b85decode(text))


Value: TypeAlias = "Mapping[str, Any]"
"""One attribute value: its type's letter and the value."""
Item: TypeAlias = "dict[str, Value]"
"""An item, or an item's key."""
StoredItem: TypeAlias = "Mapping[str, Mapping[str, Any]]"
"""An item as DynamoDB returns it."""


def number(value: float) -> Value:
    """A whole number as an attribute value."""
    return {"N": str(value)}


def integer(value: Value) -> int:
    """Read a whole number."""
    return int(value["N"])


def text(value: str) -> Value:
    """A text as an attribute value."""
    return {"S": value}


def string(value: Value) -> str:
    """Read a text."""
    return str(value["S"])


def flag(value: bool) -> Value | None:  # noqa: FBT001 - the value itself, not a switch
    """A Boolean; `None` for false, so that the attribute is left out."""
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
