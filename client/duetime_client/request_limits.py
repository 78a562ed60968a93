"""Limits of the API's requests and responses, and helpers that cut texts to them."""

from __future__ import annotations

MAX_BATCH = 100
"""Most tasks created, or ids requested, in one request."""
MAX_RESULT_BYTES = 262_144
"""Maximum size of a result's JSON, in bytes of UTF-8."""
MAX_CHECKPOINT_BYTES = 4_096
"""Maximum size of a checkpoint's JSON, in bytes of UTF-8."""
MAX_ERROR_TYPE_LENGTH = 64
"""Maximum length of an error's type, in characters."""
MAX_ERROR_MESSAGE_LENGTH = 256
"""Length in characters to which an error's message is cut."""
MAX_PROGRESS_MESSAGE_LENGTH = 64
"""Maximum length of a progress message, in characters."""
MAX_PAGE = 100
"""Most entries of a list on one page."""


def writable(text: str) -> str:
    r"""Text that can be encoded as UTF-8; lone surrogates are escaped in Python's notation, such as `\udce9`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def printable(text: str, length: int) -> str:
    """Text on one line, cut to a maximum length; unprintable characters are escaped in Python's notation."""
    cut = text[:length]
    return cut if cut.isprintable() else repr(cut)[1:-1][:length]


def error_document(kind: str, message: str) -> dict[str, str]:
    """An attempt's error in the API's format, whatever its text contains."""
    # One more than is stored, so that the API can see that the message was cut.
    cut = writable(message[: MAX_ERROR_MESSAGE_LENGTH + 1])
    return {"type": printable(kind, MAX_ERROR_TYPE_LENGTH) or "Error", "message": cut}
