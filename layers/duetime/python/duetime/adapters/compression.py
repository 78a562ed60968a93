"""Compresses payloads and results: raw deflate, without header or checksum.

DynamoDB and S3 check stored data themselves; six more bytes per item would only cost money.
"""

from __future__ import annotations

import zlib

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
    """The compressed bytes if they are fewer, else the bytes."""
    if len(data) < _SMALLEST_WORTH_TRYING:
        return None
    compressed = deflated(data)
    return compressed if len(compressed) < len(data) else None
