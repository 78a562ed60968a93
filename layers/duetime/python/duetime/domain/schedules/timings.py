"""Parses timings (five kinds, or a list of several timings) and excluded dates from the API's strings."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_DATES, MAX_EXPRESSION_LENGTH, MAX_PERIOD_DAYS
from duetime.domain.schedules.calendars import Span
from duetime.domain.schedules.cron import Cron
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.cron_parser import FIELD as CRON_FIELD
from duetime.domain.schedules.cron_parser import parse_cron
from duetime.domain.schedules.time_zones import FIRST_YEAR, LAST_YEAR, Wall, day_of, wall_from, wall_of
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis, from_datetime
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.schedules.time_zones import Zone

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
_CALLED = re.compile(r"\s*(?P<kind>cron|rate|at)\s*\((?P<inside>[^()]*)\)\s*", re.IGNORECASE)
_REPEATED = re.compile(r"R(?P<times>[0-9]{0,9})")
_NAMES = ("cron", "rate", "interval", "dates", "permanent")
SEVERAL = "timings"
_EXCLUDED = "excluded_dates"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@frozen(order=True)
class Moment:
    """A date-time as written.

    Attributes:
        wall: its wall time.
        offset: its UTC offset; `None` for local time in the schedule's zone.
    """

    wall: Wall
    offset: Millis | None = None


@frozen
class Period:
    """The time between occurrences, which is either calendar days or elapsed time, but not both.

    Attributes:
        months: calendar months.
        days: calendar days.
        elapsed: elapsed time, independent of the clock.
    """

    months: int = 0
    days: int = 0
    elapsed: Millis = 0


def parse_moment(text: str, field: str) -> Moment:
    """Parses `2026-12-01T09:00:00`, with or without an offset.

    Raises:
        FieldInvalid: the text is not a date-time in the years 1970 to 2199; the message names the field and the reason.
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
        raise FieldInvalid(field, f"should be in the years {FIRST_YEAR} to {LAST_YEAR}", FaultCode.OUT_OF_RANGE)
    return Moment(wall_from(naive), offset)


def _offset_of(text: str | None) -> Millis | None:
    if text is None:
        return None
    epoch = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None).isoformat()
    return -from_datetime(datetime.fromisoformat(f"{epoch}{text.upper()}"))


def parse_duration(text: str, field: str) -> Period:
    """Parses an ISO 8601 duration: `P1M`, `P2D`, `PT36H`.

    Raises:
        FieldInvalid: the duration is invalid, or mixes calendar days and elapsed time, which is ambiguous at clock
            changes.
    """
    found = _DURATION.fullmatch(text)
    if found is None or text == "P" or found["time"] == "T":
        reason = (
            "has a part that is not a whole number" if re.search("[.,]", text) else "is not a duration such as PT1H"
        )
        raise FieldInvalid(field, reason)
    amount = {name: int(value or 0) for name, value in found.groupdict().items() if name != "time"}
    months = amount["years"] * 12 + amount["months"]
    days = amount["weeks"] * 7 + amount["days"]
    elapsed = amount["hours"] * HOUR + amount["minutes"] * MINUTE + amount["seconds"] * SECOND
    if elapsed and (months or days):
        raise FieldInvalid(
            field,
            "mixes calendar days with hours, which is ambiguous when clocks change: "
            "write elapsed time (PT36H) or whole days (P2D)",
        )
    _check_length(months * _MONTH_DAYS * DAY + days * DAY + elapsed, field)
    return Period(months, days, elapsed)


def parse_length(text: str, field: str) -> Millis:
    """Parses `5 minutes`, `1 hour`, `90s` or `4h30m` as elapsed time; a day is 24 hours.

    Raises:
        FieldInvalid: the period is invalid, shorter than a second, or longer than ten years.
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


@frozen
class Rate:
    """Constant intervals of elapsed time from the schedule's start."""

    every: Millis


@frozen
class Interval:
    """An ISO 8601 repeating interval.

    Attributes:
        period: time between occurrences.
        start: the first occurrence; `None` for the schedule's start.
        times: number of occurrences; `None` for no end.
    """

    period: Period
    start: Moment | None = None
    times: int | None = None


@frozen
class Dates:
    """A sorted list of date-times without duplicates."""

    moments: tuple[Moment, ...]


