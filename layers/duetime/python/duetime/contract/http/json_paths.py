"""Paths in a request's JSON: `payload.a[3]`, `tasks[7].payload.x`."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BODY = "body"
"""Path of the whole body."""
_LONGEST_KEY = 64


def joined(path: str, part: str | int) -> str:
    """Extends a path by one step; the empty path is the body."""
    if isinstance(part, int):
        return f"{path or BODY}[{part}]"
    return f"{path}.{shown(part)}" if path else shown(part)


def path_of(parts: Iterable[str | int]) -> str:
    """The path with the given steps."""
    return reduce(joined, parts, "") or BODY


def shown(key: str) -> str:
    """A client's key in printable form, truncated if it is long, and visible if it is empty."""
    cut = key[:_LONGEST_KEY]
    printable = cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")
    return f"{printable}…" if len(key) > _LONGEST_KEY else printable or '""'
