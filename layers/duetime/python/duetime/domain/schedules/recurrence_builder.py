"""Builds a recurrence from a timing, a clock and a start, and handles wall times that the clock skips or repeats."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta, timezone
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
from duetime.domain.schedules.time_zones import (
    LAST_WALL,
    LAST_YEAR,
    Fold,
    Gap,
    LocalTimePattern,
    UtcOffsetPeriod,
    Wall,
    Zone,
    clock_text,
    datetime_of,
    day_of,
    wall_of,
)
from duetime.domain.schedules.timings import Dates, Interval, Permanent, Rate, Several, Timing, parse_dates
from duetime.domain.times import DAY, SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.schedules.timings import Moment
    from duetime.domain.times import Millis


_NAMED = 3
"""Maximum number of skipped wall times that a note names; other skipped times are only counted."""
_COMPARED = 3_600
"""Maximum number of skipped wall times to compare with wall times after the gap. Comparing a few times is enough,
because different patterns differ early."""


@frozen
class ZonedRecurrence:
    """The instants at which a zone's clock shows a time of a pattern."""

    pattern: LocalTimePattern
    clock: Clock

    def after(self, at: Millis) -> Millis | None:
        """The first instant after `at`."""
        start = max(at, -1) + 1
        for number, period in enumerate(self.clock.zone.periods_from(start)):
            first = max(start, period.start)
            if first == period.start and self._shifted(period):
                return first
            wall = self.pattern.next(max(first + period.offset, self._unseen(period)))
            if wall is None or wall > LAST_WALL:
                if number:
                    return None
            elif wall - period.offset < period.end:
                return wall - period.offset
        return None

    def before(self, at: Millis) -> Millis | None:
        """The last instant before `at`."""
        end = min(at, LAST_WALL + 1) - 1
        if end < 0:
            return None
        for number, period in enumerate(self.clock.zone.periods_until(end)):
            wall = self.pattern.previous(min(end, period.end - 1) + period.offset)
            if wall is None and number:
                return None
            if wall is not None and wall >= max(period.start + period.offset, self._unseen(period)):
                return wall - period.offset
            if self._shifted(period):
                return period.start
        return None

    def count(self, after: Millis, until: Millis) -> int:
        """Number of instants in (after, until]."""
        start, end = max(after, -1) + 1, min(until, LAST_WALL) + 1
        total = 0
        for period in self._periods(start, end):
            first = max(start, period.start)
            from_wall = max(first + period.offset, self._unseen(period))
            total += self.pattern.count(from_wall, min(end, period.end) + period.offset)
            if first == period.start and self._shifted(period):
                total += self.pattern.count(from_wall, from_wall + 1) == 0
        return total

    def note(self, at: Millis) -> str:
        """Describes what was decided about an instant."""
        periods = self.clock.zone.periods_from(at)
        period, following = next(periods), next(periods)
        if at == period.start and self._shifted(period):
            return self._words(period, f"runs at {clock_text(at + period.offset)} instead")
        wall = at + period.offset
        for fold, which in ((period.fold, "second"), (following.fold, "first")):
            if fold is not None and fold[0] <= wall < fold[1]:
                return self._fold_words(wall, which)
        return ""

    def lost(self, after: Millis, until: Millis) -> Sequence[Lost]:
        """Times in (after, until] that the clock skipped and that do not run at another time."""
        found: list[Lost] = []
        follows = self.pattern.follows_clock
        if self.clock.gap is Gap.SHIFT_FORWARD and not follows:
            return found
        decision = "skipped, because the hour is a wildcard" if follows else "skipped"
        for period in self._periods(max(after, -1) + 1, until + 1):
            if self.pattern.next(period.start + period.before) is None:
                break
            if period.start > after and (self._loses(period) if follows else self._skips(period)):
                found.append(Lost(period.start, self._key_in_gap(period), self._words(period, decision)))
        return found

    def _periods(self, start: Millis, end: Millis) -> Iterator[UtcOffsetPeriod]:
        """The periods that overlap [start, end)."""
        if start < end:
            for period in self.clock.zone.periods_from(start):
                if period.start >= end:
                    return
                yield period

    def _unseen(self, period: UtcOffsetPeriod) -> Wall:
        """The first wall time in a period that counts; earlier wall times may only be repetitions."""
        again = self.pattern.follows_clock or self.clock.fold is Fold.BOTH
        return period.start + (period.offset if again else max(period.offset, period.before))

    def _skips(self, period: UtcOffsetPeriod) -> bool:
        """Whether the clock change at the start of a period skips any wall time of the pattern."""
        gap = period.gap
        if gap is None:
            return False
        wall = self.pattern.next(gap[0])
        return wall is not None and wall < gap[1]

    def _loses(self, period: UtcOffsetPeriod) -> bool:
        """Whether a skipped wall time has no counterpart after the gap.

        If each skipped time has a counterpart, as with an hourly timing and a one-hour clock change, the time between
        instants stays constant.
        """
        gap = period.gap
        if gap is None:
            return False
        wall = self.pattern.next(gap[0])
        for _ in range(_COMPARED):
            if wall is None or wall >= gap[1]:
                return False
            later = wall + gap[1] - gap[0]
            if self.pattern.next(later) != later:
                return True
            wall = self.pattern.next(wall + 1)
        return False

    def _shifted(self, period: UtcOffsetPeriod) -> bool:
        """Whether wall times that the clock skipped run at the start of the period after the gap."""
        return self.clock.gap is Gap.SHIFT_FORWARD and not self.pattern.follows_clock and self._skips(period)

    def _key_in_gap(self, period: UtcOffsetPeriod) -> str:
        wall = self.pattern.next(period.start + period.before)
        return written(wall or 0, period.before)

    def _words(self, period: UtcOffsetPeriod, decision: str) -> str:
        start, end = period.start + period.before, period.start + period.offset
        walls: list[Wall] = []
        wall = self.pattern.next(start)
        while wall is not None and wall < end and len(walls) < _NAMED:
            walls.append(wall)
            wall = self.pattern.next(wall + 1)
        return gap_note(walls, self.pattern.count(start, end), self.clock.zone, decision)

    def _fold_words(self, wall: Wall, which: str) -> str:
        if self.pattern.follows_clock:
            decision = "runs both times, because the hour is a wildcard"
        else:
            decision = "runs both times" if self.clock.fold is Fold.BOTH else "runs the first time only"
        return f"{twice(wall, self.clock.zone)}, this is the {which}: {decision}"


