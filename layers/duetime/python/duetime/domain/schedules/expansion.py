"""Expands schedules: decides about missed occurrences, which occurrences to place now, and when to check again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.schedules.backfill import KnownRuns, steps
from duetime.domain.schedules.calendars import covering
from duetime.domain.schedules.definition import CatchUpMode, OnExcluded, changed_of
from duetime.domain.schedules.occurrences import (
    Occurrence,
    count_between,
    forward,
    judged,
    next_nominal,
    previous_nominal,
    withheld,
)
from duetime.domain.schedules.run_history import LastRun
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.timings import parse_excluded_dates
from duetime.domain.times import DAY, MINUTE, SECOND, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.schedules.run_history import BackfillRun
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule


MAX_EXPANSION = 1_000
"""Maximum number of occurrences per expansion; a schedule that runs every second has sixty occurrences a minute."""


@frozen
class CatchUp:
    """The decision about missed occurrences.

    Attributes:
        run: the latest missed occurrence, if it may still run; otherwise `None`.
        missed: number of missed occurrences.
        note: description of the decision; empty if no occurrence was missed.
        until: the last instant whose occurrence the decision covers.
    """

    run: Occurrence | None = None
    missed: int = 0
    note: str = ""
    until: Millis = 0

    @property
    def skipped(self) -> int:
        """Number of missed occurrences that do not run."""
        return self.missed - (self.run is not None)


@frozen
class Expansion:
    """The occurrences in a period.

    Attributes:
        occurrences: the occurrences in order, including occurrences that do not run.
        until: all occurrences up to and including this instant have been processed; if no run is left, the last placed
            instant.
        next_at: the next instant of the timing after `until`; `None` if there is none.
        remaining_runs: number of runs that are left; `None` for no limit.
    """

    occurrences: tuple[Occurrence, ...]
    until: Millis
    next_at: Millis | None
    remaining_runs: int | None


def expand(
    schedule: Schedule, after: Millis, horizon: Millis, limit: int = MAX_EXPANSION, *, taken: int = 0
) -> Expansion:
    """Returns the occurrences in (after, horizon].

    Args:
        schedule: the schedule in its current form.
        after: the instant up to which the schedule is already expanded.
        horizon: expand up to this instant.
        limit: maximum number of occurrences.
        taken: number of runs that are already used up.
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
        # Later occurrences must still be placed if a placed run turns out not to start.
        return Expansion(tuple(found), found[-1].nominal if found else after, None, remaining)
    next_at = next_nominal(schedule, until)
    return Expansion(tuple(found), until, next_at, remaining)


def catch_up(schedule: Schedule, done: Millis, now: Millis) -> CatchUp:
    """Decides which of the occurrences missed in (done, now] run, without enumerating them.

    With `LATEST`, only the latest missed occurrence runs, if it is within the catch-up window. With `ALL`, the
    expansion places all missed occurrences within the window, and this function decides only about earlier occurrences.
    """
    earliest = now - schedule.spec.catch_up_seconds * SECOND
    until = now if schedule.spec.catch_up_mode is CatchUpMode.LATEST else earliest - 1
    missed = count_missed(schedule, done, until)
    if not missed:
        return CatchUp(until=done)
    run = _latest_run(schedule, done, until, earliest)
    return CatchUp(run, missed, _words(schedule, run, missed), until)


def count_missed(schedule: Schedule, done: Millis, now: Millis) -> int:
    """Number of occurrences missed in (done, now], without those that their user stopped, skipped or moved away.

    The number is 0 if no runs are left, because then none of them would have run.
    """
    if schedule.remaining_runs == 0:
        return 0
    return count_between(schedule, done, now) - len(withheld(schedule, done, now))


def is_caught_up(schedule: Schedule, occurrence: Occurrence, missed_by: Millis) -> bool:
    """Whether an occurrence was missed and is run now, because its schedule runs all missed occurrences."""
    return schedule.spec.catch_up_mode is CatchUpMode.ALL and occurrence.nominal <= missed_by


def latest_occurrence(schedule: Schedule, until: Millis) -> Occurrence | None:
    """The latest occurrence up to an instant, or the one that a calendar moved past it if the latest does not run."""
    nominal = previous_nominal(schedule, until + 1)
    return None if nominal is None else _latest_run(schedule, -1, until, nominal) or judged(schedule, nominal)


def _latest_run(schedule: Schedule, done: Millis, until: Millis, earliest: Millis) -> Occurrence | None:
    """The latest occurrence in (done, until] that runs; `None` if it runs before `earliest`, or there is none."""
    nominal = previous_nominal(schedule, until + 1)
    while nominal is not None and nominal > done:
        occurrence = judged(schedule, nominal)
        if occurrence.runs:
            return occurrence if occurrence.at >= earliest else None
        # A calendar may have moved an earlier occurrence to a time after `earliest`.
        is_move = schedule.spec.on_excluded is OnExcluded.MOVE and covering(schedule.calendars, nominal) is not None
        if nominal < earliest and not is_move:
            return None
        nominal = previous_nominal(schedule, _idle_since(schedule, occurrence))
    return None