@frozen
class Permanent:
    """A timing in which each run starts a given time after the previous run has ended."""

    pause: Millis


SingleTiming: TypeAlias = Cron | Rate | Interval | Dates | Permanent


@frozen
class Several:
    """Several timings whose occurrences are merged."""

    timings: tuple[SingleTiming, ...]


Timing: TypeAlias = SingleTiming | Several


def parse_timing(
    *,
    cron: str | None = None,
    rate: str | None = None,
    interval: str | None = None,
    dates: Sequence[str] | None = None,
    permanent: int | None = None,
    dialect: Dialect = Dialect.CRON,
) -> SingleTiming:
    """Parses the one timing field of a schedule.

    Args:
        cron: a cron expression; in the EventBridge dialect also `rate(...)` and `at(...)`.
        rate: `5 minutes`, `rate(5 minutes)` or `4h30m`.
        interval: `R5/2026-01-31T09:00:00/P1M`, `R/PT1H` or `PT1H`.
        dates: date-times, with an offset or in the schedule's zone.
        permanent: number of seconds between the end of a run and the start of the next run.
        dialect: the dialect of `cron`.

    Raises:
        FieldInvalid: there is not exactly one timing, or the timing is invalid; the message gives the reason.
    """
    given = [
        name for name, value in zip(_NAMES, (cron, rate, interval, dates, permanent), strict=True) if value is not None
    ]
    if len(given) != 1:
        field = given[1] if given else CRON_FIELD
        raise FieldInvalid(field, f"a schedule has exactly one of {', '.join(_NAMES)}", FaultCode.CONFLICT)
    if dialect is not Dialect.CRON and cron is None:
        raise FieldInvalid("dialect", "is allowed with cron only", FaultCode.CONFLICT)
    if cron is not None:
        return parse_eventbridge(cron) if dialect is Dialect.EVENTBRIDGE else parse_cron(cron, dialect)
    if rate is not None:
        return parse_rate(rate)
    if interval is not None:
        return parse_interval(interval)
    return parse_dates(dates) if dates is not None else parse_permanent(permanent or 0)


