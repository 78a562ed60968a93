"""Encrypts payloads and results before they leave the user's process, and decrypts them there.

An encrypted value is a binary payload of the content type `ENCRYPTED`: its bytes are what the codec makes of the JSON
text. duetime stores and passes it on, and cannot read it.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from duetime_common.binary_payloads import Binary, json_of_bytes, value_of

ENCRYPTED = "application/vnd.duetime.encrypted"
"""Content type of encrypted payloads and results."""


class PayloadCodec(Protocol):
    """Encrypts and decrypts bytes, as `cryptography.fernet.Fernet` does with two methods of other names."""

    def encode(self, data: bytes, /) -> bytes:
        """Encrypt bytes."""
        ...

    def decode(self, data: bytes, /) -> bytes:
        """Decrypt what `encode` has returned."""
        ...


class CodecMissing(ValueError):
    """A payload is encrypted, and the process has no codec to decrypt it."""

    def __init__(self) -> None:
        super().__init__("the payload is encrypted, and no codec is set to decrypt it")


def is_encrypted(value: object) -> bool:
    """Whether a JSON value, or one that was read as bytes, is encrypted."""
    found = value if isinstance(value, Binary) else value_of(value)
    return isinstance(found, Binary) and found.content_type == ENCRYPTED


def encrypted(codec: PayloadCodec, value: object) -> Binary:
    """A value, JSON or bytes, as encrypted bytes.

    Raises:
        TypeError, ValueError: It is not JSON.
    """
    plain = json_of_bytes(value) if isinstance(value, bytes) else value
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Binary(codec.encode(text.encode()), ENCRYPTED)


def decrypted(codec: PayloadCodec | None, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """A value as it was before it was encrypted; one that is not encrypted is unchanged.

    Raises:
        CodecMissing: It is encrypted, and there is no codec.
    """
    if not is_encrypted(value):
        return value
    if codec is None:
        raise CodecMissing
    return value_of(json.loads(codec.decode(bytes(value if isinstance(value, Binary) else value_of(value)))))


def decrypted_within(codec: PayloadCodec, document: Any) -> Any:  # noqa: ANN401 - any JSON
    """JSON in which all encrypted values, at any depth, are replaced by the JSON that they stand for."""
    if is_encrypted(document):
        found = decrypted(codec, document)
        return json_of_bytes(found) if isinstance(found, bytes) else found
    if isinstance(document, dict):
        return {name: decrypted_within(codec, each) for name, each in document.items()}
    if isinstance(document, list):
        return [decrypted_within(codec, each) for each in document]
    return document
