"""What a client probably meant by a name that is not known. Imported when there is such a name, and not before."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from duetime.contract.http.foreign_names import meanings_of, plain_name

if TYPE_CHECKING:
    from collections.abc import Collection

_LIKENESS = 0.75
"""From this on two names are taken for the same one misspelt (Source: `difflib`, a ratio from 0 to 1)."""
_LONGEST = 64


def hint(name: str, known: Collection[str]) -> str:
    """What is said of a name that is not known, behind that: the name that was meant, or where its like is found."""
    if meant := _usual(name, known):
        return f"; did you mean {meant!r}?"
    if len(name) <= _LONGEST and (said := next((each.text for each in meanings_of(plain_name(name)) if each.text), "")):
        return f"; {said}"
    meant = suggestion(name, known)
    return f"; did you mean {meant!r}?" if meant else ""


def suggestion(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant, with a dot before a field of a field; nothing if none is near."""
    if len(name) > _LONGEST:
        return None
    return _usual(name, known) or next(iter(get_close_matches(plain_name(name), known, 1, _LIKENESS)), None)


def _usual(name: str, known: Collection[str]) -> str | None:
    """The known name of what is written otherwise, or has another name elsewhere."""
    if len(name) > _LONGEST:
        return None
    if (plain := plain_name(name)) in known:
        return plain
    fields = (field for each in meanings_of(plain) for field in each.fields)
    return next((field for field in fields if field.partition(".")[0] in known), None)