def _idle_since(schedule: Schedule, occurrence: Occurrence) -> Millis:
    """The start of a period up to an occurrence that does not run, in which no other occurrence runs either."""
    spec, nominal = schedule.spec, occurrence.nominal
    if nominal in schedule.stopped or changed_of(spec.changed_occurrences, nominal) is not None:
        return nominal
    span = parse_excluded_dates(spec.excluded_dates).span_around(nominal, spec.clock.zone)
    if span is None:
        span = covering(schedule.calendars, nominal)
    start = nominal if span is None else span.start
    # Occurrences that a user moved run even at excluded times.
    moved = (each.at + 1 for each in spec.changed_occurrences if each.at is not None and each.at < nominal)
    return max([start, *moved])


def _words(schedule: Schedule, run: Occurrence | None, missed: int) -> str:
    count = "1 occurrence was missed" if missed == 1 else f"{missed} occurrences were missed"
    if run is None:
        return f"{count}: none runs, because each is excluded or late by more than {schedule.spec.catch_up_seconds} s"
    return f"{count}: the one at {run.key} runs" + (f", {missed - 1} skipped" if missed > 1 else "")


@frozen
class TimingExpansion:
    """An expansion of a schedule's timing.

    Attributes:
        runs: the occurrences to place, in order; a missed occurrence that runs comes first.
        after: the schedule once these occurrences have been placed.
        next_at: the time of the next expansion; `None` if there is no later expansion.
        more: whether another expansion must follow at once because the limit was reached.
    """

    runs: tuple[Occurrence, ...]
    after: StoredSchedule
    next_at: Millis | None
    more: bool


@frozen
class BackfillExpansion:
    """The next part of a backfill.

    Attributes:
        occurrences: occurrences to place, in order.
        after: the backfill once these occurrences have been placed.
        more: whether another expansion must follow at once because the limit was reached.
    """

    occurrences: tuple[Occurrence, ...]
    after: BackfillRun
    more: bool


def expand_timing(
    stored: StoredSchedule,
    schedule: Schedule,
    until: Millis,
    horizon: Millis,
    now: Millis,
    delay: Millis,
    *,
    has_open_runs: bool = False,
) -> TimingExpansion:
    """Expands a schedule's timing.

    Args:
        stored: the schedule after the decision about missed occurrences.
        schedule: the schedule in computable form.
        until: expand up to this instant; at most `horizon`.
        horizon: how far ahead occurrences are placed.
        now: the time.
        delay: how long after its last occurrence the schedule ends, in milliseconds.
        has_open_runs: whether all remaining runs are placed and some have not started.
    """
    expansion = expand(schedule, stored.done, until)
    runs = [each for each in expansion.occurrences if each.runs]
    skipped = _newly_skipped(stored, expansion.occurrences)
    if stored.owed is not None:
        runs.insert(0, stored.owed)
    next_at = expansion.next_at
    after = replace(
        stored,
        done=expansion.until,
        remaining_runs=expansion.remaining_runs,
        owed=None,
        last_run=_last(stored, runs),
        runs_started=stored.runs_started + len(runs),
        runs_skipped=stored.runs_skipped + len(skipped),
    )
    if expansion.next_at is None:
        # The schedule ends only when its last occurrence is due, so that the schedule can be changed until then.
        ends_at = max((each.due_at for each in runs), default=after.last_run.nominal if after.last_run else now)
        is_to_settle = after.remaining_runs == 0 and bool(runs or has_open_runs)
        if is_to_settle and next_nominal(replace(schedule, remaining_runs=None), after.done) is not None:
            next_at = now + min(max(MINUTE, now - ends_at), DAY)
        elif ends_at > now:
            next_at = ends_at + delay + MINUTE
        else:
            after = replace(after, state=ScheduleState.ENDED)
    more = expansion.next_at is not None and expansion.next_at <= horizon
    return TimingExpansion(tuple(runs), _with_remarks(after, skipped, now), next_at, more)


