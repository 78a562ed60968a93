"""Payloads and results of handlers: the codec of this process, and values as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.domain.json_values import json_of
from duetime_common.payload_codecs import decrypted, json_of_bytes

if TYPE_CHECKING:
    from duetime_common.payload_codecs import PayloadCodec


_CODECS: list[PayloadCodec] = []
"""The codec that was set last; empty for none."""


def use_codec(codec: PayloadCodec | None) -> None:
    """Encrypt and decrypt all data that handlers get, store and return with a codec; `None` for no encryption.

    These are payloads, results, results of steps, checkpoints, and messages of progress and errors with tracebacks.
    Call it where the package of handlers is imported. Values that are not encrypted are passed on as they are.
    """
    _CODECS[:] = [] if codec is None else [codec]


def present_codec() -> PayloadCodec | None:
    """The codec, if one is set."""
    return _CODECS[0] if _CODECS else None


def readable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """A payload as a handler gets it.

    Raises:
        CodecMissing: It is encrypted, and there is no codec.
    """
    return decrypted(present_codec(), value)


def encoded(value: object) -> bytes:
    """Encode a value as JSON text in UTF-8; a dataclass or pydantic model becomes an object, as do bytes.

    Raises:
        ValueRefused: it is not stored.
    """
    if isinstance(value, bytes):
        value = json_of_bytes(value)
    if value is None or isinstance(value, str | int | float | bool | dict | list):
        return json_of(value)
    # Imported only for values of a class.
    from duetime_common.payload_models import plain  # noqa: PLC0415 - see the line above

    return json_of(plain(value))
