"""How payloads and results are made smaller: raw deflate, with neither header nor checksum of its own.

DynamoDB and S3 check what they store; six bytes more an item would only cost.
"""

from __future__ import annotations

import zlib

_RAW = -15
"""Raw deflate with the largest window (Source: zlib manual, `deflateInit2`)."""
_BEST = 9
_SMALLEST_WORTH_TRYING = 48
"""Shorter JSON hardly ever shrinks, and trying costs more than everything else in encoding a record."""


def deflated(data: bytes) -> bytes:
    """The bytes, compressed."""
    return zlib.compress(data, _BEST, _RAW)


def inflated(data: bytes) -> bytes:
    """The bytes that were compressed."""
    return zlib.decompress(data, _RAW)


def smaller(data: bytes) -> bytes | None:
    """The bytes, compressed, if that makes them smaller."""
    if len(data) < _SMALLEST_WORTH_TRYING:
        return None
    compressed = deflated(data)
    return compressed if len(compressed) < len(data) else None
