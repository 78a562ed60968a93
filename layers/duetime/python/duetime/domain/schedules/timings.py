"""When a schedule's work is due: one of five kinds of timing, or several, read from the texts of the API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_DATES, MAX_EXPRESSION_LENGTH, MAX_PERIOD_DAYS
from duetime.domain.schedules.cron import Cron
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.cron_fields import FIELD as CRON_FIELD
from duetime.domain.schedules.cron_parser import parse_cron
from duetime.domain.schedules.iso8601 import Moment, Period, parse_duration, parse_length, parse_moment
from duetime.domain.times import DAY, SECOND, Millis

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALLED = re.compile(r"\s*(?P<kind>cron|rate|at)\s*\((?P<inside>[^()]*)\)\s*", re.IGNORECASE)
_REPEATED = re.compile(r"R(?P<times>[0-9]{0,9})")
_NAMES = ("cron", "rate", "interval", "dates", "permanent")
SEVERAL = "timings"


@dataclass(frozen=True, slots=True)
class Rate:
    """Evenly, from the schedule's start on: elapsed time, whatever the clock shows."""

    every: Millis


@dataclass(frozen=True, slots=True)
class Interval:
    """An ISO 8601 repeating interval.

    Attributes:
        period: from one occurrence to the next.
        start: the first occurrence; `None` for the schedule's start.
        times: how many occurrences there are; `None` for no end.
    """

    period: Period
    start: Moment | None = None
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Dates:
    """A list of date-times, in order and without repeats."""

    moments: tuple[Moment, ...]


@dataclass(frozen=True, slots=True)
class Permanent:
    """Again and again: the next run comes a pause after the last one ended, and no clock says when."""

    pause: Millis


SingleTiming: TypeAlias = Cron | Rate | Interval | Dates | Permanent


@dataclass(frozen=True, slots=True)
class Several:
    """Timings of which each has its occurrences; what several of them mean is one."""

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
    """Read the one timing field that a schedule has.

    Args:
        cron: a cron expression; for the dialect of EventBridge also `rate(...)` and `at(...)`.
        rate: `5 minutes`, `rate(5 minutes)` or `4h30m`.
        interval: `R5/2026-01-31T09:00:00/P1M`, `R/PT1H` or `PT1H`.
        dates: date-times, with an offset or in the schedule's zone.
        permanent: seconds from the end of one run to the next.
        dialect: how `cron` is written.

    Raises:
        FieldInvalid: there is none or more than one, or it cannot be accepted; says why.
    """
    given = [
        name for name, value in zip(_NAMES, (cron, rate, interval, dates, permanent), strict=True) if value is not None
    ]
    if len(given) != 1:
        field = given[1] if given else CRON_FIELD
        raise FieldInvalid(field, f"a schedule has exactly one of {', '.join(_NAMES)}", FaultCode.CONFLICT)
    if dialect is not Dialect.CRON and cron is None:
        raise FieldInvalid("dialect", "goes with cron only", FaultCode.CONFLICT)
    if cron is not None:
        return parse_eventbridge(cron) if dialect is Dialect.EVENTBRIDGE else parse_cron(cron, dialect)
    if rate is not None:
        return parse_rate(rate)
    if interval is not None:
        return parse_interval(interval)
    return parse_dates(dates) if dates is not None else parse_permanent(permanent or 0)


def parse_eventbridge(text: str) -> Cron | Rate | Dates:
    """Read `cron(0 10 * * ? *)`, `rate(5 minutes)`, `at(2026-11-20T13:00:00)`, or the six fields alone.

    Raises:
        FieldInvalid: it is none of them; says why.
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
    """Read `5 minutes`, `rate(5 minutes)` or `4h30m`.

    Raises:
        FieldInvalid: it is none; says why.
    """
    _check_text(text, "rate")
    found = _CALLED.fullmatch(text)
    if found is not None and found["kind"].lower() != "rate":
        raise FieldInvalid("rate", "should be a rate such as 5 minutes", FaultCode.PATTERN)
    return Rate(parse_length(text if found is None else found["inside"], "rate"))


def parse_interval(text: str) -> Interval:
    """Read an ISO 8601 repeating interval; with neither `R` nor a start it repeats from the schedule's start.

    Raises:
        FieldInvalid: it is none, or may mean several things; says why.
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
            raise FieldInvalid("interval", "has R0, which some read as one run and some as none: leave it, or write R1")
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
    """Read a list of date-times; the error's field has the index of the one at fault.

    Raises:
        FieldInvalid: the list is empty or too long, or one is no date-time; says why.
    """
    if not 1 <= len(texts) <= MAX_DATES:
        raise FieldInvalid(field, f"should have 1 to {MAX_DATES} date-times", FaultCode.OUT_OF_RANGE)
    moments = {parse_moment(text, f"{field}[{index}]") for index, text in enumerate(texts)}
    return Dates(tuple(sorted(moments, key=lambda each: (each.wall - (each.offset or 0), each.offset is None))))


def parse_permanent(seconds: int) -> Permanent:
    """Read the pause of a permanent schedule.

    Raises:
        FieldInvalid: it is negative or longer than ten years.
    """
    if not 0 <= seconds * SECOND <= MAX_PERIOD_DAYS * DAY:
        raise FieldInvalid(
            "permanent.gap_seconds", f"should be 0 to {MAX_PERIOD_DAYS * DAY // SECOND} seconds", FaultCode.OUT_OF_RANGE
        )
    return Permanent(seconds * SECOND)


def _check_text(text: str, field: str) -> None:
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise FieldInvalid(field, f"should have at most {MAX_EXPRESSION_LENGTH} characters", FaultCode.TOO_LONG)
