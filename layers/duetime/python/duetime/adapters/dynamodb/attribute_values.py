"""Encodes numbers, strings, instants and bytes as attribute values in DynamoDB's low-level format.

Bytes may be compressed.

This code replaces boto3's serializer, which uses `Decimal` and takes longer than the rest of the encoding. Bytes are
compressed by raw deflate without header and checksum. DynamoDB and S3 check stored data themselves, so the six bytes of
a header and a checksum per item would only cost money.
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
"""zlib's parameter for raw deflate with the largest window (Source: zlib manual, `deflateInit2`)."""
_BEST = 9
_SMALLEST_WORTH_TRYING = 48
"""Minimum number of bytes to compress. Shorter JSON rarely shrinks, and compressing it takes longer than encoding the
rest of a record."""


def deflated(data: bytes) -> bytes:
    """Compress bytes."""
    return zlib.compress(data, _BEST, _RAW)


def inflated(data: bytes) -> bytes:
    """Decompress bytes."""
    return zlib.decompress(data, _RAW)


def smaller(data: bytes) -> bytes | None:
    """Compress bytes; `None` if the compressed bytes are not shorter."""
    if len(data) < _SMALLEST_WORTH_TRYING:
        return None
    compressed = deflated(data)
    return compressed if len(compressed) < len(data) else None


def text_of(data: bytes) -> str:
    """Encode bytes as a short JSON string. The base64 of 5 MB of incompressible bytes becomes a string of only 6 MB."""
    # Other strategies would find only few repeated strings in base64, and take longer than the saved bytes are worth.
    compressor = zlib.compressobj(_BEST, zlib.DEFLATED, _RAW, strategy=zlib.Z_HUFFMAN_ONLY)
    return base64.b85encode(compressor.compress(data) + compressor.flush()).decode()


def bytes_in(text: str) -> bytes:
    """Decode a string that `text_of` returned."""
    return inflated(base64.b85decode(text))


Value: TypeAlias = "Mapping[str, Any]"
"""One attribute value, with the letter of its type."""
Item: TypeAlias = "dict[str, Value]"
"""An item, or an item's key."""
StoredItem: TypeAlias = "Mapping[str, Mapping[str, Any]]"
"""An item as DynamoDB returns it."""


def number(value: float) -> Value:
    """Encode a whole number."""
    return {"N": str(value)}


def integer(value: Value) -> int:
    """Read a whole number."""
    return int(value["N"])


def text(value: str) -> Value:
    """Encode a string."""
    return {"S": value}


def string(value: Value) -> str:
    """Read a string."""
    return str(value["S"])


def flag(value: bool) -> Value | None:  # noqa: FBT001 - the value itself, not a switch
    """Encode a Boolean; `None` for false, so that the attribute is left out."""
    return {"BOOL": True} if value else None


def truth(value: Value) -> bool:
    """Read a Boolean."""
    return bool(value["BOOL"])


def packed(data: bytes) -> Value:
    """Encode bytes in the shortest form, which is plain text in `S` or compressed data in `B`."""
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
    """Encode an instant as a TTL attribute, in whole seconds that are rounded up."""
    return {"N": str(-(-at // SECOND))}


def read_expiry(value: Value) -> Millis:
    """Read an instant from a TTL attribute."""
    return int(value["N"]) * SECOND
