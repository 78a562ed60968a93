"""Compresses payloads and results: raw deflate, without header or checksum.

DynamoDB and S3 check stored data themselves; six more bytes per item would only cost money.
"""

from __future__ import annotations

import base64
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


def text_of(data: bytes) -> str:
    """Bytes as a short text for JSON, also if they are base64 of bytes that do not shrink: 5 MB are 6 MB of text."""
    # Other strategies find a few repeated texts in base64, and spend more on them than they save.
    compressor = zlib.compressobj(_BEST, zlib.DEFLATED, _RAW, strategy=zlib.Z_HUFFMAN_ONLY)
    return base64.b85encode(compressor.compress(data) + compressor.flush()).decode()


def bytes_in(text: str) -> bytes:
    """The bytes of such a text."""
    return inflated(base64.b85decode(text))
