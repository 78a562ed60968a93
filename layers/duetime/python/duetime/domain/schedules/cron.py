"""Represents a cron expression as sets of values, and computes its wall times without enumerating minutes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from dataclasses import field
from datetime import date
from typing import TYPE_CHECKING

from duetime.domain.schedules.time_zones import LAST_YEAR, Wall, day_of, wall_of
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

LAST_OF_MONTH = 0
"""Index that means the last occurrence of a weekday in a month; other indexes are 1 to 5."""
_WEEK = 7
_SATURDAY = 5


@frozen
class Cron:
    """The wall times of a cron expression.

    Attributes:
        text: the original expression.
        seconds: 0 to 59; sorted, as are all other sets.
        minutes: 0 to 59.
        hours: 0 to 23.
        days: days of the month, 1 to 31.
        months: 1 to 12.
        weekdays: 0 for Monday to 6 for Sunday.
        from_end: additional days, counted backward from the last day of the month, which is 0.
        nearest: days of the month; for each of them, the nearest weekday (Monday to Friday) in the same month matches.
        nearest_from_end: like `nearest`, for days counted from the last day of the month.
        nth: pairs of a weekday and its index in the month: 1 to 5, or `LAST_OF_MONTH`.
        either_day: whether a match by date or by weekday is enough; depends on the dialect (`cron_dialects`).
        years: the matching years; empty for all.
        follows_clock: whether the hour field is a wildcard that matches several hours, so that an hour that the clock
            repeats counts twice.
    """

    text: str = field(compare=False)
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    from_end: tuple[int, ...]
    nearest: tuple[int, ...]
    nearest_from_end: tuple[int, ...]
    nth: tuple[tuple[int, int], ...]
    either_day: bool
    years: tuple[int, ...]
    follows_clock: bool
    _known: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def times_a_day(self) -> int:
        """Number of matching times per day."""
        return len(self.seconds) * len(self.minutes) * len(self.hours)

    def next(self, at: Wall) -> Wall | None:
        """The first matching wall time from `at` on."""
        day = day_of(at)
        if self._has(day):
            time_of_day = self._time_from(at % DAY)
            if time_of_day is not None:
                return at - at % DAY + time_of_day
        following = next(self._days_after(day), None)
        return None if following is None else wall_of(following, self._first_time())

    def previous(self, at: Wall) -> Wall | None:
        """The last matching wall time up to and including `at`."""
        day = day_of(at)
        if self._has(day):
            time_of_day = self._time_until(at % DAY)
            if time_of_day is not None:
                return at - at % DAY + time_of_day
        preceding = next(self._days_before(day), None)
        return None if preceding is None else wall_of(preceding, self._last_time())

    def count(self, start: Wall, end: Wall) -> int:
        """Number of matching wall times in [start, end)."""
        if end <= start:
            return 0
        first, last = day_of(start), day_of(end)
        whole = self._days_between(first, last) * self.times_a_day
        before = self._times_before(start % DAY) if self._has(first) else 0
        within = self._times_before(end % DAY) if self._has(last) else 0
        return whole - before + within

    def ever_fires(self) -> bool:
        """Whether any day matches within 400 years, the period after which the calendar repeats."""
        years = self.years or range(2000, 2400)
        return any(self._days_of(year, month) for year in years for month in self.months)

    def _has(self, day: date) -> bool:
        return day.day in self._days_of(day.year, day.month)

    def _days_of(self, year: int, month: int) -> tuple[int, ...]:
        if month not in self.months or (self.years and year not in self.years):
            return ()
        # A month is determined by its first weekday and its length, so there are only 28 different months.
        shape = monthrange(year, month)
        days = self._known.get(shape)
        if days is None:
            first_weekday, length = shape
            days = tuple(day for day in range(1, length + 1) if _means(self, day, first_weekday, length))
            self._known[shape] = days
        return days

    def _days_after(self, day: date) -> Iterator[date]:
        found = self._days_of(day.year, day.month)
        for each in found[bisect_right(found, day.day) :]:
            yield day.replace(day=each)
        for year, month in self._months_after(day):
            for each in self._days_of(year, month):
                yield date(year, month, each)

    def _days_before(self, day: date) -> Iterator[date]:
        found = self._days_of(day.year, day.month)
        for each in reversed(found[: bisect_left(found, day.day)]):
            yield day.replace(day=each)
        for year, month in self._months_before(day):
            for each in reversed(self._days_of(year, month)):
                yield date(year, month, each)

    def _months_after(self, day: date) -> Iterator[tuple[int, int]]:
        last = self.years[-1] if self.years else LAST_YEAR
        for month in self.months[bisect_right(self.months, day.month) :]:
            yield day.year, month
        for year in range(max(day.year + 1, self.years[0] if self.years else 0), last + 1):
            for month in self.months:
                yield year, month

    def _months_before(self, day: date) -> Iterator[tuple[int, int]]:
        first = self.years[0] if self.years else 1969
        for month in reversed(self.months[: bisect_left(self.months, day.month)]):
            yield day.year, month
        for year in range(min(day.year - 1, self.years[-1] if self.years else day.year), first - 1, -1):
            for month in reversed(self.months):
                yield year, month

    def _days_between(self, first: date, last: date) -> int:
        """Number of matching days from `first` on and before `last`."""

        def before(day: date) -> int:
            return bisect_left(self._days_of(day.year, day.month), day.day)

        months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month - 1)
        return sum(len(self._days_of(n // 12, n % 12 + 1)) for n in months) - before(first) + before(last)

    def _first_time(self) -> Millis:
        return self.hours[0] * HOUR + self.minutes[0] * MINUTE + self.seconds[0] * SECOND

    def _last_time(self) -> Millis:
        return self.hours[-1] * HOUR + self.minutes[-1] * MINUTE + self.seconds[-1] * SECOND

    def _time_from(self, at: Millis) -> Millis | None:
        """The first matching time of day from `at` on."""
        second = -(-at // SECOND)
        return self._up(second // 3600, second // 60 % 60, second % 60)

    def _up(self, hour: int, minute: int, second: int) -> Millis | None:
        if hour in self.hours:
            if minute in self.minutes and second <= self.seconds[-1]:
                second = self.seconds[bisect_left(self.seconds, second)]
                return hour * HOUR + minute * MINUTE + second * SECOND
            if minute < self.minutes[-1]:
                minute = self.minutes[bisect_right(self.minutes, minute)]
                return hour * HOUR + minute * MINUTE + self.seconds[0] * SECOND
        index = bisect_right(self.hours, hour)
        if index == len(self.hours):
            return None
        return self.hours[index] * HOUR + self.minutes[0] * MINUTE + self.seconds[0] * SECOND

    def _time_until(self, at: Millis) -> Millis | None:
        """The last matching time of day up to and including `at`."""
        total = at // SECOND
        hour, minute, second = total // 3600, total // 60 % 60, total % 60
        if hour in self.hours:
            if minute in self.minutes and second >= self.seconds[0]:
                second = self.seconds[bisect_right(self.seconds, second) - 1]
                return hour * HOUR + minute * MINUTE + second * SECOND
            if minute > self.minutes[0]:
                minute = self.minutes[bisect_left(self.minutes, minute) - 1]
                return hour * HOUR + minute * MINUTE + self.seconds[-1] * SECOND
        index = bisect_left(self.hours, hour)
        if index == 0:
            return None
        return self.hours[index - 1] * HOUR + self.minutes[-1] * MINUTE + self.seconds[-1] * SECOND

    def _times_before(self, at: Millis) -> int:
        """Number of matching times of day before `at`."""
        total = -(-at // SECOND)
        hour, minute, second = total // 3600, total // 60 % 60, total % 60
        a_minute = len(self.seconds)
        count = bisect_left(self.hours, hour) * len(self.minutes) * a_minute
        if hour in self.hours:
            count += bisect_left(self.minutes, minute) * a_minute
            if minute in self.minutes:
                count += bisect_left(self.seconds, second)
        return count


def _means(cron: Cron, day: int, first_weekday: int, length: int) -> bool:
    weekday = (first_weekday + day - 1) % _WEEK
    nearest = (*cron.nearest, *(length - each for each in cron.nearest_from_end))
    by_date = (
        day in cron.days
        or length - day in cron.from_end
        or any(day == _nearest(each, first_weekday, length) for each in nearest)
    )
    which = (day - 1) // _WEEK + 1
    by_weekday = (
        weekday in cron.weekdays
        or (weekday, which) in cron.nth
        or (day + _WEEK > length and (weekday, LAST_OF_MONTH) in cron.nth)
    )
    return by_date or by_weekday if cron.either_day else by_date and by_weekday


def _nearest(day: int, first_weekday: int, length: int) -> int | None:
    """The nearest day from Monday to Friday within the month; `None` if the month does not have that day."""
    if not 1 <= day <= length:
        return None
    weekday = (first_weekday + day - 1) % _WEEK
    if weekday < _SATURDAY:
        return day
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    return day + 1 if day < length else day - 2
