"""Error messages for bad options, in plain words."""

from __future__ import annotations

import re

_PLAIN = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be a valid integer\b.*"), "should be a whole number"),
    (re.compile(r"^Input should be a valid number\b.*"), "should be a number"),
    (re.compile(r"^Input should "), "should "),
)


def plain(message: str) -> str:
    """The message of a bad option in plain words: typer reads options with pydantic and quotes its errors."""
    for pattern, words in _PLAIN:
        message = pattern.sub(words, message)
    return message
