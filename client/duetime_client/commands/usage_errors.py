"""Error messages for bad options, in plain words."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Typer names it in no public module.
    from typer._click.exceptions import NoSuchOption

_PLAIN = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be a valid integer\b.*"), "should be a whole number"),
    (re.compile(r"^Input should be a valid number\b.*"), "should be a number"),
    (re.compile(r"^Input should "), "should "),
)
_CHOICE = re.compile(r"^'([^']*)' is not one of (.*)\.$")


def plain(message: str) -> str:
    """The message of a bad option in plain words: typer reads options with pydantic and quotes its errors."""
    for pattern, words in _PLAIN:
        message = pattern.sub(words, message)
    return message + meant(message)


def meant(message: str) -> str:
    """What was meant by a value that is not one of those listed in a message."""
    found = _CHOICE.match(message)
    if found is None:
        return ""
    matches = get_close_matches(found[1], re.findall("'([^']*)'", found[2]), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def suggesting(error: NoSuchOption) -> str:
    """The message of an unknown option, with what was meant."""
    found = sorted(error.possibilities or ())
    return f"{error.message}." + (f" Did you mean {' or '.join(found)}?" if found else "")