def with_runs_given_back(stored: StoredSchedule, schedule: Schedule, runs: int, now: Millis) -> StoredSchedule:
    """A copy that allows more runs, because some placed runs will not start.

    Occurrences whose time passed while no runs were left are dropped, as if they came after the last run.

    Args:
        stored: the schedule.
        schedule: the schedule in computable form.
        runs: number of additional runs.
        now: the time.
    """
    if stored.remaining_runs is None or stored.runs_left is None or runs <= 0:
        return stored
    remaining = min(stored.remaining_runs + runs, stored.runs_left)
    if remaining <= stored.remaining_runs:
        return stored
    after = replace(stored, remaining_runs=remaining)
    if stored.remaining_runs or stored.done >= now or stored.is_permanent:
        return after
    passed = count_between(schedule, stored.done, now)
    after = replace(after, done=now, runs_skipped=after.runs_skipped + passed)
    if not passed:
        return after
    first = next_nominal(replace(schedule, remaining_runs=None), stored.done)
    key = "" if first is None else stored.spec.clock.zone.text_at(first)
    more = f" (and {passed - 1} more)" if passed > 1 else ""
    return after.remarked(now, key, f"no run was left, because runs planned before had not started{more}")


def decide_missed(
    stored: StoredSchedule, schedule: Schedule, missed_by: Millis, now: Millis
) -> tuple[StoredSchedule, CatchUp]:
    """Stores the decision about missed occurrences in the schedule, so that later expansions follow this decision.

    Args:
        stored: the schedule.
        schedule: the schedule in computable form.
        missed_by: occurrences up to and including this instant were missed.
        now: the time.
    """
    found = catch_up(schedule, stored.done, missed_by)
    if not found.missed:
        return stored, found
    remaining = stored.remaining_runs
    if remaining is not None and found.run is not None:
        remaining -= 1
    apart = withheld(schedule, stored.done, found.until)
    skipped = _newly_skipped(stored, apart)
    decided = replace(
        stored,
        done=found.until,
        remaining_runs=remaining,
        owed=found.run,
        runs_skipped=stored.runs_skipped + found.skipped + len(skipped),
    )
    decided = _with_remarks(decided, skipped, now)
    key = _first_skipped(schedule, stored.done, found, apart) if found.skipped else ""
    return decided.remarked(now, key, found.note), found


def _first_skipped(schedule: Schedule, done: Millis, found: CatchUp, apart: Iterable[Occurrence]) -> str:
    """The key of the first missed occurrence that does not run; there must be one."""
    others = {each.nominal for each in (found.run, *apart) if each is not None}
    nominal = next_nominal(schedule, done)
    while nominal in others:
        nominal = next_nominal(schedule, nominal)
    return "" if nominal is None else schedule.spec.clock.zone.text_at(nominal)


def expand_backfill(
    schedule: Schedule, run: BackfillRun, horizon: Millis, now: Millis, limit: int, known: KnownRuns | None = None
) -> BackfillExpansion:
    """Expands one backfill.

    Args:
        schedule: the backfill's schedule.
        run: the backfill with its progress.
        horizon: how far ahead occurrences are placed.
        now: the time.
        limit: maximum number of occurrences.
        known: which occurrences already have a run, and up to which instant this is known; `None` if all occurrences
            run.
    """
    found: list[Occurrence] = []
    has_run = frozenset() if known is None else known.instants
    for occurrence, cursor in steps(schedule, run.backfill, run.occurrences, run.cursor, has_run):
        if occurrence.due_at > horizon:
            return BackfillExpansion(tuple(found), run, more=False)
        if len(found) >= limit or (known is not None and occurrence.nominal > known.until):
            return BackfillExpansion(tuple(found), run, more=True)
        if occurrence.runs:
            found.append(occurrence)
        run = replace(run, cursor=cursor)
    return BackfillExpansion(tuple(found), replace(run, finished_at=now), more=False)


def _last(stored: StoredSchedule, runs: Sequence[Occurrence]) -> LastRun | None:
    if not runs:
        return stored.last_run
    return LastRun(stored.id_of(runs[-1]), runs[-1].nominal, stored.revision_of(runs[-1].nominal))


def _newly_skipped(stored: StoredSchedule, occurrences: Sequence[Occurrence]) -> Sequence[Occurrence]:
    """The occurrences that do not run and are not counted elsewhere."""
    # Occurrences that a user stopped were counted when they were placed. Occurrences that a user moved are counted at
    # the time to which they were moved.
    apart = stored.stopped_instants | {each.nominal for each in stored.spec.changed_occurrences if each.at is not None}
    return [each for each in occurrences if not each.runs and each.nominal not in apart]


def _with_remarks(stored: StoredSchedule, skipped: Sequence[Occurrence], now: Millis) -> StoredSchedule:
    """A copy of the schedule with one remark for each reason why occurrences were skipped."""
    counts = Counter(each.note for each in skipped)
    firsts = {each.note: each for each in reversed(skipped)}
    for note, first in sorted(firsts.items(), key=lambda pair: pair[1].nominal):
        more = f" (and {counts[note] - 1} more)" if counts[note] > 1 else ""
        stored = stored.remarked(now, first.key, note + more)
    return stored
