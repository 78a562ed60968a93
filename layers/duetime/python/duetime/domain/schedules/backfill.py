"""Backfills, which run a past period's occurrences, again or for the first time, at a given pace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_BACKFILL_PER_MINUTE
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.occurrences import Occurrence, count_between, forward
from duetime.domain.times import MINUTE, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.schedules.schedule import Schedule

HAS_A_RUN = "has a run already"
"""Why a backfill that only runs missing occurrences skips an occurrence."""


@frozen
class Backfill:
    """A requested backfill, created by `requested`.

    Attributes:
        start: the first instant.
        end: the last instant.
        per_minute: how many occurrences run per minute.
        asked_at: when the backfill was requested, and when the first occurrence is due; later occurrences follow at the
            given pace.
        only_missing: whether to skip occurrences that already have a run.
        overlap: `ALLOW_ALL`, or `BUFFER_ALL`, which makes each run wait for the schedule's other runs to end.
    """

    start: Millis
    end: Millis
    per_minute: int
    asked_at: Millis
    only_missing: bool = False
    overlap: Overlap = Overlap.ALLOW_ALL

    @property
    def is_buffered(self) -> bool:
        """Whether the backfill's runs wait for each other, and for the schedule's other runs."""
        return self.overlap is Overlap.BUFFER_ALL

    def size(self, schedule: Schedule) -> int:
        """Number of occurrences, including occurrences that a calendar excludes, computed without enumerating them."""
        return count_between(schedule, self.start - 1, self.end)


@frozen
class BackfillCursor:
    """Progress of a backfill.

    Attributes:
        until: all occurrences up to and including this instant have been processed.
        runs_started: number of occurrences for which tasks were created.
        runs_known: number of occurrences that were skipped because they already have a run.
    """

    until: Millis
    runs_started: int = 0
    runs_known: int = 0


@frozen
class KnownRuns:
    """Known occurrences of a backfill that already have a run.

    Attributes:
        until: the runs of all occurrences up to and including this instant are known.
        instants: the instants of occurrences that have a run.
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
    """Creates a backfill of [start, end].

    Raises:
        FieldInvalid: the period is empty or not in the past, or the pace is out of range.
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
    """The timing's remaining occurrences that run, including occurrences that already have a run."""
    after = backfill.start - 1 if cursor is None else cursor.until
    return (each for each in forward(_wanted(schedule), after, backfill.end) if each.runs)


def steps(
    schedule: Schedule,
    backfill: Backfill,
    size: int,
    cursor: BackfillCursor | None = None,
    known: frozenset[Millis] = frozenset(),
) -> Iterator[tuple[Occurrence, BackfillCursor]]:
    """Each remaining occurrence, with the cursor to store once the occurrence is placed.

    Occurrences that a calendar or a clock change excludes, or that already have a run, are included, but do not count
    for the pace. Occurrences that a user had stopped do run, because the backfill requests them. Continuing from the
    last cursor always yields the same occurrences with the same due times.

    Args:
        schedule: the schedule in its current form.
        backfill: the period.
        size: number of occurrences at the time of the request.
        cursor: progress so far.
        known: the instants that already have a run.
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
    """The schedule without its run limit and its stopped occurrences, which do not apply to a backfill."""
    return replace(schedule, remaining_runs=None, stopped=frozenset())


def home_of(backfill: Backfill, size: int, nominal: Millis) -> Millis:
    """The time from which a task's id is derived, which is approximately the task's due time.

    So that a repeated expansion creates the same ids, the time depends on nothing that can change after an interrupted
    expansion.
    """
    length = size * MINUTE // backfill.per_minute
    return backfill.asked_at + (nominal - backfill.start) * length // (backfill.end - backfill.start + 1)
