"""Describes a cron expression in words, from its parsed values."""

from __future__ import annotations

from calendar import day_name, month_name
from typing import TYPE_CHECKING

from duetime.domain.schedules.cron import LAST_OF_MONTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime.domain.schedules.cron import Cron

_MAX_PARTS = 6
"""Lists of values and ranges that are longer than this are described by their step, if they have a step."""
_MAX_TIMES = 4
"""If there are more times of day than this, hours and minutes are described separately."""
_RANGE = 3
"""Minimum number of consecutive values that are written as a range."""
_MINUTES = _SECONDS = 60
_HOURS = 24
_DAYS = 31
_MONTHS = 12
_WEEKDAYS = 7
_TIMES = ("first", "second", "third", "fourth", "fifth")


def describe_cron(cron: Cron) -> str:
    """Describes when an expression runs, such as `at 02:30 on Monday to Friday`."""
    time, days = _time_of_day(cron), _days(cron)
    months = "" if len(cron.months) == _MONTHS else f"in {_listed(cron.months, lambda month: month_name[month])}"
    years = f"in {_stepped(cron.years, 'year') or _listed(cron.years, str)}" if cron.years else ""
    if not days and cron.times_a_day <= _MAX_TIMES:
        days = "every day"
    if ", or " in days and (months or years):
        # The months apply both to days of the month and to weekdays.
        days = f"{days.replace(', or ', ' or ')},"
    return " ".join(part for part in (time, days, months, years) if part)


def weekdays_in_words(cron: Cron) -> str:
    """Describes the days by weekday, such as `on the last Friday of the month`; empty for every day."""
    return _by_weekday(cron)


def _time_of_day(cron: Cron) -> str:
    """Describes the times of a day."""
    hours, minutes, seconds = cron.hours, cron.minutes, cron.seconds
    if cron.times_a_day <= _MAX_TIMES:
        shown = [
            f"{hour:02d}:{minute:02d}" + (f":{second:02d}" if seconds != (0,) else "")
            for hour in hours
            for minute in minutes
            for second in seconds
        ]
        return f"at {_joined(shown)}"
    if len(seconds) > 1:
        every = _every(seconds, "second", _SECONDS)
        if len(minutes) < _MINUTES:
            every = f"{every.removesuffix(' of every minute')} of {_numbered(minutes, 'minute')}"
        return " ".join(part for part in (every, _within(hours)) if part)
    at_second = "" if seconds == (0,) else f"at second {seconds[0]}"
    every = _every(minutes, "minute", _MINUTES)
    if len(minutes) > 1:
        return " ".join(part for part in (every, at_second, _within(hours)) if part)
    return " ".join(part for part in (_hourly(hours, minutes[0]), at_second) if part)


def _hourly(hours: Sequence[int], minute: int) -> str:
    """Describes one run per hour in the given hours."""
    at = f"at minute {minute}"
    if (step := _step(hours, _HOURS)) is not None:
        each = "every hour" if step == 1 else f"every {step} hours"
        begins = f" from {hours[0]:02d}:{minute:02d}" if hours[0] else f" {at}" if minute else ""
        return f"{each}{begins}"
    return f"{at} of every hour {_within(hours)}"


def _every(values: Sequence[int], unit: str, size: int) -> str:
    """Describes values as a step such as `every 5 minutes`, or lists the values."""
    step = _step(values, size)
    if step is None:
        return f"at {_numbered(values, unit)} of every {'hour' if unit == 'minute' else 'minute'}"
    each = f"every {unit}" if step == 1 else f"every {step} {unit}s"
    return f"{each} from {unit} {values[0]}" if values[0] else each


def _within(hours: Sequence[int]) -> str:
    """Describes the hours in which something repeats; empty for every hour."""
    if len(hours) == _HOURS:
        return ""
    if (step := _step(hours, _HOURS)) is not None and len(hours) > _RANGE:
        return f"in every {_ordinal(step)} hour" + (f" from {hours[0]:02d}:00" if hours[0] else "")
    spans = [
        f"from {first:02d}:00 to {last:02d}:59" if first != last else f"from {first:02d}:00 to {first:02d}:59"
        for first, last in _ranges(hours, 1)
    ]
    return _joined(spans) if len(spans) <= _MAX_PARTS else f"in {_numbered(hours, 'hour')}"


