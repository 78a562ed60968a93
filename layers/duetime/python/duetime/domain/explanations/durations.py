"""Lengths of time in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from duetime.domain.times import Millis

_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def span(length: Millis) -> str:
    """A length in its two largest units: `2 h 5 min`, `42 s`, `350 ms`; rounded down."""
    if length < SECOND:
        return f"{length} ms"
    parts = []
    for size, unit in _UNITS:
        number, length = divmod(length, size)
        parts.append((number, unit))
    first = next(index for index, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number)
