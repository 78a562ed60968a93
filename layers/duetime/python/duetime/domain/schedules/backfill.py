"""Backfill: the occurrences of a past period, run again or for the first time, at a pace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_BACKFILL_PER_MINUTE
from duetime.domain.schedules.occurrences import Occurrence, count_between, forward
from duetime.domain.times import MINUTE, Millis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Backfill:
    """What is requested; made by `requested`.

    Attributes:
        start: the first instant.
        end: the last instant.
        per_minute: how many occurrences run in a minute.
        asked_at: when the first one is due; the others follow at the pace.
    """

    start: Millis
    end: Millis
    per_minute: int
    asked_at: Millis

    def size(self, schedule: Schedule) -> int:
        """How many occurrences there are, those included that a calendar excludes; by arithmetic."""
        return count_between(schedule, self.start - 1, self.end)


@dataclass(frozen=True, slots=True)
class BackfillCursor:
    """How far a backfill has come.

    Attributes:
        until: it is done up to and with this instant.
        runs_started: how many occurrences it has placed.
    """

    until: Millis
    runs_started: int = 0


def requested(start: Millis, end: Millis, per_minute: int, asked_at: Millis) -> Backfill:
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
    return Backfill(start, end, per_minute, asked_at)


def steps(
    schedule: Schedule, backfill: Backfill, size: int, cursor: BackfillCursor | None = None
) -> Iterator[tuple[Occurrence, BackfillCursor]]:
    """Each occurrence that is left, with the cursor that holds once it is placed.

    What a calendar excludes or a clock leaves out is given too, and takes no place in the pace; what a user had stopped
    runs, for it is asked for now. Stopping anywhere and going on from the last cursor gives the same occurrences with
    the same due times.

    Args:
        schedule: as it is now.
        backfill: of which of its times.
        size: how many there were when it was requested.
        cursor: how far it has come.
    """
    at = BackfillCursor(backfill.start - 1) if cursor is None else cursor
    wanted = replace(schedule, remaining_runs=None, stopped=frozenset())
    for occurrence in forward(wanted, at.until, backfill.end):
        due_at = backfill.asked_at + at.runs_started * MINUTE // backfill.per_minute
        at = BackfillCursor(occurrence.nominal, at.runs_started + occurrence.runs)
        yield replace(occurrence, at=due_at, due_at=due_at, home=_home(backfill, size, occurrence.nominal)), at


def _home(backfill: Backfill, size: int, nominal: Millis) -> Millis:
    """From what the id of a time follows: about when it is due.

    It depends on nothing that may be changed or replaced between an expansion that was cut off and the next one.
    """
    length = size * MINUTE // backfill.per_minute
    return backfill.asked_at + (nominal - backfill.start) * length // (backfill.end - backfill.start + 1)
