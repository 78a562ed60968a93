"""A recurrence whose excluded instants are rolled to the same time on an earlier or later day.

Only times near excluded times are enumerated; elsewhere, the underlying recurrence is used.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from duetime.domain.operating_parameters import MAX_ROLL_DAYS
from duetime.domain.schedules.calendars import Calendar, Span, covering, free_around
from duetime.domain.schedules.time_zones import Gap
from duetime.domain.schedules.timings import parse_excluded_dates
from duetime.domain.times import DAY
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.schedules.recurrences import Clock, Lost, Recurrence
    from duetime.domain.schedules.time_zones import Wall, Zone
    from duetime.domain.times import Millis


_WALKED = 200
"""Maximum number of instants that are enumerated for a count."""
_NAMED = 3
"""Maximum number of instants rolled to the same time that a note names; other instants are only counted."""


@frozen
class RolledRecurrence:
    """Another recurrence's instants after excluded instants are rolled; instants rolled to the same time are merged.

    Attributes:
        inner: the underlying recurrence.
        rule: determines which instants are excluded, and to which days these instants are rolled.
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
                # Later instants in the same excluded span are rolled to later times.
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
        """Number of instants in (after, until].

        If any instants are excluded, the first `_WALKED` instants are enumerated, and the underlying recurrence counts
        the rest.
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
        """Describes what was decided about an instant, and which instants were rolled to it."""
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
        """Times skipped by the clock in (after, until]."""
        return self.inner.lost(after, until)

    def possible(self, after: Millis, until: Millis) -> Sequence[Millis]:
        """The instants in (after, until] that could occur under any calendars, in order."""
        return sorted({landing for _, landing in self._candidates(after, until, MAX_ROLL_DAYS)})

    def _candidates(self, after: Millis, until: Millis, most_days: int) -> Iterator[tuple[Millis, Millis]]:
        """The instants that may be rolled into (after, until] by at most `most_days`, with their rolled times."""
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
    """The result of rolling an instant.

    Attributes:
        at: the new time.
        days: number of days by which the instant is rolled; 0 if it is not rolled, because it is not excluded or no day
            is free.
        start: start of a period [start, end) in which all instants are rolled by the same number of days.
        end: end of this period, exclusive.
    """

    at: Millis
    days: int
    start: Millis
    end: Millis


@frozen
class RollRule:
    """Rolls excluded instants to the nearest day on which their time is not excluded.

    If the clock repeats the time of day, the first time is used. If the clock skips the time of day, the clock's rule
    decides whether the end of the gap is used or the day does not count as free.

    Attributes:
        clock: clock whose days are used.
        calendars: the calendars that exclude instants, including `left_out`.
        left_out: days and times that the schedule itself excludes, which are not rolled.
        step: 1 for later days, -1 for earlier days.
        rolls: results so far, by instant.
    """

    clock: Clock
    calendars: tuple[Calendar, ...]
    left_out: Calendar
    step: int
    rolls: dict[Millis, Roll] = field(default_factory=dict, init=False, compare=False, repr=False)

    def roll(self, origin: Millis) -> Roll:
        """The result of rolling an instant; cached, because successive occurrences roll the same instants."""
        found = self.rolls.get(origin)
        if found is None:
            found = self.rolls[origin] = self._roll(origin)
        return found

    def _roll(self, origin: Millis) -> Roll:
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
            # If a time is repeated, only the first time counts, except for the instant itself.
            first = period.start + (max(0, period.before - period.offset) if days else 0)
            start = max(start, origin + max(span.start, first) - at)
            end = min(end, origin + min(span.end, period.end) - at)
            if closed is None:
                return Roll(at, days, start, end)
        return Roll(origin, 0, start, end)

    def is_plain(self, after: Millis, until: Millis) -> bool:
        """Whether no instant is rolled out of (after, until] or into it."""
        walls = self._walls(after, until)
        return self._is_free(walls, 0) and self._is_free(walls, 1)

    def reach(self, after: Millis, until: Millis) -> int:
        """An upper bound of the number of days by which instants are rolled into (after, until]."""
        closed = covering(self.calendars, after + 1)
        if closed is not None and until < closed.end:
            return 0
        walls = self._walls(after, until)
        return next((days for days in range(MAX_ROLL_DAYS) if self._is_free(walls, days + 1)), MAX_ROLL_DAYS)

    def origins(self, after: Millis, until: Millis, days: int) -> tuple[Millis, Millis]:
        """The instants [from, to] that may be rolled by `days` into (after, until]."""
        return self._origins(self._walls(after, until), days)

    def landing(self, origin: Millis, days: int) -> Millis | None:
        """The time of an instant rolled by `days`; `None` if the clock skips that time."""
        if days == 0:
            return origin
        zone = self.clock.zone
        wall = self._wall(zone.wall_at(origin), days)
        if instants := zone.instants_of(wall):
            return instants[0]
        return zone.instant_after_gap(wall) if self.clock.gap is Gap.SHIFT_FORWARD else None

    def _is_free(self, walls: tuple[Wall, Wall], days: int) -> bool:
        """Whether no time `days` away from these times is excluded, so that no instant is rolled to these times."""
        at, last = self._origins(walls, days)
        period = self.clock.zone.period_at(at)
        if at + period.offset != self._wall(walls[0], -days) or last >= period.end:
            # A time of day that the clock skips is treated like an excluded time.
            return False
        while at <= last:
            if covering(self.calendars, at) is not None:
                return False
            at = free_around(self.calendars, at).end
        return True

    def _origins(self, walls: tuple[Wall, Wall], days: int) -> tuple[Millis, Millis]:
        """The instants [from, to] that may be rolled by `days` to these times."""
        zone, last = self.clock.zone, self._wall(walls[1], -days)
        instants = zone.instants_of(last)
        return zone.instant_after_gap(self._wall(walls[0], -days)), (instants or (zone.instant_after_gap(last),))[-1]

    def _walls(self, after: Millis, until: Millis) -> tuple[Wall, Wall]:
        """The wall times [from, to] that the clock shows or skips in (after, until]."""
        zone = self.clock.zone
        period = zone.period_at(until)
        # Before the clock was set back, it showed later times than it does at `until`.
        return zone.wall_at(after) + 1, max(until + period.offset, period.start + period.before - 1)

    def _wall(self, wall: Wall, days: int) -> Wall:
        return wall + self.step * days * DAY


def roll_rule(clock: Clock, calendars: Sequence[Calendar], step: int, excluded_dates: tuple[str, ...]) -> RollRule:
    """A schedule's rolling rule, which never moves an instant from or to a time that the schedule itself excludes."""
    left_out = _left_out(excluded_dates, clock.zone)
    return RollRule(clock, (*calendars, left_out), left_out, step)


@lru_cache(maxsize=256)
def _left_out(excluded_dates: tuple[str, ...], zone: Zone) -> Calendar:
    dates = parse_excluded_dates(excluded_dates)
    instants = {*dates.instants, *(at for wall in dates.walls for at in zone.instants_of(wall))}
    spans = tuple(Span(at, at + 1) for at in sorted(instants))
    return Calendar("excluded_dates", zone=zone, dates=dict.fromkeys(dates.days, ""), spans=spans)
