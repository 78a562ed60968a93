"""Suggestions for unknown names. This module is imported only when a request has an unknown name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from duetime_common.foreign_names import meanings_of, plain_name

if TYPE_CHECKING:
    from collections.abc import Collection

_LIKENESS = 0.75
"""Minimum similarity between a misspelled name and a known name (Source: `difflib`, a ratio from 0 to 1)."""
_LONGEST = 64


def hint(name: str, known: Collection[str]) -> str:
    """The hint for an unknown name, which says which name was probably meant or where to find the equivalent."""
    if meant := _usual(name, known):
        return f"; did you mean {meant!r}?"
    if len(name) <= _LONGEST and (said := next((each.text for each in meanings_of(plain_name(name)) if each.text), "")):
        return f"; {said}"
    meant = suggestion(name, known)
    return f"; did you mean {meant!r}?" if meant else ""


def suggestion(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant, with a dot for a nested field; `None` if no known name is similar."""
    if len(name) > _LONGEST:
        return None
    return _usual(name, known) or next(iter(get_close_matches(plain_name(name), known, 1, _LIKENESS)), None)


def _usual(name: str, known: Collection[str]) -> str | None:
    """The known name that a different spelling, or a name from another system, stands for."""
    if len(name) > _LONGEST:
        return None
    if (plain := plain_name(name)) in known:
        return plain
    fields = (field for each in meanings_of(plain) for field in each.fields)
    return next((field for field in fields if field.partition(".")[0] in known), None)
