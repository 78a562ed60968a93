"""How a place in a request's JSON is named: `payload.a[3]`, `tasks[7].payload.x`."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BODY = "body"
"""What the whole body is called."""
_LONGEST_KEY = 64


def joined(path: str, part: str | int) -> str:
    """The name of a place one step below a place; the empty path is the body itself."""
    if isinstance(part, int):
        return f"{path or BODY}[{part}]"
    return f"{path}.{shown(part)}" if path else shown(part)


def path_of(parts: Iterable[str | int]) -> str:
    """The name of a place, given the steps that lead to it."""
    return reduce(joined, parts, "") or BODY


def shown(key: str) -> str:
    """A client's key in a form that is safe to print, cut if it is long, and visible if it is empty."""
    cut = key[:_LONGEST_KEY]
    printable = cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")
    return f"{printable}…" if len(key) > _LONGEST_KEY else printable or '""'
