"""Represents binary payloads in JSON, and defines codecs, which encrypt data before the data leaves the user's process.

Bytes with a content type are `{"$binary": {"base64": "…", "content_type": "…"}}`. An encrypted value is such a payload
with the content type `ENCRYPTED`, whose bytes are the encrypted JSON text. An encrypted text, such as an error message,
is `$encrypted:` followed by the base64 of the text's encrypted JSON. duetime stores and passes on encrypted values and
texts, but cannot read them.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Protocol, Self

from duetime_common.limits import MAX_ENCRYPTED_TEXT_LENGTH

BINARY = "$binary"
"""Name of the only field in a JSON object that represents bytes."""
BASE64, CONTENT_TYPE = "base64", "content_type"
OCTET_STREAM = "application/octet-stream"
CONTENT_TYPE_PATTERN = r"^[a-zA-Z0-9_.+-]+/[a-zA-Z0-9_.+-]+( ?; ?[a-zA-Z0-9_-]+=[a-zA-Z0-9_.:+-]+)*$"
MAX_CONTENT_TYPE_LENGTH = 128
_START = f'{{"{BINARY}":'.encode()


class Binary(bytes):
    """A binary payload: bytes with a content type.

    Attributes:
        content_type: content type, such as `image/png`.
    """

    content_type: str

    def __new__(cls, data: bytes, content_type: str = OCTET_STREAM) -> Self:
        """Bytes with a content type."""
        made = super().__new__(cls, data)
        made.content_type = content_type
        return made

    def __getnewargs__(self) -> tuple[bytes, str]:  # type: ignore[override]  # `bytes` takes one argument less
        """The constructor arguments for copying and unpickling."""
        return bytes(self), self.content_type


def json_of_bytes(data: bytes) -> dict[str, dict[str, str]]:
    """Bytes as JSON, with the content type of a `Binary` or, for plain bytes, `application/octet-stream`."""
    content_type = data.content_type if isinstance(data, Binary) else OCTET_STREAM
    return {BINARY: {BASE64: base64.b64encode(data).decode(), CONTENT_TYPE: content_type}}


def value_of(payload: Any) -> Any:  # noqa: ANN401 - any JSON
    """A payload as handlers receive it: JSON that represents bytes becomes bytes, and all other JSON is unchanged."""
    match payload:
        case {"$binary": {"base64": str(text), "content_type": str(content_type)}} if len(payload) == 1:
            try:
                return Binary(base64.b64decode(text, validate=True), content_type)
            except binascii.Error:
                # This payload was not in a creation request, because creations validate base64.
                return payload
    return payload


def value_in(payload: bytes) -> Any:  # noqa: ANN401 - any JSON
    """A stored payload as handlers receive it.

    Args:
        payload: JSON text in UTF-8 without spaces.
    """
    value = json.loads(payload)
    return value_of(value) if payload.startswith(_START) else value


def binary_in(payload: bytes) -> Binary | None:
    """The bytes that a stored payload represents; `None` if the payload does not represent bytes."""
    if not payload.startswith(_START):
        return None
    value = value_in(payload)
    return value if isinstance(value, Binary) else None


ENCRYPTED = "application/vnd.duetime.encrypted"
"""Content type of encrypted values."""
ENCRYPTED_TEXT = "$encrypted:"
"""Prefix of an encrypted string."""
_TEXTS = re.compile(re.escape(ENCRYPTED_TEXT) + r"([A-Za-z0-9+/]+={0,2})")
_CUT = "[cut]"
_NOT_ENCRYPTED = "the text could not be encrypted"


class PayloadCodec(Protocol):
    """Encrypts and decrypts bytes, like `cryptography.fernet.Fernet`, whose methods have other names."""

    def encode(self, data: bytes, /) -> bytes:
        """Encrypt bytes."""
        ...

    def decode(self, data: bytes, /) -> bytes:
        """Decrypt bytes that `encode` returned."""
        ...


class CodecMissing(ValueError):
    """A value is encrypted, but the process has no codec to decrypt it."""

    def __init__(self) -> None:
        super().__init__("the task's payload, checkpoint or step is encrypted, and no codec is set to decrypt it")


def is_encrypted(value: object) -> bool:
    """Whether a value, as JSON or as bytes, is encrypted."""
    found = value if isinstance(value, Binary) else value_of(value)
    return isinstance(found, Binary) and found.content_type == ENCRYPTED


def encrypted(codec: PayloadCodec, value: object) -> Binary:
    """Encrypt a value, which is JSON or bytes.

    Raises:
        TypeError, ValueError: The value is not JSON.
    """
    plain = json_of_bytes(value) if isinstance(value, bytes) else value
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Binary(codec.encode(text.encode()), ENCRYPTED)


def decrypted(codec: PayloadCodec | None, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Decrypt a value. An unencrypted value is returned unchanged.

    Raises:
        CodecMissing: The value is encrypted, but there is no codec.
    """
    if not is_encrypted(value):
        return value
    if codec is None:
        raise CodecMissing
    return value_of(json.loads(codec.decode(bytes(value if isinstance(value, Binary) else value_of(value)))))


