"""A recurrence whose excluded instants are rolled: to the same time of day of an earlier, or of a later, day.

Only what is near an excluded time is walked; elsewhere it is the recurrence that it is made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import MAX_ROLL_DAYS
from duetime.domain.schedules.calendar_search import covering
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.schedules.recurrences import Lost, Recurrence
    from duetime.domain.schedules.roll_rule import RollRule
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
