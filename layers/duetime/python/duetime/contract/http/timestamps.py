"""Parses instants in requests, which are RFC 3339 times with an offset."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from duetime.domain.times import LAST_INSTANT, MINUTE, SECOND, Millis, from_datetime

if TYPE_CHECKING:
    from pydantic import ValidationInfo

RANGE_REVERSED = "range_reversed"
"""The type of the pydantic error for a time range whose end is not after its start."""
_LONGEST = 64
_RFC_3339 = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt](?P<minute>[0-9]{2}:[0-9]{2}):(?P<second>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]+))?(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
# The common forms of times have no leap second, and no more precision than Python's `datetime`.
_USUAL = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")
_FIRST_INSTANT = from_datetime(datetime.min.replace(tzinfo=UTC))
_DATE, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
_OFFSET = "([Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_NEARLY = (
    # Source: the URL standard, application/x-www-form-urlencoded.
    (f"{_DATE}[Tt]{_TIME} [0-9]{{2}}:[0-9]{{2}}", "in a query a + means a space: write the + of its offset as %2B"),
    (_DATE, "it has no time of day"),
    (f"{_DATE} {_TIME}{_OFFSET}", "a T stands between date and time"),
    (f"{_DATE}[Tt ][0-9]{{2}}:[0-9]{{2}}{_OFFSET}", "it has no seconds"),
    (f"{_DATE}[Tt]{_TIME}[+-][0-9]{{4}}", "its offset needs a colon"),
    ("[0-9]+([.][0-9]+)?", "it is not a number of seconds"),
)
"""Patterns of common mistakes, with explanations; the patterns are compiled only when needed."""
_LEAP = 60
_LAST_MINUTE_OF_DAY = 23 * 60 + 59
_MINUTES_A_DAY = 24 * 60


def instant_of(text: object) -> Millis:
    """Parses an instant, and rounds it up to the millisecond so that nothing runs early.

    Raises:
        ValueError: the text is not RFC 3339 with an offset, or the time does not exist; the message gives the reason.
    """
    if isinstance(text, str) and _USUAL.fullmatch(text):
        return _representable(_existing(text))
    match = _RFC_3339.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(f"should be an RFC 3339 time such as 2026-12-01T09:00:00.250+09:00{_hint(text)}")
    if match["offset"] is None:
        raise ValueError("needs an offset from UTC, such as Z or +09:00")
    second = int(match["second"])
    at = _whole_seconds(match, _LEAP - 1 if second == _LEAP else second)
    if second == _LEAP:
        if at // MINUTE % _MINUTES_A_DAY != _LAST_MINUTE_OF_DAY:
            raise ValueError("has a leap second that does not end a day of UTC")
        at += SECOND
    return _representable(at + _milliseconds_up(match["fraction"] or "0"))


def ends_after(start: str) -> AfterValidator:
    """Rejects a time range whose end is not after its start, because such a range is empty.

    Args:
        start: name of the field with the start of the range; the model must declare this field before the end.
    """

    def check(end: Millis | None, info: ValidationInfo) -> Millis | None:
        begin: Any = info.data.get(start)
        if begin is not None and end is not None and end <= begin:
            raise PydanticCustomError(RANGE_REVERSED, "should be after {start}", {"start": start})
        return end

    return AfterValidator(check)


def _hint(text: object) -> str:
    """The probable mistake in a string that is not RFC 3339."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return ": it is not a number of seconds"
    if not isinstance(text, str) or len(text) > _LONGEST:
        return ""
    return next((f": {hint}" for pattern, hint in _NEARLY if re.fullmatch(pattern, text)), "")


def _whole_seconds(match: re.Match[str], second: int) -> Millis:
    return _existing(f"{match['date']}T{match['minute']}:{second:02d}{match['offset'].upper()}")


def _existing(text: str) -> Millis:
    try:
        return from_datetime(datetime.fromisoformat(text))
    except ValueError:
        raise ValueError("names a time that does not exist") from None


def _milliseconds_up(fraction: str) -> Millis:
    unit: int = 10 ** len(fraction)
    return -(-int(fraction) * SECOND // unit)


def _representable(at: Millis) -> Millis:
    if not _FIRST_INSTANT <= at <= LAST_INSTANT:
        raise ValueError("lies outside the years 1 to 9999 of UTC")
    return at
