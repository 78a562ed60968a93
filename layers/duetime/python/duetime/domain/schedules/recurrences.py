"""Recurrences represent a timing's instants, which can be searched in both directions and counted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Protocol

from duetime.domain.schedules.time_zones import LAST_WALL, UTC_ZONE, Fold, Gap, Zone
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis


@frozen
class Clock:
    """A timing's time zone and rules for clock changes.

    Attributes:
        zone: the time zone.
        gap: what happens to a time of day that the clock skips.
        fold: what happens to a time of day that the clock repeats.
    """

    zone: Zone = UTC_ZONE
    gap: Gap = Gap.SKIP
    fold: Fold = Fold.FIRST


UTC_CLOCK = Clock()
_WALKED = 10_000
"""Maximum number of instants to enumerate when counting a union without duplicates."""


@frozen
class Lost:
    """Wall times that did not occur because the clock skipped them.

    Attributes:
        at: the instant of the clock change.
        key: the first lost wall time, with the offset before the change; no instant has this key.
        note: describes what was decided about these times.
    """

    at: Millis
    key: str
    note: str


class Recurrence(Protocol):
    """A timing's instants, without duplicates, computed without enumerating them."""

    def after(self, at: Millis) -> Millis | None:
        """The first instant after `at`; `None` if there is none."""
        ...

    def before(self, at: Millis) -> Millis | None:
        """The last instant before `at`; `None` if there is none."""
        ...

    def count(self, after: Millis, until: Millis) -> int:
        """Number of instants in (after, until]."""
        ...

    def note(self, at: Millis) -> str:
        """Describes what was decided about an instant at a clock change; empty if no decision was needed."""
        ...

    def lost(self, after: Millis, until: Millis) -> Sequence[Lost]:
        """Times that the clock skipped in (after, until], with at most one entry per clock change."""
        ...


@frozen
class EvenRecurrence:
    """Instants at constant intervals of elapsed time."""

    start: Millis
    every: Millis
    times: int | None = None

    def after(self, at: Millis) -> Millis | None:
        """The first instant after `at`."""
        found = self.start + self._until(at) * self.every
        ended = self.times is not None and self._until(at) >= self.times
        return None if ended or found > LAST_WALL else found

    def before(self, at: Millis) -> Millis | None:
        """The last instant before `at`."""
        index = self._until(at - 1)
        return self.start + (index - 1) * self.every if index else None

    def count(self, after: Millis, until: Millis) -> int:
        """Number of instants in (after, until]."""
        return max(0, self._until(until) - self._until(after))

    def note(self, at: Millis) -> str:  # noqa: ARG002 - elapsed time knows no clock
        """Always empty, because elapsed time does not depend on clock changes."""
        return ""

    def lost(self, after: Millis, until: Millis) -> Sequence[Lost]:  # noqa: ARG002 - elapsed time knows no clock
        """Always empty, because no elapsed time is skipped."""
        return ()

    def _until(self, at: Millis) -> int:
        """Number of instants up to and including `at`."""
        passed = max(0, (at - self.start) // self.every + 1)
        return passed if self.times is None else min(passed, self.times)


@frozen
class ListedRecurrence:
    """A sorted list of instants, with the decisions about them."""

    instants: tuple[Millis, ...]
    notes: tuple[str, ...]
    losses: tuple[Lost, ...]

    def after(self, at: Millis) -> Millis | None:
        """The first instant after `at`."""
        index = bisect_right(self.instants, at)
        return self.instants[index] if index < len(self.instants) else None

    def before(self, at: Millis) -> Millis | None:
        """The last instant before `at`."""
        index = bisect_left(self.instants, at)
        return self.instants[index - 1] if index else None

    def count(self, after: Millis, until: Millis) -> int:
        """Number of instants in (after, until]."""
        return max(0, bisect_right(self.instants, until) - bisect_right(self.instants, after))

    def note(self, at: Millis) -> str:
        """The decision about an instant."""
        return self.notes[bisect_left(self.instants, at)]

    def lost(self, after: Millis, until: Millis) -> Sequence[Lost]:
        """Times skipped by the clock in (after, until]."""
        return [each for each in self.losses if after < each.at <= until]


@frozen
class UnionRecurrence:
    """The instants of several recurrences, without duplicates."""

    members: tuple[Recurrence, ...]

    def after(self, at: Millis) -> Millis | None:
        """The first instant after `at`."""
        return min((found for each in self.members if (found := each.after(at)) is not None), default=None)

    def before(self, at: Millis) -> Millis | None:
        """The last instant before `at`."""
        return max((found for each in self.members if (found := each.before(at)) is not None), default=None)

    def count(self, after: Millis, until: Millis) -> int:
        """Number of instants in (after, until].

        The instants of all members except the largest are enumerated, so that duplicates are counted once. To limit the
        duration of a request, only the first `_WALKED` instants are enumerated; if there are more instants, the count
        is an upper bound.
        """
        counts = [each.count(after, until) for each in self.members]
        order = sorted(range(len(counts)), key=lambda index: counts[index])
        total, left = sum(counts), _WALKED
        for place, index in enumerate(order[:-1]):
            others = [self.members[other] for other in order[place + 1 :]]
            at = self.members[index].after(after)
            while at is not None and at <= until and left:
                total -= any(other.after(at - 1) == at for other in others)
                at, left = self.members[index].after(at), left - 1
        return total

    def note(self, at: Millis) -> str:
        """The notes about an instant from all members that include it."""
        said = (each.note(at) for each in self.members if each.after(at - 1) == at)
        return "; ".join(dict.fromkeys(note for note in said if note))

    def lost(self, after: Millis, until: Millis) -> Sequence[Lost]:
        """Times skipped by the clock in (after, until]."""
        found = {(lost.at, lost.key): lost for each in self.members for lost in each.lost(after, until)}
        return [found[place] for place in sorted(found)]