def _days(cron: Cron) -> str:
    """Describes the days; empty for every day."""
    date, weekday = _by_date(cron), _by_weekday(cron)
    if cron.either_day:
        # A match of either field is enough, so if one field matches every day, every day matches.
        return f"{date}, or {weekday}" if date and weekday else ""
    return f"{date} if that day is {weekday.removeprefix('on ')}" if date and weekday else date or weekday


def _by_date(cron: Cron) -> str:
    if len(cron.days) == _DAYS:
        return ""
    parts = []
    if cron.days:
        step = _step(cron.days, _DAYS, start=1)
        if step is not None and len(cron.days) > _MAX_PARTS:
            parts.append(f"every {_ordinal(step)} day from day {cron.days[0]}")
        else:
            parts.append(_numbered(cron.days, "day"))
    parts.extend(_from_end(before) for before in cron.from_end)
    parts.extend(f"the working day nearest to day {day}" for day in cron.nearest)
    # The weekday nearest to the last day is earlier, because it stays within the month.
    parts.extend(
        f"the working day nearest to {_from_end(before)}" if before else "the last working day"
        for before in cron.nearest_from_end
    )
    return f"on {_joined(parts)} of the month"


def _from_end(before: int) -> str:
    if not before:
        return "the last day"
    return "the day before the last day" if before == 1 else f"the day {before} days before the last day"


def _by_weekday(cron: Cron) -> str:
    if len(cron.weekdays) == _WEEKDAYS:
        return ""
    # Only one of the two lists has values, because the parser rejects expressions that have both.
    if cron.weekdays:
        return f"on {_listed(cron.weekdays, lambda day: day_name[day])}"
    return f"on {_joined([_of_the_month(day, which) for day, which in cron.nth])} of the month"


def _of_the_month(weekday: int, which: int) -> str:
    return f"the {'last' if which == LAST_OF_MONTH else _TIMES[which - 1]} {day_name[weekday]}"


def _step(values: Sequence[int], size: int, start: int = 0) -> int | None:
    """The constant step between values if they start below the step and continue to the end of the field's range."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no step
        return None
    step = values[1] - values[0]
    whole = range(values[0], size + start, step)
    # A step that does not divide the field's range restarts at the range's end, so `*/25` does not mean every 25
    # minutes.
    is_even = size % step == 0 or start
    return step if is_even and values[0] - start < step and tuple(values) == tuple(whole) else None


def _numbered(values: Sequence[int], unit: str) -> str:
    """Describes values such as `minute 5`, `minutes 5 and 10 to 20` or `every 7th minute from minute 0 to 56`."""
    if len(values) == 1:
        return f"{unit} {values[0]}"
    if (stepped := _stepped(values, unit)) is not None:
        return stepped
    return f"{unit}s {_listed(values, str)}"


def _stepped(values: Sequence[int], unit: str) -> str | None:
    """Describes many values at constant distances; `None` for any other values."""
    step = values[1] - values[0] if len(values) > 1 else 1
    if step == 1 or len(values) <= _MAX_PARTS or tuple(values) != tuple(range(values[0], values[-1] + 1, step)):
        return None
    return f"every {_ordinal(step)} {unit} from {unit} {values[0]} to {values[-1]}"


def _listed(values: Sequence[int], text: Callable[[int], str]) -> str:
    """Lists values and ranges."""
    return _joined(
        [text(first) if first == last else f"{text(first)} to {text(last)}" for first, last in _ranges(values)]
    )


def _ranges(values: Sequence[int], least: int = _RANGE) -> Iterator[tuple[int, int]]:
    """The first and last value of each run of consecutive values.

    Runs shorter than `least` are split into single values.
    """
    run: list[int] = []
    for value in [*values, None]:
        if run and value != run[-1] + 1:
            yield from [(run[0], run[-1])] if len(run) >= least else [(each, each) for each in run]
            run = []
        if value is not None:
            run.append(value)


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _ordinal(number: int) -> str:
    """An ordinal number, such as `second`, `12th` or `21st`."""
    endings = {1: "st", 2: "nd", 3: "rd"}  # codespell:ignore nd
    ending = "th" if number in {11, 12, 13} else endings.get(number % 10, "th")
    return {2: "second", 3: "third"}.get(number, f"{number}{ending}")
