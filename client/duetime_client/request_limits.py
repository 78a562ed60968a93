"""How much the API takes in one request, and gives in one response; and texts about attempts, made to fit."""

from __future__ import annotations

MAX_BATCH = 100
"""Tasks that a request creates, and ids that one asks for."""
MAX_RESULT_BYTES = 262_144
"""Size of a result's JSON, in bytes of UTF-8."""
MAX_CHECKPOINT_BYTES = 4_096
"""Size of the JSON of a checkpoint that a paused attempt leaves, in bytes of UTF-8."""
MAX_ERROR_TYPE_LENGTH = 64
"""Characters of the type of an error."""
MAX_ERROR_MESSAGE_LENGTH = 256
"""Characters of an error's message that are kept."""
MAX_PROGRESS_MESSAGE_LENGTH = 64
"""Characters of a message about progress."""
MAX_PAGE = 100
"""Entries of a list on a page."""


def writable(text: str) -> str:
    r"""A text that UTF-8 can write: a lone surrogate is escaped as Python writes it, such as `\udce9`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def printable(text: str, length: int) -> str:
    """A text of one line, of so many characters at most: what cannot be printed is escaped as Python writes it."""
    cut = text[:length]
    return cut if cut.isprintable() else repr(cut)[1:-1][:length]


def error_document(kind: str, message: str) -> dict[str, str]:
    """An error of an attempt as the API takes it, whatever it says."""
    # One more than is kept of the message, by which the API sees that it is cut.
    cut = writable(message[: MAX_ERROR_MESSAGE_LENGTH + 1])
    return {"type": printable(kind, MAX_ERROR_TYPE_LENGTH) or "Error", "message": cut}
