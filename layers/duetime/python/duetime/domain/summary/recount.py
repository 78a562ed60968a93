"""Which tasks the summary counts by their changes, and which by reading the table.

Changes tell nothing of tasks that were there before they were read, and what they tell is lost if nobody reads them for
a day. So counts have generations. In one, tasks that were created at or after a time are counted by their changes, from
their creation on, exactly. All older tasks are counted by recounts: the table is read page by page, again and again at
growing intervals, until none of them is left. When changes may have been lost, a new generation begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import (
    SUMMARY_ENDED_KEPT,
    SUMMARY_GAP,
    SUMMARY_RECOUNT_AGAIN,
    SUMMARY_RECOUNT_AT_LEAST,
    SUMMARY_RECOUNT_KEPT,
    SUMMARY_RECOUNT_LEASE,
    SUMMARY_RESTART_DELAY,
    SUMMARY_SEEN_EVERY,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.summary.counts import Group, Step
    from duetime.domain.times import Millis


def are_old(steps: Iterable[Step], now: Millis) -> bool:
    """Whether some of the changes are so old that others may be lost."""
    return any(now - step.at > SUMMARY_GAP for step in steps)


@dataclass(frozen=True, slots=True)
class Recount:
    """One reading of the table.

    Attributes:
        number: of this recount; a later one has a greater number.
        started_at: when it started.
        found: how many older tasks it has found so far.
        part: how many parts of it are counted.
        cursor: where its next part begins; empty for the beginning of the table.
        busy_since: when the part that is being counted was begun; `None` between parts.
    """

    number: int
    started_at: Millis
    found: int = 0
    part: int = 0
    cursor: str = ""
    busy_since: Millis | None = None


@dataclass(frozen=True, slots=True)
class OlderTasks:
    """Older tasks that were read from a part of the table.

    Attributes:
        counts: their number, by owner and group.
        cursor: where the next part begins; empty if there is none.
    """

    counts: Mapping[tuple[str, Group], int]
    cursor: str


@dataclass(frozen=True, slots=True)
class EndedCounts:
    """How far the counts of ended generations were given a time to live.

    Attributes:
        before: the counts of all generations before this one were.
        owner: the last owner whose counts of later ones were; empty for none.
    """

    before: int = 0
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of counts.

    Attributes:
        number: from 0; a later one has a greater number.
        since: tasks that were created at or after this are counted by their changes; 0: all are.
        seen_at: when it was last known that changes are read.
        recounting: the recount that is going on; `None` for none.
        recounted: the last complete one; `None` for none.
        ended_counts: those of generations that have ended.
        version: of this value; 0 if it is not stored.
    """

    number: int
    since: Millis
    seen_at: Millis
    recounting: Recount | None = None
    recounted: Recount | None = None
    ended_counts: EndedCounts = EndedCounts()
    version: int = 0

    def was_unread(self, now: Millis) -> bool:
        """Whether nobody may have read changes for so long that some are lost."""
        return now - self.seen_at > SUMMARY_GAP

    def next(self, now: Millis) -> Generation:
        """The next generation. It begins a little later, when every process knows of it."""
        # Owners before the one that was reached have counts of this generation, too.
        ended = EndedCounts(self.ended_counts.before)
        return Generation(self.number + 1, now + SUMMARY_RESTART_DELAY, now, ended_counts=ended, version=self.version)

    def is_complete(self, now: Millis) -> bool:
        """Whether all tasks are counted, older ones as of the last recount."""
        if not self.since:
            return True
        return self.recounted is not None and now - self.recounted.started_at < SUMMARY_RECOUNT_KEPT

    def advanced(self, now: Millis) -> Generation | None:
        """The value to store before a part is counted, or only to say that changes are read; `None` for none."""
        recount = self._next_part(now)
        if recount is not None:
            return replace(self, seen_at=now, recounting=replace(recount, busy_since=now))
        return replace(self, seen_at=now) if now - self.seen_at >= SUMMARY_SEEN_EVERY else None

    def after_part(self, read: OlderTasks) -> Generation:
        """The value to store after the part was counted."""
        assert self.recounting is not None  # noqa: S101 - whoever counts a part has begun it
        found = self.recounting.found + sum(read.counts.values())
        done = replace(self.recounting, found=found, part=self.recounting.part + 1, cursor=read.cursor, busy_since=None)
        if read.cursor:
            return replace(self, recounting=done)
        return replace(self, recounting=None, recounted=done)

    def lets_counts_expire(self, now: Millis) -> bool:
        """Whether counts of ended generations have no time to live, and nobody uses them any more."""
        return self.ended_counts.before < self.number and now >= self.since + SUMMARY_ENDED_KEPT

    def after_ended_counts(self, owner: str) -> Generation:
        """The value to store after counts were given a time to live, up to those of an owner; empty: all of them."""
        return replace(
            self, ended_counts=EndedCounts(self.ended_counts.before, owner) if owner else EndedCounts(self.number)
        )

    def _next_part(self, now: Millis) -> Recount | None:
        """The recount whose next part should be counted now."""
        if self.recounting is None:
            due_at = self._next_recount_at()
            last = self.recounted.number if self.recounted else 0
            return None if due_at is None or now < due_at else Recount(last + 1, now)
        if self.recounting.busy_since is None:
            return self.recounting
        if now - self.recounting.busy_since < SUMMARY_RECOUNT_LEASE:
            return None
        # Nobody knows how much of the part was counted: all begins again, under another number.
        return Recount(self.recounting.number + 1, now)

    def _next_recount_at(self) -> Millis | None:
        """When the next recount should start; `None` if no task is left for it."""
        last = self.recounted
        if not self.since or (last is not None and not last.found):
            return None
        if last is None:
            # By then, no request is left that creates an older task.
            return self.since + SUMMARY_RESTART_DELAY
        age = last.started_at - self.since
        return last.started_at + min(max(age, SUMMARY_RECOUNT_AGAIN), SUMMARY_RECOUNT_AT_LEAST)
