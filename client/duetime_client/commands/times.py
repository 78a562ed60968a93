"""Parsing and formatting of times and durations."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

SPAN_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
SPAN_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])")
SPAN = re.compile(rf"(?:{SPAN_PART.pattern})+")
MILLISECOND = 1_000
"""In microseconds."""
SHOWN_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def seconds_of_span(text: str) -> float:
    """The seconds of a duration such as `90`, `5m`, `1h30m` or `250ms`.

    Raises:
        ValueError: The text is not a duration.
    """
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return float(text)
    if not SPAN.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 90, 5m, 1h30m or 250ms")
    return sum(float(number) * SPAN_UNITS[unit] for number, unit in SPAN_PART.findall(text))


def moment_of(text: str) -> datetime:
    """The time of an ISO 8601 text, which may lack a zone.

    Raises:
        ValueError: The text is not an ISO 8601 time.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-12-01T09:00 or 2026-12-01T09:00:00Z") from None


def full_moment(local: datetime) -> str:
    """A time in its own zone, with milliseconds only if they are not zero."""
    precision = "milliseconds" if local.microsecond >= MILLISECOND else "seconds"
    return f"{local.replace(tzinfo=None).isoformat(' ', precision)} {local:%Z}".rstrip()


def short_moment(local: datetime, today: datetime) -> str:
    """Format a time without today's date or the current year."""
    if local.date() == today.date():
        return f"{local:%H:%M:%S}"
    return f"{local:%d %b %H:%M}" if local.year == today.year else f"{local:%d %b %Y}"


def distance(moment: datetime, now: datetime, units: int = 2) -> str:
    """How far away a time is, in the largest suitable units."""
    away = moment - now
    if abs(away) < timedelta(seconds=1):
        return "now"
    length = span(abs(away).total_seconds(), units)
    return f"in {length}" if away > timedelta() else f"{length} ago"


def span(seconds: float, units: int) -> str:
    """A duration rounded to its two largest units or, with `units=1`, to the largest unit that fits twice."""
    least = 2 if units == 1 else 1
    shown = ([(size, unit) for size, unit in SHOWN_UNITS if seconds >= least * size] or [SHOWN_UNITS[-1]])[:units]
    smallest = shown[-1][0]
    rounded = rest = int(seconds / smallest + 0.5) * smallest
    if rounded != seconds:
        # Rounding may carry into a larger unit: 59 min 59.6 s is 1 h.
        return span(rounded, units)
    parts = []
    for size, unit in shown:
        number, rest = divmod(rest, size)
        parts.append((number, unit))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)
