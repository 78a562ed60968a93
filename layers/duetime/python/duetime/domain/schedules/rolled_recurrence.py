"""A recurrence whose excluded instants are rolled: to the same time of day of an earlier, or of a later, day.

Only what is near an excluded time is walked; elsewhere it is the recurrence that it is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from duetime.domain.operating_parameters import MAX_ROLL_DAYS
from duetime.domain.schedules.calendar_search import covering, free_around
from duetime.domain.schedules.calendars import Calendar, Span
from duetime.domain.schedules.excluded_dates import parse_excluded_dates
from duetime.domain.schedules.time_zones import Gap
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.schedules.recurrences import Clock, Lost, Recurrence
    from duetime.domain.schedules.time_zones import Wall, Zone
    from duetime.domain.times import Millis


_WALKED = 200
"""Instants that are found one by one to count them."""
_NAMED = 3
"""So many instants that are rolled to one are named, and the others counted."""


@dataclass(frozen=True, slots=True)
class RolledRecurrence:
    """The instants of another recurrence, those rolled that are excluded; several that are rolled to one time are one.

    Attributes:
        inner: the other recurrence.
        rule: what excludes instants, and to which days they are rolled.
    """

    inner: Recurrence
    rule: RollRule

    def after(self, at: Millis) -> Millis | None:
        """The first instant after `at`."""
        best, days = self.inner.after(at), MAX_ROLL_DAYS
        if best is None or self.rule.roll(best).days:
            best = None
        elif not (days := self.rule.reach(at, best - 1)):
            return best
        reach, is_later = (days + 1) * DAY, self.rule.step > 0
        origin = self.inner.after(at - reach if is_later else at)
        while origin is not None and (best is None or origin <= (best if is_later else best + reach)):
            roll = self.rule.roll(origin)
            if roll.at > at:
                # The others up to its end are rolled to later times than this one.
                best = roll.at if best is None else min(best, roll.at)
            origin = self.inner.after(roll.end - 1 if roll.at > at else min(roll.end - 1, origin + at - roll.at))
        return best

    def before(self, at: Millis) -> Millis | None:
        """The last instant before `at`."""
        best, days = self.inner.before(at), MAX_ROLL_DAYS
        if best is None or self.rule.roll(best).days:
            best = None
        elif not (days := self.rule.reach(best, at - 1)):
            return best
        reach, is_later = (days + 1) * DAY, self.rule.step > 0
        origin = self.inner.before(at if is_later else at + reach)
        while origin is not None and (best is None or origin >= (best - reach if is_later else best)):
            roll = self.rule.roll(origin)
            if roll.at < at:
                best = roll.at if best is None else max(best, roll.at)
            origin = self.inner.before(roll.start if roll.at < at else max(roll.start, origin + at - roll.at))
        return best

    def count(self, after: Millis, until: Millis) -> int:
        """How many instants lie in (after, until].

        Where anything is excluded, the first `_WALKED` are counted, and beyond those the ones of the other recurrence.
        """
        if after >= until:
            return 0
        at, total = after, 0
        if not self.rule.is_plain(after, until):
            while total < _WALKED:
                found = self.after(at)
                if found is None or found > until:
                    return total
                at, total = found, total + 1
        return total + self.inner.count(at, until)

    def note(self, at: Millis) -> str:
        """What was decided about one of its instants, and instead of which others it is."""
        said = []
        if self.inner.after(at - 1) == at and self.rule.roll(at).days == 0:
            said.append(self.inner.note(at))
        near = self._candidates(at - 1, at, self.rule.reach(at - 1, at))
        origins = [self._words(each) for each, _ in near if self.rule.roll(each).at == at != each]
        if origins:
            more = f" and {len(origins) - _NAMED} more" if len(origins) > _NAMED else ""
            said.append(f"instead of {', '.join(origins[:_NAMED])}{more}")
        return "; ".join(each for each in said if each)

    def lost(self, after: Millis, until: Millis) -> Sequence[Lost]:
        """What a clock jumped over in (after, until]."""
        return self.inner.lost(after, until)

    def possible(self, after: Millis, until: Millis) -> Sequence[Millis]:
        """The instants in (after, until] that it would have by some calendars or others, in order."""
        return sorted({landing for _, landing in self._candidates(after, until, MAX_ROLL_DAYS)})

    def _candidates(self, after: Millis, until: Millis, most_days: int) -> Iterator[tuple[Millis, Millis]]:
        """What may be rolled into (after, until] by up to so many days, and to when."""
        for days in range(most_days + 1):
            first, last = self.rule.origins(after, until, days)
            origin = self.inner.after(first - 1)
            while origin is not None and origin <= last:
                landing = self.rule.landing(origin, days)
                if landing is not None and after < landing <= until:
                    yield origin, landing
                origin = self.inner.after(origin)

    def _words(self, origin: Millis) -> str:
        span = covering(self.rule.calendars, origin)
        return f"{self.rule.clock.zone.text_at(origin)} ({'' if span is None else span.reason})"


class Roll(NamedTuple):
    """What becomes of an instant.

    Attributes:
        at: when it is instead.
        days: by how many days it is rolled; 0 if it stays: it is not excluded, or no day is free.
        start: all instants in [start, end) are rolled by as many days, and keep their distances.
        end: see `start`.
    """

    at: Millis
    days: int
    start: Millis
    end: Millis


@dataclass(frozen=True, slots=True)
class RollRule:
    """To which day an instant is rolled that calendars exclude: to the nearest one on which they leave its time free.

    A time of day that the clock shows twice is the first of them. One that it jumps over is the end of the jump, or
    does not count as free, as the clock's rule says.

    Attributes:
        clock: whose days they are.
        calendars: what excludes instants, `left_out` among it.
        left_out: what is not rolled: days and times that the schedule itself leaves out.
        step: 1 to try later days, -1 to try earlier ones.
    """

    clock: Clock
    calendars: tuple[Calendar, ...]
    left_out: Calendar
    step: int

    def roll(self, origin: Millis) -> Roll:
        """What becomes of an instant."""
        zone = self.clock.zone
        if (span := self.left_out.covering(origin)) is not None:
            return Roll(origin, 0, span.start, span.end)
        start, end = 0, origin + DAY
        for days in range(MAX_ROLL_DAYS + 1):
            at = self.landing(origin, days)
            if at is None:
                start, end = origin, origin + 1
                continue
            closed, period = covering(self.calendars, at), zone.period_at(at)
            span = free_around(self.calendars, at) if closed is None else closed
            # Of a time that comes twice only the first is meant, but for the instant itself.
            first = period.start + (max(0, period.before - period.offset) if days else 0)
            start = max(start, origin + max(span.start, first) - at)
            end = min(end, origin + min(span.end, period.end) - at)
            if closed is None:
                return Roll(at, days, start, end)
        return Roll(origin, 0, start, end)

    def is_plain(self, after: Millis, until: Millis) -> bool:
        """Whether no instant in (after, until] is rolled, and none is rolled there."""
        walls = self._walls(after, until)
        return self._is_free(walls, 0) and self._is_free(walls, 1)

    def reach(self, after: Millis, until: Millis) -> int:
        """An upper bound of the days by which any instant is rolled into (after, until]."""
        closed = covering(self.calendars, after + 1)
        if closed is not None and until < closed.end:
            return 0
        walls = self._walls(after, until)
        return next((days for days in range(MAX_ROLL_DAYS) if self._is_free(walls, days + 1)), MAX_ROLL_DAYS)

    def origins(self, after: Millis, until: Millis, days: int) -> tuple[Millis, Millis]:
        """The instants [from, to] that may be rolled by so many days into (after, until]."""
        return self._origins(self._walls(after, until), days)

    def landing(self, origin: Millis, days: int) -> Millis | None:
        """When an instant is, rolled by so many days; `None` if that time does not come."""
        if days == 0:
            return origin
        zone = self.clock.zone
        wall = self._wall(zone.wall_at(origin), days)
        if instants := zone.instants_of(wall):
            return instants[0]
        return zone.instant_after_gap(wall) if self.clock.gap is Gap.SHIFT_FORWARD else None

    def _is_free(self, walls: tuple[Wall, Wall], days: int) -> bool:
        """Whether nothing is excluded so many days from these times: nothing is rolled to them by as many, or more."""
        at, last = self._origins(walls, days)
        period = self.clock.zone.period_at(at)
        if at + period.offset != self._wall(walls[0], -days) or last >= period.end:
            # A time of day that does not come there is passed over as if it was excluded.
            return False
        while at <= last:
            if covering(self.calendars, at) is not None:
                return False
            at = free_around(self.calendars, at).end
        return True

    def _origins(self, walls: tuple[Wall, Wall], days: int) -> tuple[Millis, Millis]:
        """The instants [from, to] that may be rolled by so many days to these times."""
        zone, last = self.clock.zone, self._wall(walls[1], -days)
        instants = zone.instants_of(last)
        return zone.instant_after_gap(self._wall(walls[0], -days)), (instants or (zone.instant_after_gap(last),))[-1]

    def _walls(self, after: Millis, until: Millis) -> tuple[Wall, Wall]:
        """The times [from, to] that the clock shows, or jumps over, in (after, until]."""
        zone = self.clock.zone
        period = zone.period_at(until)
        # Where it was set back, it has shown later times.
        return zone.wall_at(after) + 1, max(until + period.offset, period.start + period.before - 1)

    def _wall(self, wall: Wall, days: int) -> Wall:
        return wall + self.step * days * DAY


def roll_rule(clock: Clock, calendars: Sequence[Calendar], step: int, excluded_dates: tuple[str, ...]) -> RollRule:
    """The rule of a schedule: what it leaves out itself is not rolled, and nothing is rolled to it."""
    left_out = _left_out(excluded_dates, clock.zone)
    return RollRule(clock, (*calendars, left_out), left_out, step)


@lru_cache(maxsize=256)
def _left_out(excluded_dates: tuple[str, ...], zone: Zone) -> Calendar:
    dates = parse_excluded_dates(excluded_dates)
    instants = {*dates.instants, *(at for wall in dates.walls for at in zone.instants_of(wall))}
    spans = tuple(Span(at, at + 1) for at in sorted(instants))
    return Calendar("excluded_dates", zone=zone, dates=dict.fromkeys(dates.days, ""), spans=spans)