def written(wall: Wall, offset: Millis) -> str:
    """Formats a wall time with an offset, in the form of an occurrence's key; the wall time need not exist."""
    moment = datetime_of(wall).replace(tzinfo=timezone(timedelta(milliseconds=offset)))
    return moment.isoformat(timespec="milliseconds" if wall % SECOND else "seconds")


def gap_note(walls: Sequence[Wall], count: int, zone: Zone, decision: str) -> str:
    """Describes what happens to skipped wall times.

    Args:
        walls: the first skipped times.
        count: number of skipped times.
        zone: zone of the clock.
        decision: describes what happens to the skipped times.
    """
    named = ", ".join(clock_text(wall) for wall in walls)
    more = f" and {count - len(walls)} more" if count > len(walls) else ""
    verb = "does" if count == 1 else "do"
    return f"{named}{more} {verb} not exist on {day_of(walls[0])} in {zone.name}: {decision}"


def twice(wall: Wall, zone: Zone) -> str:
    """Describes that a clock repeats a wall time."""
    return f"{clock_text(wall)} comes twice on {day_of(wall)} in {zone.name}"


EXTRA_DATES = "extra_dates"


@lru_cache(maxsize=1024)
def recurrence_of(
    timing: Timing, clock: Clock, anchor: Millis, extra: tuple[str, ...] = (), moved: tuple[Millis, ...] = ()
) -> Recurrence:
    """The recurrence of a timing.

    Args:
        timing: the schedule's timing.
        clock: its time zone and rules for clock changes.
        anchor: the schedule's start, which is the start of rates and of intervals without a start.
        extra: additional date-times.
        moved: the instants to which individual occurrences were moved.

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
    """A recurrence combined with the instants to which individual occurrences were moved."""
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
    """The instant of a date-time.

    If the clock repeats the date-time, the first instant is returned; if the clock skips the date-time, the end of the
    gap is returned.
    """
    return zone.instant_after_gap(moment.wall) if moment.offset is None else moment.wall - moment.offset


def _listed(moments: Sequence[Moment], clock: Clock) -> ListedRecurrence:
    zone = clock.zone
    notes: dict[Millis, str] = {}
    in_gaps: dict[Millis, list[Wall]] = {}
    for moment in moments:
        if moment.offset is not None:
            notes.setdefault(moment.wall - moment.offset, "")
            continue
        instants = zone.instants_of(moment.wall)
        if not instants:
            in_gaps.setdefault(zone.instant_after_gap(moment.wall), []).append(moment.wall)
        both = clock.fold is Fold.BOTH
        decision = "runs both times" if both else "runs the first time only"
        for at in instants if both else instants[:1]:
            notes[at] = f"{twice(moment.wall, zone)}: {decision}" if len(instants) > 1 else ""
    losses: list[Lost] = []
    for at, walls in sorted(in_gaps.items()):
        if clock.gap is Gap.SHIFT_FORWARD:
            notes[at] = _gap_words(walls, zone, f"runs at {clock_text(zone.wall_at(at))} instead")
        else:
            losses.append(Lost(at, written(walls[0], zone.period_at(at).before), _gap_words(walls, zone, "skipped")))
    order = sorted(notes)
    return ListedRecurrence(tuple(order), tuple(notes[at] for at in order), tuple(losses))


def _gap_words(walls: Sequence[Wall], zone: Zone, decision: str) -> str:
    return gap_note(walls[:_NAMED], len(walls), zone, decision)


_MONTH = 30.436875 * DAY
"""Mean length of a month in the Gregorian calendar, from which a search starts."""


@frozen
class Steps:
    """Wall times `start`, `start` plus one period, `start` plus two periods, and so on.

    If a month does not have the day, the month's last day is used.

    Attributes:
        start: the first wall time.
        months: calendar months of the period.
        days: calendar days of the period.
        times: number of wall times; `None` for no end.
    """

    start: Wall
    months: int
    days: int
    times: int | None = None

    @property
    def follows_clock(self) -> bool:
        """Always false, because calendar periods imply a fixed time of day, which runs once even if repeated."""
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
        """The wall time with a given index; after the last index, a time beyond all other times."""
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
