"""The wall times of a calendar period: each counted from the start, so that a month after 31 January is no drift."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date

from duetime.domain.schedules.wall_times import LAST_WALL, LAST_YEAR, Wall, day_of, wall_of
from duetime.domain.times import DAY

_MONTH = 30.436875 * DAY
"""Mean length of a month of the Gregorian calendar, to begin a search with."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Wall times `start`, `start` and one period, `start` and two periods, and so on.

    A day that a month does not have is its last day.

    Attributes:
        start: the first one.
        months: calendar months of the period.
        days: calendar days of the period.
        times: how many there are; `None` for no end.
    """

    start: Wall
    months: int
    days: int
    times: int | None = None

    @property
    def follows_clock(self) -> bool:
        """A period of days is a time of day, and comes once."""
        return False

    def next(self, at: Wall) -> Wall | None:
        """The first wall time not before `at`."""
        found = self._at(self._index_from(at))
        return found if found <= LAST_WALL else None

    def previous(self, at: Wall) -> Wall | None:
        """The last wall time not after `at`."""
        index = self._index_from(at + 1) - 1
        return self._at(index) if index >= 0 else None

    def count(self, start: Wall, end: Wall) -> int:
        """How many wall times lie in [start, end)."""
        return max(0, self._index_from(end) - self._index_from(start))

    def _index_from(self, at: Wall) -> int:
        """How many wall times lie before `at`."""
        index = max(0, int((at - self.start) // (self.months * _MONTH + self.days * DAY)))
        if self.times is not None:
            index = min(index, self.times)
        while index > 0 and self._at(index - 1) >= at:
            index -= 1
        while self._at(index) < at:
            index += 1
        return index

    def _at(self, index: int) -> Wall:
        """A wall time by its number; after the last one, a time beyond all."""
        beyond = LAST_WALL + DAY * 366 * 4
        if self.times is not None and index >= self.times:
            return beyond
        first = day_of(self.start)
        month = first.year * 12 + first.month - 1 + index * self.months
        year = month // 12
        if year > LAST_YEAR + 1:
            return beyond
        length = monthrange(year, month % 12 + 1)[1]
        day = wall_of(date(year, month % 12 + 1, min(first.day, length)), self.start % DAY)
        return min(beyond, day + index * self.days * DAY)
