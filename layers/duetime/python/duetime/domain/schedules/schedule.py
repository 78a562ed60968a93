"""A schedule in computable form: its timing, its calendars, and rules for occurrences that cannot run on time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CALENDARS, MAX_CATCH_UP_SECONDS, MAX_DATES, MAX_JITTER_SECONDS, MAX_NAME_LENGTH
from duetime.domain.schedules.calendars import Searched
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.excluded_dates import parse_excluded_dates
from duetime.domain.schedules.recurrence_builder import EXTRA_DATES, recurrence_of, with_moved
from duetime.domain.schedules.timings import Permanent, Timing, parse_dates

if TYPE_CHECKING:
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.schedules.recurrences import Recurrence
    from duetime.domain.schedules.revisions import RevisionEnd
    from duetime.domain.schedules.rolled_recurrence import RolledRecurrence
    from duetime.domain.times import Millis


class ScheduleState(StrEnum):
    """The state of a schedule.

    Attributes:
        ACTIVE: it creates tasks.
        PAUSED: by its owner, or after a failure.
        ENDED: it has no more occurrences.
    """

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(frozen=True)
class Schedule:
    """The computable form of a schedule.

    Attributes:
        id: its own id.
        spec: the owner's definition; names of calendars and `remaining_runs` are not used here.
        timing: the parsed timing.
        created_at: rates without a start are counted from here.
        calendars: its calendars in their present form.
        remaining_runs: number of runs after the placed ones; `None` for no limit.
        revision: incremented with every change; occurrences carry it.
        revision_ends: ends of the earlier revisions with the same timing, latest last.
        stopped: instants that do not run, because their user stopped their tasks, or ran them early.
        searched: a cached period that its calendars exclude; a copy with other fields starts a new one.
    """

    id: str
    spec: ScheduleSpec
    timing: Timing
    created_at: Millis
    calendars: tuple[Calendar, ...] = ()
    remaining_runs: int | None = None
    revision: int = 1
    revision_ends: tuple[RevisionEnd, ...] = ()
    stopped: frozenset[Millis] = frozenset()
    searched: Searched = field(default_factory=Searched, init=False, compare=False, repr=False)

    @property
    def anchor(self) -> Millis:
        """Start of a rate, or of an interval without a start; the first occurrence of a rate."""
        return self.created_at if self.spec.start_at is None else self.spec.start_at

    @cached_property
    def recurrence(self) -> Recurrence:
        """The recurrence of its timing, including rolled and moved occurrences."""
        moved = tuple(each.at for each in self.spec.changed_occurrences if each.at is not None)
        if self.calendars and self.rolled is not None:
            return with_moved(self.rolled, moved)
        return recurrence_of(self.timing, self.spec.clock, self.anchor, self.spec.extra_dates, moved)

    @property
    def unchanged_recurrence(self) -> Recurrence:
        """The recurrence of its timing, ignoring occurrences that its user moved."""
        if self.calendars and self.rolled is not None:
            return self.rolled
        return recurrence_of(self.timing, self.spec.clock, self.anchor, self.spec.extra_dates)

    @cached_property
    def rolled(self) -> RolledRecurrence | None:
        """The recurrence of its timing, rolled to days that are not excluded; `None` if it is not rolled."""
        spec = self.spec
        if not spec.on_excluded.step:
            return None
        # Rarely needed, so not imported with the module.
        from duetime.domain.schedules.rolled_recurrence import RolledRecurrence, roll_rule  # noqa: PLC0415 - as said

        inner = recurrence_of(self.timing, spec.clock, self.anchor, spec.extra_dates)
        rule = roll_rule(spec.clock, self.calendars, spec.on_excluded.step, spec.excluded_dates)
        return RolledRecurrence(inner, rule)

    @property
    def is_permanent(self) -> bool:
        """Whether each run is scheduled from the end of the previous one."""
        return isinstance(self.timing, Permanent)


def check(schedule: Schedule) -> Schedule:
    """Validates that the fields of a schedule fit together, and returns it.

    Raises:
        FieldInvalid: a field is invalid; names it and gives the reason.
    """
    spec = schedule.spec
    bounds = (
        ("name", len(spec.name), MAX_NAME_LENGTH, "characters"),
        ("calendars", len(schedule.calendars), MAX_CALENDARS, "calendars"),
        ("jitter_seconds", spec.jitter_seconds, MAX_JITTER_SECONDS, "seconds"),
        ("spread_seconds", spec.spread_seconds, MAX_JITTER_SECONDS, "seconds"),
        ("excluded_dates", len(spec.excluded_dates), MAX_DATES, "dates"),
        ("catch_up_seconds", spec.catch_up_seconds, MAX_CATCH_UP_SECONDS, "seconds"),
    )
    for name, amount, most, unit in bounds:
        if not 0 <= amount <= most:
            raise FieldInvalid(name, f"should be 0 to {most} {unit}", FaultCode.OUT_OF_RANGE)
    if schedule.remaining_runs is not None and schedule.remaining_runs < 0:
        raise FieldInvalid("remaining_runs", "should not be negative", FaultCode.OUT_OF_RANGE)
    if spec.end_at is not None and spec.start_at is not None and spec.end_at < spec.start_at:
        raise FieldInvalid("end_at", "should not be before start_at", FaultCode.CONFLICT)
    _check_permanent(schedule)
    _check_expectations(schedule)
    parse_excluded_dates(spec.excluded_dates)
    if spec.extra_dates:
        parse_dates(spec.extra_dates, EXTRA_DATES)
    return schedule


def _check_permanent(schedule: Schedule) -> None:
    """Rejects fields that require a timing by the clock."""
    spec = schedule.spec
    given = {
        "jitter_seconds": spec.jitter_seconds,
        "spread_seconds": spec.spread_seconds,
        "extra_dates": spec.extra_dates,
        "excluded_dates": spec.excluded_dates,
        "overlap": spec.overlap is not Overlap.SKIP,
        "on_excluded": spec.on_excluded.step,
    }
    name = next((name for name, value in given.items() if value), None)
    if schedule.is_permanent and name is not None:
        raise FieldInvalid(
            name, "has no effect on a permanent schedule, whose runs follow one another", FaultCode.CONFLICT
        )


def _check_expectations(schedule: Schedule) -> None:
    spec = schedule.spec
    expected = {
        "expect_success_by": spec.expect_success_by,
        "expect_every_seconds": spec.expect_every_seconds,
        "expect_duration_factor": spec.expect_duration_factor,
    }
    if spec.expect_duration_factor is not None and spec.task.notify_on is None:
        raise FieldInvalid("expect_duration_factor", "needs task.notify_on, where it is reported", FaultCode.CONFLICT)
    for name, value in expected.items():
        if value is not None and schedule.is_permanent:
            raise FieldInvalid(
                name, "is not supported for permanent schedules, which have no times", FaultCode.CONFLICT
            )


def next_permanent_run(schedule: Schedule, ended_at: Millis) -> Millis | None:
    """The next run of a permanent schedule after its last run ended; `None` if the schedule has ended."""
    if not isinstance(schedule.timing, Permanent) or schedule.remaining_runs == 0:
        return None
    at = max(ended_at + schedule.timing.pause, schedule.spec.start_at or 0)
    return None if schedule.spec.end_at is not None and at > schedule.spec.end_at else at
