"""Binary payloads: bytes with a content type, in JSON `{"$binary": {"base64": "…", "content_type": "…"}}`."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Self

BINARY = "$binary"
"""Name of the only field of a JSON object that stands for bytes."""
BASE64, CONTENT_TYPE = "base64", "content_type"
OCTET_STREAM = "application/octet-stream"
CONTENT_TYPE_PATTERN = r"^[a-zA-Z0-9_.+-]+/[a-zA-Z0-9_.+-]+( ?; ?[a-zA-Z0-9_-]+=[a-zA-Z0-9_.:+-]+)*$"
MAX_CONTENT_TYPE_LENGTH = 128
_START = f'{{"{BINARY}":'.encode()


class Binary(bytes):
    """A binary payload: bytes with a content type.

    Attributes:
        content_type: such as `image/png`.
    """

    content_type: str

    def __new__(cls, data: bytes, content_type: str = OCTET_STREAM) -> Self:
        """Bytes with a content type."""
        made = super().__new__(cls, data)
        made.content_type = content_type
        return made

    def __getnewargs__(self) -> tuple[bytes, str]:  # type: ignore[override]  # its constructor takes one more
        """The arguments that make an equal value, for copies and pickles."""
        return bytes(self), self.content_type


def json_of_bytes(data: bytes) -> dict[str, dict[str, str]]:
    """Bytes as JSON; their content type is that of a `Binary`, by default `application/octet-stream`."""
    content_type = data.content_type if isinstance(data, Binary) else OCTET_STREAM
    return {BINARY: {BASE64: base64.b64encode(data).decode(), CONTENT_TYPE: content_type}}


def value_of(payload: Any) -> Any:  # noqa: ANN401 - any JSON
    """A payload's JSON as handlers get it: bytes if it stands for them, anything else unchanged."""
    match payload:
        case {"$binary": {"base64": str(text), "content_type": str(content_type)}} if len(payload) == 1:
            try:
                return Binary(base64.b64decode(text, validate=True), content_type)
            except binascii.Error:
                # Stored by something else than a creation, which checks it.
                return payload
    return payload


def value_in(payload: bytes) -> Any:  # noqa: ANN401 - any JSON
    """A stored payload as handlers get it.

    Args:
        payload: JSON text in UTF-8 without spaces.
    """
    value = json.loads(payload)
    return value_of(value) if payload.startswith(_START) else value


def binary_in(payload: bytes) -> Binary | None:
    """The bytes that a stored payload stands for; `None` for any other JSON."""
    if not payload.startswith(_START):
        return None
    value = value_in(payload)
    return value if isinstance(value, Binary) else None
