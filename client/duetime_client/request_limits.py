"""Truncates strings to the API's request limits."""

from __future__ import annotations

from duetime_common.limits import MAX_ERROR_MESSAGE_LENGTH, MAX_ERROR_TYPE_LENGTH


def writable(text: str) -> str:
    r"""Text that can be encoded as UTF-8; lone surrogates are escaped in Python's notation, such as `\udce9`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def printable(text: str, length: int) -> str:
    """Text on one line, cut to a maximum length; unprintable characters are escaped in Python's notation."""
    cut = text[:length]
    return cut if cut.isprintable() else repr(cut)[1:-1][:length]


def error_document(kind: str, message: str) -> dict[str, str]:
    """An attempt's error in the API's format; the error's text can contain any characters."""
    # One more character than the API stores, so that the API detects the truncated message.
    cut = writable(message[: MAX_ERROR_MESSAGE_LENGTH + 1])
    return {"type": printable(kind, MAX_ERROR_TYPE_LENGTH) or "Error", "message": cut}
