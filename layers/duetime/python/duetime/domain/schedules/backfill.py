"""Backfill: the occurrences of a past period, run again or for the first time, at a pace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_BACKFILL_PER_MINUTE
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.occurrences import Occurrence, count_between, forward
from duetime.domain.times import MINUTE, Millis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.schedules.schedule import Schedule

HAS_A_RUN = "has a run already"
"""Why an occurrence is passed over by a backfill of what is missing."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """What is requested; made by `requested`.

    Attributes:
        start: the first instant.
        end: the last instant.
        per_minute: how many occurrences run in a minute.
        asked_at: when the first one is due; the others follow at the pace.
        only_missing: whether occurrences that have a run already are passed over.
        overlap: `ALLOW_ALL`, or `BUFFER_ALL`: each waits for the end of the schedule's other runs.
    """

    start: Millis
    end: Millis
    per_minute: int
    asked_at: Millis
    only_missing: bool = False
    overlap: Overlap = Overlap.ALLOW_ALL

    @property
    def is_buffered(self) -> bool:
        """Whether its runs wait for each other, and for the schedule's other runs."""
        return self.overlap is Overlap.BUFFER_ALL

    def size(self, schedule: Schedule) -> int:
        """How many occurrences there are, those included that a calendar excludes; by arithmetic."""
        return count_between(schedule, self.start - 1, self.end)


@dataclass(frozen=True, slots=True)
class BackfillCursor:
    """How far a backfill has come.

    Attributes:
        until: it is done up to and with this instant.
        runs_started: how many occurrences it has placed.
        runs_known: how many it has passed over, for they have a run already.
    """

    until: Millis
    runs_started: int = 0
    runs_known: int = 0


@dataclass(frozen=True, slots=True)
class KnownRuns:
    """Which occurrences of a backfill have a run already.

    Attributes:
        until: up to and with this instant it is known.
        instants: of the occurrences that have one.
    """

    until: Millis
    instants: frozenset[Millis] = frozenset()


def requested(
    start: Millis,
    end: Millis,
    per_minute: int,
    asked_at: Millis,
    *,
    only_missing: bool = False,
    overlap: Overlap = Overlap.ALLOW_ALL,
) -> Backfill:
    """A backfill of [start, end].

    Raises:
        FieldInvalid: the period is empty or not past, or the pace is out of bounds.
    """
    if start > end:
        raise FieldInvalid("scheduled_before", "should be after scheduled_after", FaultCode.CONFLICT)
    if end > asked_at:
        raise FieldInvalid(
            "scheduled_before",
            "must not be in the future: the schedule itself runs future occurrences",
            FaultCode.CONFLICT,
        )
    if not 1 <= per_minute <= MAX_BACKFILL_PER_MINUTE:
        raise FieldInvalid("per_minute", f"should be 1 to {MAX_BACKFILL_PER_MINUTE}", FaultCode.OUT_OF_RANGE)
    return Backfill(start, end, per_minute, asked_at, only_missing, overlap)


def unstarted(schedule: Schedule, backfill: Backfill, cursor: BackfillCursor | None = None) -> Iterator[Occurrence]:
    """Each occurrence that is left and may run, as the timing places it."""
    after = backfill.start - 1 if cursor is None else cursor.until
    return (each for each in forward(_wanted(schedule), after, backfill.end) if each.runs)


def steps(
    schedule: Schedule,
    backfill: Backfill,
    size: int,
    cursor: BackfillCursor | None = None,
    known: frozenset[Millis] = frozenset(),
) -> Iterator[tuple[Occurrence, BackfillCursor]]:
    """Each occurrence that is left, with the cursor that holds once it is placed.

    What a calendar excludes or a clock leaves out is given too, and takes no place in the pace, nor does what has a run
    already; what a user had stopped runs, for it is asked for now. Stopping anywhere and going on from the last cursor
    gives the same occurrences with the same due times.

    Args:
        schedule: as it is now.
        backfill: of which of its times.
        size: how many there were when it was requested.
        cursor: how far it has come.
        known: the instants that have a run already.
    """
    at = BackfillCursor(backfill.start - 1) if cursor is None else cursor
    for occurrence in forward(_wanted(schedule), at.until, backfill.end):
        due_at = backfill.asked_at + at.runs_started * MINUTE // backfill.per_minute
        has_run = occurrence.runs and occurrence.nominal in known
        runs, note = occurrence.runs and not has_run, HAS_A_RUN if has_run else occurrence.note
        at = BackfillCursor(occurrence.nominal, at.runs_started + runs, at.runs_known + has_run)
        home = home_of(backfill, size, occurrence.nominal)
        yield replace(occurrence, at=due_at, due_at=due_at, home=home, runs=runs, note=note), at


def _wanted(schedule: Schedule) -> Schedule:
    """The schedule without what does not count for a backfill: the runs that remain, and what was stopped."""
    return replace(schedule, remaining_runs=None, stopped=frozenset())


def home_of(backfill: Backfill, size: int, nominal: Millis) -> Millis:
    """From what the id of a time follows: about when it is due.

    It depends on nothing that may be changed or replaced between an expansion that was cut off and the next one.
    """
    length = size * MINUTE // backfill.per_minute
    return backfill.asked_at + (nominal - backfill.start) * length // (backfill.end - backfill.start + 1)