def parse_eventbridge(text: str) -> Cron | Rate | Dates:
    """Parses `cron(0 10 * * ? *)`, `rate(5 minutes)`, `at(2026-11-20T13:00:00)`, or the six fields alone.

    Raises:
        FieldInvalid: the text has none of these forms; the message gives the reason.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise FieldInvalid(CRON_FIELD, f"should have at most {MAX_EXPRESSION_LENGTH} characters", FaultCode.TOO_LONG)
    found = _CALLED.fullmatch(text)
    if found is None:
        return parse_cron(text, Dialect.EVENTBRIDGE)
    inside = found["inside"].strip()
    match found["kind"].lower():
        case "rate":
            return Rate(parse_length(inside, CRON_FIELD))
        case "at":
            moment = parse_moment(inside, CRON_FIELD)
            if moment.offset is not None:
                raise FieldInvalid(CRON_FIELD, "has an offset in at(...), whose time is local time of the timezone")
            return Dates((moment,))
        case _:
            return parse_cron(inside, Dialect.EVENTBRIDGE)


def parse_rate(text: str) -> Rate:
    """Parses `5 minutes`, `rate(5 minutes)` or `4h30m`.

    Raises:
        FieldInvalid: the rate is invalid; the message gives the reason.
    """
    _check_text(text, "rate")
    found = _CALLED.fullmatch(text)
    if found is not None and found["kind"].lower() != "rate":
        raise FieldInvalid("rate", "should be a rate such as 5 minutes", FaultCode.PATTERN)
    return Rate(parse_length(text if found is None else found["inside"], "rate"))


def parse_interval(text: str) -> Interval:
    """Parses an ISO 8601 repeating interval; without a start, it repeats from the schedule's start.

    Raises:
        FieldInvalid: the interval is invalid or ambiguous; the message gives the reason.
    """
    _check_text(text, "interval")
    parts = text.strip().upper().split("/")
    times = None
    if parts[0].startswith("R"):
        repeated = _REPEATED.fullmatch(parts.pop(0))
        if repeated is None:
            raise FieldInvalid("interval", "should begin with R, or R and the number of occurrences", FaultCode.PATTERN)
        times = int(repeated["times"]) if repeated["times"] else None
        if times == 0:
            raise FieldInvalid(
                "interval", "has R0, which some programs read as one run and some as none: leave it out, or write R1"
            )
    match parts:
        case [period] if period.startswith("P"):
            return Interval(parse_duration(period, "interval"), None, times)
        case [start, period] if period.startswith("P") and not start.startswith("P"):
            return Interval(parse_duration(period, "interval"), parse_moment(start, "interval"), times)
        case [_, _]:
            raise FieldInvalid(
                "interval",
                "should give its start and its period, such as R/2026-01-31T09:00:00Z/P1M",
                FaultCode.PATTERN,
            )
        case _:
            raise FieldInvalid(
                "interval", "should be an ISO 8601 interval such as R5/2026-01-31T09:00:00Z/P1M", FaultCode.PATTERN
            )


def parse_dates(texts: Sequence[str], field: str = "dates") -> Dates:
    """Parses a list of date-times; the error's field contains the index of the invalid date-time.

    Raises:
        FieldInvalid: the list is empty or too long, or an entry is invalid; the message gives the reason.
    """
    if not 1 <= len(texts) <= MAX_DATES:
        raise FieldInvalid(field, f"should have 1 to {MAX_DATES} date-times", FaultCode.OUT_OF_RANGE)
    moments = {parse_moment(text, f"{field}[{index}]") for index, text in enumerate(texts)}
    return Dates(tuple(sorted(moments, key=lambda each: (each.wall - (each.offset or 0), each.offset is None))))


def parse_permanent(seconds: int) -> Permanent:
    """Parses the wait between runs of a permanent schedule.

    Raises:
        FieldInvalid: the wait is negative or longer than ten years.
    """
    if not 0 <= seconds * SECOND <= MAX_PERIOD_DAYS * DAY:
        raise FieldInvalid(
            "permanent.gap_seconds", f"should be 0 to {MAX_PERIOD_DAYS * DAY // SECOND} seconds", FaultCode.OUT_OF_RANGE
        )
    return Permanent(seconds * SECOND)


def _check_text(text: str, field: str) -> None:
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise FieldInvalid(field, f"should have at most {MAX_EXPRESSION_LENGTH} characters", FaultCode.TOO_LONG)


@frozen
class ExcludedDates:
    """The excluded days and times.

    Attributes:
        days: entire days in the schedule's local time.
        walls: times in the schedule's local time; a time that the clock repeats is excluded both times.
        instants: times given with an offset.
    """

    days: frozenset[date]
    walls: frozenset[Wall]
    instants: frozenset[Millis]

    def covers(self, at: Millis, zone: Zone) -> bool:
        """Whether an instant is excluded."""
        wall = zone.wall_at(at)
        return at in self.instants or wall in self.walls or day_of(wall) in self.days

    def span_around(self, at: Millis, zone: Zone) -> Span | None:
        """An excluded period around an instant; `None` if the instant is not excluded."""
        day = day_of(zone.wall_at(at))
        if day in self.days:
            start, end = zone.instant_after_gap(wall_of(day)), zone.instant_after_gap(wall_of(day) + DAY)
            return Span(min(start, at), max(end, at + 1))
        return Span(at, at + 1) if self.covers(at, zone) else None


@lru_cache(maxsize=256)
def parse_excluded_dates(texts: tuple[str, ...]) -> ExcludedDates:
    """Parses days such as `2026-12-25`, and date-times with an offset or in the schedule's zone.

    Raises:
        FieldInvalid: an entry is neither a day nor a date-time; the error's field contains the entry's index.
    """
    days: set[date] = set()
    walls: set[Wall] = set()
    instants: set[Millis] = set()
    for index, text in enumerate(texts):
        field = f"{_EXCLUDED}[{index}]"
        if _DAY.fullmatch(text):
            days.add(_excluded_day(text, field))
            continue
        moment = parse_moment(text, field)
        if moment.offset is None:
            walls.add(moment.wall)
        else:
            instants.add(moment.wall - moment.offset)
    return ExcludedDates(frozenset(days), frozenset(walls), frozenset(instants))


def _excluded_day(text: str, field: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise FieldInvalid(field, "names a day that does not exist", FaultCode.OUT_OF_RANGE) from None
