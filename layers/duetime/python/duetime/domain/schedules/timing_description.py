"""Describes in words when a schedule runs, based on its timing. The time zone is shown separately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.schedules.cron import Cron
from duetime.domain.schedules.cron_description import describe_cron
from duetime.domain.schedules.time_zones import clock_text, day_of
from duetime.domain.schedules.timings import Dates, Interval, Rate, Several, parse_dates
from duetime.domain.times import HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.timings import Moment, Period, Permanent, Timing
    from duetime.domain.times import Millis

_SHOWN = 3
"""If a list has more dates than this, only the number of dates is shown."""
_YEAR, _WEEK = 12, 7


def describe_timing(timing: Timing, extra_dates: Sequence[str] = ()) -> str:
    """Describes when the occurrences of a timing are due."""
    if extra_dates:
        return f"{describe_timing(timing)}, and {_dates(parse_dates(extra_dates))}"
    match timing:
        case Several(timings):
            return "; ".join(map(describe_timing, timings))
        case Cron():
            return describe_cron(timing)
        case Rate():
            return f"every {_elapsed(timing.every)}"
        case Interval():
            return _interval(timing)
        case Dates():
            return _dates(timing)
        case _:
            return _permanent(timing)


def _interval(interval: Interval) -> str:
    begins = "" if interval.start is None else f" from {_moment(interval.start)}"
    ends = "" if interval.times is None else f", {_counted(interval.times, 'time')}"
    return f"every {_period(interval.period)}{begins}{ends}"


def _period(period: Period) -> str:
    if period.elapsed:
        return _elapsed(period.elapsed)
    years, months = divmod(period.months, _YEAR)
    weeks, days = (0, period.days) if period.days % _WEEK else (period.days // _WEEK, 0)
    return _amounts((years, "year"), (months, "month"), (weeks, "week"), (days, "day"))


def _elapsed(length: Millis) -> str:
    """Describes elapsed time; 24 hours are not called a day, because a calendar day can be longer or shorter."""
    return _amounts(
        (length // HOUR, "hour"), (length % HOUR // MINUTE, "minute"), (length % MINUTE // SECOND, "second")
    )


def _amounts(*amounts: tuple[int, str]) -> str:
    parts = [(number, unit) for number, unit in amounts if number]
    if len(parts) == 1 and parts[0][0] == 1:
        return parts[0][1]
    return " ".join(_counted(number, unit) for number, unit in parts)


def _dates(dates: Dates) -> str:
    shown = [_moment(each) for each in dates.moments]
    if len(shown) <= _SHOWN:
        return "at " + " and ".join(shown)
    return f"at {len(shown)} times, from {shown[0]} to {shown[-1]}"


def _permanent(permanent: Permanent) -> str:
    if not permanent.pause:
        return "again as soon as each run has ended"
    return f"again {_amounts_of(permanent.pause)} after the end of each run"


def _amounts_of(length: Millis) -> str:
    text = _elapsed(length)
    return text if text[0].isdigit() else f"1 {text}"


def _moment(moment: Moment) -> str:
    text = f"{day_of(moment.wall)} {clock_text(moment.wall)}"
    return text if moment.offset is None else f"{text} {_offset(moment.offset)}"


def _offset(offset: Millis) -> str:
    if not offset:
        return "UTC"
    hours, minutes = divmod(abs(offset) // MINUTE, 60)
    return f"UTC{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def _counted(number: int, unit: str) -> str:
    return f"1 {unit}" if number == 1 else f"{number} {unit}s"