def encrypted_json(codec: PayloadCodec | None, data: bytes) -> bytes:
    """Encrypt a value's JSON text; `null` is unchanged, and so is any text if there is no codec."""
    if codec is None or data == b"null":
        return data
    return json.dumps(json_of_bytes(Binary(codec.encode(data), ENCRYPTED)), separators=(",", ":")).encode()


def decrypted_json(codec: PayloadCodec | None, data: bytes) -> bytes:
    """Decrypt a stored value's JSON text. An unencrypted value is returned unchanged.

    Raises:
        CodecMissing: The value is encrypted, and there is no codec.
    """
    found = binary_in(data)
    if found is None or found.content_type != ENCRYPTED:
        return data
    if codec is None:
        raise CodecMissing
    return codec.decode(bytes(found))


def is_encrypted_text(text: str) -> bool:
    """Whether a string is encrypted."""
    return text.startswith(ENCRYPTED_TEXT)


def encrypted_text(
    codec: PayloadCodec | None, text: str, most: int = MAX_ENCRYPTED_TEXT_LENGTH, *, keeps_end: bool = False
) -> str:
    """Encrypt a string; an empty string is unchanged, and so is any string without a codec. This function never raises.

    Args:
        codec: the codec; `None` for none.
        text: the string.
        most: maximum length of the encrypted string in characters; longer strings are truncated before encryption.
        keeps_end: whether truncation keeps the end of the string instead of its beginning.
    """
    if codec is None or not text:
        return text
    length = len(text)
    while length:
        part = text if length == len(text) else f"{_CUT} {text[-length:]}" if keeps_end else f"{text[:length]} {_CUT}"
        try:
            data = codec.encode(json.dumps(part, ensure_ascii=False).encode("utf-8", "backslashreplace"))
        except Exception:  # noqa: BLE001 - a codec may raise any error, and the string must not be stored unencrypted
            break
        found = ENCRYPTED_TEXT + base64.b64encode(data).decode()
        if len(found) <= most:
            return found
        length = min(length, most) * 3 // 4
    return _NOT_ENCRYPTED


def decrypted_text(codec: PayloadCodec, text: str) -> str:
    """Decrypt all encrypted parts of a string, except parts that were encrypted with another key."""

    def plain(found: re.Match[str]) -> str:
        try:
            return str(json.loads(codec.decode(base64.b64decode(found[1], validate=True))))
        except Exception:  # noqa: BLE001 - a codec may raise any error, and the rest of the response is readable
            return found[0]

    return _TEXTS.sub(plain, text) if ENCRYPTED_TEXT in text else text


def hidden_text(text: str) -> str:
    """The string shown to people without the codec, with `[encrypted]` in place of each encrypted part."""
    return _TEXTS.sub("[encrypted]", text)


def decrypted_within(codec: PayloadCodec, document: Any) -> Any:  # noqa: ANN401 - any JSON
    """Decrypt all encrypted values and strings in JSON, at any depth."""
    if is_encrypted(document):
        found = decrypted(codec, document)
        return json_of_bytes(found) if isinstance(found, bytes) else found
    if isinstance(document, str):
        return decrypted_text(codec, document)
    if isinstance(document, dict):
        return {name: decrypted_within(codec, each) for name, each in document.items()}
    if isinstance(document, list):
        return [decrypted_within(codec, each) for each in document]
    return document
