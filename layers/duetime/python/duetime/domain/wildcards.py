"""Patterns in settings, in which `*` stands for any characters and `?` for one character, as in IAM policies."""

from __future__ import annotations

import re
from functools import cache

ANY = "*"
"""The pattern that matches everything."""


@cache
def wildcard_matcher(pattern: str) -> re.Pattern[str]:
    """The regular expression for a pattern."""
    return re.compile(translated(pattern))


def translated(pattern: str, any_character: str = ".") -> str:
    """The text of the regular expression for a pattern.

    Args:
        pattern: the pattern.
        any_character: regular expression for `?`.
    """
    wild = {"*": f"{any_character}*", "?": any_character}
    return "".join(wild.get(character) or re.escape(character) for character in pattern)
