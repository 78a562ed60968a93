"""Decrypts handler payloads, and encodes values as JSON, with the codec of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.domain.json_values import json_of
from duetime_common.payload_codecs import decrypted, json_of_bytes

if TYPE_CHECKING:
    from duetime_common.payload_codecs import PayloadCodec


_CODECS: list[PayloadCodec] = []
"""The latest codec; empty if there is none."""


def use_codec(codec: PayloadCodec | None) -> None:
    """Encrypt and decrypt all data that handlers receive, store and return; `None` turns encryption off.

    The codec is used for payloads, results, step results, checkpoints, progress messages, and error messages with
    tracebacks. Call this function when the handler package is imported. Unencrypted values are passed on unchanged.
    """
    _CODECS[:] = [] if codec is None else [codec]


def present_codec() -> PayloadCodec | None:
    """The codec, if one is set."""
    return _CODECS[0] if _CODECS else None


def readable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """A payload as a handler receives it.

    Raises:
        CodecMissing: The payload is encrypted, but there is no codec.
    """
    return decrypted(present_codec(), value)


def encoded(value: object) -> bytes:
    """Encode a value as JSON text in UTF-8. A dataclass, a pydantic model or bytes become an object.

    Raises:
        ValueRefused: the value cannot be stored.
    """
    if isinstance(value, bytes):
        value = json_of_bytes(value)
    if value is None or isinstance(value, str | int | float | bool | dict | list):
        return json_of(value)
    # The module is imported only for instances of classes.
    from duetime_common.payload_models import plain  # noqa: PLC0415 - see the line above

    return json_of(plain(value))
