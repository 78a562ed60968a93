"""The codec of the handlers in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_common.payload_codecs import decrypted

if TYPE_CHECKING:
    from duetime_common.payload_codecs import PayloadCodec

_CODECS: list[PayloadCodec] = []
"""The codec that was set last; empty for none."""


def use_codec(codec: PayloadCodec | None) -> None:
    """Decrypt the payloads of all handlers with a codec, and encrypt their results; `None` for neither.

    Call it where the package of handlers is imported. Payloads that are not encrypted are passed on as they are.
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
