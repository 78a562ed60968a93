"""Instants as requests write them: RFC 3339 with an offset."""

from __future__ import annotations

import re
from datetime import datetime

from duetime.domain.times import MINUTE, SECOND, Millis, from_datetime, to_iso

_LONGEST = 64
_RFC_3339 = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt](?P<minute>[0-9]{2}:[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]+))?(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_SPACE_FOR_PLUS = re.compile(r"[0-9T:.-]{16,32} [0-9]{2}:[0-9]{2}")
"""A `+` in a query means a space (Source: the URL standard, application/x-www-form-urlencoded)."""
_LEAP = 60
_LAST_MINUTE_OF_DAY = 23 * 60 + 59
_MINUTES_A_DAY = 24 * 60


def instant_of(text: object) -> Millis:
    """Read an instant; a part of a millisecond is rounded up, so that nothing runs early.

    Raises:
        ValueError: it is not RFC 3339 with an offset, or there is no such instant; says why.
    """
    match = _RFC_3339.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None and isinstance(text, str) and _SPACE_FOR_PLUS.fullmatch(text):
        raise ValueError("has a space where the + of its offset should be: in a query, write + as %2B")
    if match is None:
        raise ValueError("should be an RFC 3339 time such as 2026-12-01T09:00:00.250+09:00")
    if match["offset"] is None:
        raise ValueError("needs an offset from UTC, such as Z or +09:00")
    second = int(match["second"])
    at = _whole_seconds(match, _LEAP - 1 if second == _LEAP else second)
    if second == _LEAP:
        if at // MINUTE % _MINUTES_A_DAY != _LAST_MINUTE_OF_DAY:
            raise ValueError("has a leap second that does not end a day of UTC")
        at += SECOND
    return _representable(at + _milliseconds_up(match["fraction"] or "0"))


def _whole_seconds(match: re.Match[str], second: int) -> Millis:
    text = f"{match['date']}T{match['minute']}:{second:02d}{match['offset'].upper()}"
    try:
        return from_datetime(datetime.fromisoformat(text))
    except ValueError:
        raise ValueError("names a time that does not exist") from None


def _milliseconds_up(fraction: str) -> Millis:
    unit: int = 10 ** len(fraction)
    return -(-int(fraction) * SECOND // unit)


def _representable(at: Millis) -> Millis:
    try:
        to_iso(at)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999 of UTC") from None
    return at
