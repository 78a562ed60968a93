"""What the trigger does when it checks a schedule: what was missed, what to place now, and when to check again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.schedules.calendar_search import covering
from duetime.domain.schedules.definition import CatchUpMode
from duetime.domain.schedules.occurrences import (
    Occurrence,
    count_between,
    forward,
    judged,
    next_nominal,
    previous_nominal,
)
from duetime.domain.times import SECOND, Millis

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule import Schedule

MAX_EXPANSION = 1_000
"""Occurrences that one check places at most; a schedule of one a second has sixty a minute."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """What happens to occurrences that nobody placed in time.

    Attributes:
        run: the latest of them, if it may still run.
        missed: how many there are in all.
        note: what was decided, in words; empty if none was missed.
        until: what lies up to and with this instant is decided.
    """

    run: Occurrence | None = None
    missed: int = 0
    note: str = ""
    until: Millis = 0

    @property
    def skipped(self) -> int:
        """How many of them do not run."""
        return self.missed - (self.run is not None)


@dataclass(frozen=True, slots=True)
class Expansion:
    """The occurrences of a period.

    Attributes:
        occurrences: in order, those that do not run among them.
        until: the schedule is done up to and with this instant: the last one that was placed, if no run remains.
        next_at: the next instant that its timing means after `until`; `None` if nothing is to come.
        remaining_runs: how many may still run after these; `None` for no limit.
    """

    occurrences: tuple[Occurrence, ...]
    until: Millis
    next_at: Millis | None
    remaining_runs: int | None


def expand(
    schedule: Schedule, after: Millis, horizon: Millis, limit: int = MAX_EXPANSION, *, taken: int = 0
) -> Expansion:
    """The occurrences in (after, horizon].

    Args:
        schedule: as it is now.
        after: the instant up to which it is done.
        horizon: how far ahead to go.
        limit: how many occurrences to give at most.
        taken: runs that are used up already.
    """
    remaining = None if schedule.remaining_runs is None else max(0, schedule.remaining_runs - taken)
    found: list[Occurrence] = []
    until = max(after, horizon)
    for occurrence in forward(schedule, after, horizon):
        if remaining == 0:
            break
        found.append(occurrence)
        if remaining is not None:
            remaining -= occurrence.runs
        if len(found) >= limit:
            until = occurrence.nominal
            break
    if remaining == 0:
        # What comes after it is still to be placed if a run does not begin.
        return Expansion(tuple(found), found[-1].nominal if found else after, None, remaining)
    next_at = next_nominal(schedule, until)
    return Expansion(tuple(found), until, next_at, remaining)


def catch_up(schedule: Schedule, done: Millis, now: Millis) -> CatchUp:
    """Decide about what was missed in (done, now]; by arithmetic.

    Only the latest runs, if it is not too late. Where all run that are not too late, that is left to the expansion, and
    decided is only about those before.
    """
    earliest = now - schedule.spec.catch_up_seconds * SECOND
    until = now if schedule.spec.catch_up_mode is CatchUpMode.LATEST else earliest - 1
    missed = count_missed(schedule, done, until)
    if not missed:
        return CatchUp(until=done)
    run = _latest(schedule, done, until, earliest)
    return CatchUp(run, missed, _words(schedule, run, missed), until)


def count_missed(schedule: Schedule, done: Millis, now: Millis) -> int:
    """How many occurrences were missed in (done, now]; none once no run remains, for none is wanted then."""
    return 0 if schedule.remaining_runs == 0 else count_between(schedule, done, now)


def is_caught_up(schedule: Schedule, occurrence: Occurrence, missed_by: Millis) -> bool:
    """Whether an occurrence that an expansion places was missed, where all missed ones run."""
    return schedule.spec.catch_up_mode is CatchUpMode.ALL and occurrence.nominal <= missed_by


def _latest(schedule: Schedule, done: Millis, until: Millis, earliest: Millis) -> Occurrence | None:
    """The latest missed occurrence that runs, and is not later than the catch-up window allows."""
    nominal = previous_nominal(schedule, until + 1)
    while nominal is not None and nominal > done:
        occurrence = judged(schedule, nominal)
        if occurrence.at < earliest or occurrence.runs:
            return occurrence if occurrence.at >= earliest else None
        # All that lies in the same excluded span does not run either: it is passed over in one step.
        span = covering(schedule.calendars, nominal)
        nominal = previous_nominal(schedule, nominal if span is None else span.start)
    return None


def _words(schedule: Schedule, run: Occurrence | None, missed: int) -> str:
    count = "1 occurrence was missed" if missed == 1 else f"{missed} occurrences were missed"
    if run is None:
        return f"{count}: none runs, for each is excluded, or late by more than {schedule.spec.catch_up_seconds} s"
    return f"{count}: the one of {run.key} runs" + (f", {missed - 1} skipped" if missed > 1 else "")
