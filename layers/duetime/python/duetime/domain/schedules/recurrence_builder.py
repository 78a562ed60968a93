"""Builds the recurrence of a timing, a clock and a start."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from duetime.domain.schedules.cron import Cron
from duetime.domain.schedules.recurrences import (
    Clock,
    EvenRecurrence,
    ListedRecurrence,
    Lost,
    Recurrence,
    UnionRecurrence,
)
from duetime.domain.schedules.time_zones import LAST_WALL, LAST_YEAR, Fold, Gap, Wall, Zone, clock_text, day_of, wall_of
from duetime.domain.schedules.timings import Dates, Interval, Permanent, Rate, Several, Timing, parse_dates
from duetime.domain.schedules.zoned_recurrence import ZonedRecurrence, gap_note, twice, written
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.timings import Moment
    from duetime.domain.times import Millis


EXTRA_DATES = "extra_dates"


@lru_cache(maxsize=1024)
def recurrence_of(
    timing: Timing, clock: Clock, anchor: Millis, extra: tuple[str, ...] = (), moved: tuple[Millis, ...] = ()
) -> Recurrence:
    """The recurrence of a timing.

    Args:
        timing: the schedule's timing.
        clock: its time zone and rules for clock changes.
        anchor: the schedule's start, from which rates, and intervals without a start, are counted.
        extra: additional date-times.
        moved: the instants to which single occurrences were moved.

    Returns:
        The recurrence; empty for a permanent timing, whose runs do not depend on a clock.
    """
    if moved:
        return with_moved(recurrence_of(timing, clock, anchor, extra), moved)
    if extra:
        listed = _listed(parse_dates(extra, EXTRA_DATES).moments, clock)
        return UnionRecurrence((recurrence_of(timing, clock, anchor), listed))
    match timing:
        case Several(timings):
            return UnionRecurrence(tuple(recurrence_of(each, clock, anchor) for each in timings))
        case Cron():
            return ZonedRecurrence(timing, clock)
        case Rate(every):
            return EvenRecurrence(anchor, every)
        case Interval():
            return _interval(timing, clock, anchor)
        case Dates(moments):
            return _listed(moments, clock)
        case Permanent():
            return ListedRecurrence((), (), ())


def with_moved(recurrence: Recurrence, moved: tuple[Millis, ...]) -> Recurrence:
    """A recurrence plus the instants to which single occurrences were moved."""
    if not moved:
        return recurrence
    return UnionRecurrence((recurrence, ListedRecurrence(tuple(sorted(moved)), ("",) * len(moved), ())))


def _interval(interval: Interval, clock: Clock, anchor: Millis) -> Recurrence:
    zone, start, period = clock.zone, interval.start, interval.period
    if period.elapsed:
        first = anchor if start is None else _instant(start, zone)
        return EvenRecurrence(first, period.elapsed, interval.times)
    if start is None:
        wall = zone.wall_at(anchor)
    else:
        wall = start.wall if start.offset is None else zone.wall_at(start.wall - start.offset)
    return ZonedRecurrence(Steps(wall, period.months, period.days, interval.times), clock)


def _instant(moment: Moment, zone: Zone) -> Millis:
    """The instant of a date-time: the first of two, or the end of the gap if it is skipped."""
    return zone.instant_after_gap(moment.wall) if moment.offset is None else moment.wall - moment.offset


def _listed(moments: Sequence[Moment], clock: Clock) -> ListedRecurrence:
    zone = clock.zone
    notes: dict[Millis, str] = {}
    losses: dict[Millis, Lost] = {}
    for moment in moments:
        if moment.offset is not None:
            notes.setdefault(moment.wall - moment.offset, "")
            continue
        instants = zone.instants_of(moment.wall)
        if not instants:
            at = zone.instant_after_gap(moment.wall)
            if clock.gap is Gap.SHIFT_FORWARD:
                instead = f"runs at {clock_text(zone.wall_at(at))} instead"
                notes[at] = gap_note([moment.wall], 1, zone, instead)
            else:
                key = written(moment.wall, zone.period_at(at).before)
                losses[at] = Lost(at, key, gap_note([moment.wall], 1, zone, "skipped"))
        both = clock.fold is Fold.BOTH
        decision = "runs both times" if both else "runs the first time only"
        for at in instants if both else instants[:1]:
            notes[at] = f"{twice(moment.wall, zone)}: {decision}" if len(instants) > 1 else ""
    order = sorted(notes)
    return ListedRecurrence(tuple(order), tuple(notes[at] for at in order), tuple(losses[at] for at in sorted(losses)))


_MONTH = 30.436875 * DAY
"""Mean length of a month in the Gregorian calendar, as the start of a search."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Wall times `start`, `start` plus one period, `start` plus two periods, and so on.

    Days that a month does not have become its last day.

    Attributes:
        start: the first one.
        months: calendar months of the period.
        days: calendar days of the period.
        times: number of times; `None` for no end.
    """

    start: Wall
    months: int
    days: int
    times: int | None = None

    @property
    def follows_clock(self) -> bool:
        """A period of days is a time of day, and is not repeated with the clock."""
        return False

    def next(self, at: Wall) -> Wall | None:
        """The first wall time from `at` on."""
        found = self._at(self._index_from(at))
        return found if found <= LAST_WALL else None

    def previous(self, at: Wall) -> Wall | None:
        """The last wall time up to and including `at`."""
        index = self._index_from(at + 1) - 1
        return self._at(index) if index >= 0 else None

    def count(self, start: Wall, end: Wall) -> int:
        """Number of wall times in [start, end)."""
        return max(0, self._index_from(end) - self._index_from(start))

    def _index_from(self, at: Wall) -> int:
        """Number of wall times before `at`."""
        index = max(0, int((at - self.start) // (self.months * _MONTH + self.days * DAY)))
        if self.times is not None:
            index = min(index, self.times)
        while index > 0 and self._at(index - 1) >= at:
            index -= 1
        while self._at(index) < at:
            index += 1
        return index

    def _at(self, index: int) -> Wall:
        """The wall time with a given index; after the last one, a time beyond all."""
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
