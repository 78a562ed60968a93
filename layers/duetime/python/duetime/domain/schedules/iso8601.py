"""Date-times and lengths of time as schedules write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_EXPRESSION_LENGTH, MAX_PERIOD_DAYS
from duetime.domain.schedules.time_zones import FIRST_YEAR, LAST_YEAR, Wall, wall_from
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis, from_datetime

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOMENT = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)"
    r"(?P<fraction>[.,][0-9]+)?(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_DURATION = re.compile(
    r"P(?:(?P<years>[0-9]{1,5})Y)?(?:(?P<months>[0-9]{1,5})M)?(?:(?P<weeks>[0-9]{1,5})W)?(?:(?P<days>[0-9]{1,5})D)?"
    r"(?P<time>T(?:(?P<hours>[0-9]{1,9})H)?(?:(?P<minutes>[0-9]{1,9})M)?(?:(?P<seconds>[0-9]{1,9})S)?)?"
)
_AMOUNT = re.compile(r"([0-9]{1,9}) ?([a-z]+)")
_AMOUNTS = re.compile(r"(?:[0-9]{1,9}[a-z]+)+")
_MONTH_DAYS = 28
UNITS: Mapping[str, Millis] = {
    **dict.fromkeys(("s", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), 7 * DAY),
}


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A date-time as it was written.

    Attributes:
        wall: what it says.
        offset: the offset from UTC that it names, or `None`: it is local time of the schedule's zone.
    """

    wall: Wall
    offset: Millis | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """The time from one occurrence to the next; either of calendar days or of elapsed time, never of both.

    Attributes:
        months: calendar months.
        days: calendar days.
        elapsed: time that has passed, whatever the clock shows.
    """

    months: int = 0
    days: int = 0
    elapsed: Millis = 0


def parse_moment(text: str, field: str) -> Moment:
    """Read `2026-12-01T09:00:00`, with an offset or without.

    Raises:
        FieldInvalid: it is none, or lies outside the years 1970 to 2199; names the field and says why.
    """
    found = _MOMENT.fullmatch(text) if len(text) <= MAX_EXPRESSION_LENGTH else None
    if found is None:
        raise FieldInvalid(
            field, "should be a date-time such as 2026-12-01T09:00:00, with or without an offset", FaultCode.PATTERN
        )
    if found["fraction"]:
        raise FieldInvalid(field, "should be in whole seconds")
    try:
        naive = datetime.fromisoformat(f"{found['date']}T{found['time']}")
        offset = _offset_of(found["offset"])
    except ValueError:
        raise FieldInvalid(field, "names a time that does not exist", FaultCode.OUT_OF_RANGE) from None
    if not FIRST_YEAR <= naive.year <= LAST_YEAR:
        raise FieldInvalid(field, f"should lie in the years {FIRST_YEAR} to {LAST_YEAR}", FaultCode.OUT_OF_RANGE)
    return Moment(wall_from(naive), offset)


def _offset_of(text: str | None) -> Millis | None:
    if text is None:
        return None
    epoch = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None).isoformat()
    return -from_datetime(datetime.fromisoformat(f"{epoch}{text.upper()}"))


def parse_duration(text: str, field: str) -> Period:
    """Read an ISO 8601 duration: `P1M`, `P2D`, `PT36H`.

    Raises:
        FieldInvalid: it is none, or mixes days of the calendar with elapsed time, which means two things where a
            clock jumps.
    """
    found = _DURATION.fullmatch(text)
    if found is None or text == "P" or found["time"] == "T":
        reason = "has a part that is no whole number" if re.search("[.,]", text) else "is no duration such as PT1H"
        raise FieldInvalid(field, reason)
    amount = {name: int(value or 0) for name, value in found.groupdict().items() if name != "time"}
    months = amount["years"] * 12 + amount["months"]
    days = amount["weeks"] * 7 + amount["days"]
    elapsed = amount["hours"] * HOUR + amount["minutes"] * MINUTE + amount["seconds"] * SECOND
    if elapsed and (months or days):
        raise FieldInvalid(
            field,
            "mixes calendar days with hours, which is two things when a clock is changed: "
            "write elapsed time (PT36H) or whole days (P2D)",
        )
    _check_length(months * _MONTH_DAYS * DAY + days * DAY + elapsed, field)
    return Period(months, days, elapsed)


def parse_length(text: str, field: str) -> Millis:
    """Read `5 minutes`, `1 hour`, `90s` or `4h30m`: elapsed time; a day is 24 hours.

    Raises:
        FieldInvalid: it is none, or shorter than a second, or longer than ten years.
    """
    lowered = text.strip().lower()
    if single := _AMOUNT.fullmatch(lowered):
        length = int(single[1]) * _unit(single[2], field)
    elif len(lowered) <= MAX_EXPRESSION_LENGTH and _AMOUNTS.fullmatch(lowered):
        length = sum(int(number) * _unit(unit, field) for number, unit in _AMOUNT.findall(lowered))
    else:
        raise FieldInvalid(field, "should be a whole number and a unit, such as 5 minutes", FaultCode.PATTERN)
    _check_length(length, field)
    return length


def _unit(name: str, field: str) -> Millis:
    if name in {"ms", "millisecond", "milliseconds"}:
        raise FieldInvalid(field, "should be in whole seconds")
    if name in {"month", "months", "year", "years"}:
        raise FieldInvalid(
            field, "has no fixed length in months or years; use interval, such as R/P1M", FaultCode.NOT_ALLOWED
        )
    if name not in UNITS:
        raise FieldInvalid(
            field, "should have one of the units seconds, minutes, hours, days and weeks", FaultCode.PATTERN
        )
    return UNITS[name]


def _check_length(length: Millis, field: str) -> None:
    if length < SECOND:
        raise FieldInvalid(field, "should be at least a second", FaultCode.OUT_OF_RANGE)
    if length > MAX_PERIOD_DAYS * DAY:
        raise FieldInvalid(field, f"should be at most {MAX_PERIOD_DAYS} days", FaultCode.OUT_OF_RANGE)
