"""Lengths of time in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from duetime.domain.times import Millis

_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def span(length: Millis) -> str:
    """A length in its two largest units, rounded to the nearest: `2 h 5 min`, `42 s`, `350 ms`."""
    if length < SECOND:
        return f"{length} ms"
    largest = next(index for index, (size, _) in enumerate(_UNITS) if length >= size)
    shown = _UNITS[largest : largest + 2]
    smallest = shown[-1][0]
    rounded = rest = (length + smallest // 2) // smallest * smallest
    if rounded != length:
        # Rounding may have reached a larger unit: 59 min 59.6 s is 1 h.
        return span(rounded)
    parts = []
    for size, unit in shown:
        number, rest = divmod(rest, size)
        parts.append(f"{number} {unit}" if number else "")
    return " ".join(part for part in parts if part)
