"""A schedule in computable form, with its timing, its calendars, and rules for occurrences that cannot run on time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.ids import TaskId
from duetime.domain.limits import (
    MAX_CALENDARS,
    MAX_CATCH_UP_SECONDS,
    MAX_DATES,
    MAX_JITTER_SECONDS,
    MAX_NAME_LENGTH,
    MAX_REVISION_ENDS,
)
from duetime.domain.schedules.calendars import Searched
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.recurrence_builder import EXTRA_DATES, recurrence_of, with_moved
from duetime.domain.schedules.timings import Permanent, Timing, parse_dates, parse_excluded_dates
from duetime.domain.tasks.approvals import was_decided
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.schedules.recurrences import Recurrence
    from duetime.domain.schedules.rolled_recurrence import RolledRecurrence
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


NO_REVISION = 0
"""Stands for the revision of occurrences that the timing no longer includes."""
_STOPPED = LEASED | {State.PAUSED, State.SUCCEEDED, State.FAILED, State.ROLLED_BACK}


@frozen
class RevisionEnd:
    """The end of a revision with the same timing as later revisions.

    Occurrences that the revision placed up to the end still run.

    Attributes:
        until: the last instant that belongs to the revision.
        revision: its number.
        since: number of the first revision that was merged into this revision, or this revision's own number.
    """

    until: Millis
    revision: int
    since: int


@frozen
class StoppedOccurrence:
    """A placed occurrence that its user stopped, or ran early, before the schedule was changed.

    The class also describes an occurrence that was placed before a pause and is due after the pause, because such an
    occurrence is stored nowhere else.

    Attributes:
        nominal: its instant; no later revision places it again.
        task_id: its task.
        revision: revision under which the occurrence was placed, so that it still runs if its user resumes it.
    """

    nominal: Millis
    task_id: TaskId
    revision: int


def revision_of(nominal: Millis, revision: int, ends: Sequence[RevisionEnd]) -> int:
    """The revision that an occurrence has, no matter when the occurrence is placed.

    Args:
        nominal: its instant.
        revision: the current revision.
        ends: ends of the earlier revisions with the same timing, latest last.
    """
    return next((end.revision for end in ends if nominal <= end.until), revision)


def is_of(placed_by: int, nominal: Millis, revision: int, ends: Sequence[RevisionEnd]) -> bool:
    """Whether an occurrence that was placed by a revision may still run."""
    for end in ends:
        if nominal <= end.until:
            return end.since <= placed_by <= end.revision
    return placed_by == revision


def with_end(ends: Sequence[RevisionEnd], until: Millis, revision: int) -> tuple[RevisionEnd, ...]:
    """Adds a revision's end. If there are too many ends, the two oldest ends are merged, which drops no occurrence."""
    after = (*ends, RevisionEnd(until, revision, revision))
    while len(after) > MAX_REVISION_ENDS:
        oldest, following, *others = after
        after = (replace(following, since=oldest.since), *others)
    return after


def is_to_begin(task: Task) -> bool:
    """Whether an occurrence is open and none of its attempts has ended."""
    return not task.is_terminal and not task.attempt_history and task.state is not State.ROLLING_BACK


def never_began(task: Task) -> bool:
    """Whether an occurrence ended before its target was called, even if its schedule had allowed it to start."""
    was_called = bool(task.attempt_history) or task.started_at is not None
    return task.is_terminal and not task.erased and not was_called and not was_decided(task)


def is_stopped(task: Task) -> bool:
    """Whether a user stopped the task of a future occurrence or ran it early."""
    if task.erased or task.state in _STOPPED:
        return True
    if task.state is State.CANCELLED:
        # An occurrence that was dropped by the schedule itself may now run.
        return not task.was_dropped
    return bool(task.attempt_history) or was_decided(task)


@frozen
class Derivation:
    """Bits that are derived from a schedule, the schedule's revision and an occurrence's key.

    Attributes:
        tail: 64 bits for the task's id.
        spread: 16 bits that determine its shard.
        delay: 64 bits that determine its jitter.
    """

    tail: int
    spread: int
    delay: int

    def task_id(self, home: Millis, shards: int) -> TaskId:
        """The id of the occurrence's task.

        Args:
            home: the later of its due time and now; stored with the schedule before the task is created.
            shards: number of shards.
        """
        return TaskId.of(home, self.spread % shards, self.tail)


def derived(schedule_id: str, revision: int, key: str, purpose: str = "") -> Derivation:
    """Derives the bits of an occurrence.

    Args:
        schedule_id: the schedule's id.
        revision: its revision.
        key: the occurrence's key.
        purpose: distinguishes additional tasks for the occurrence from its regular task, for example by a backfill's
            id.
    """
    digest = sha256("\0".join((schedule_id, str(revision), key, purpose)).encode()).digest()
    return Derivation(
        int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:10], "big"), int.from_bytes(digest[10:18], "big")
    )


def spread_offset(name: str, spread_seconds: int) -> Millis:
    """The constant delay of all occurrences of a schedule, in whole seconds, derived from its name alone."""
    digest = sha256(f"spread\0{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (spread_seconds + 1) * SECOND


class ScheduleState(StrEnum):
    """The state of a schedule.

    Attributes:
        ACTIVE: the schedule creates tasks.
        PAUSED: its owner or a failure paused the schedule.
        ENDED: the schedule has no more occurrences.
    """

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(frozen=True)
class Schedule:
    """The computable form of a schedule.

    Attributes:
        id: the schedule's own id.
        spec: the owner's definition; its calendar names and `remaining_runs` are not used here.
        timing: the parsed timing.
        created_at: when the schedule was created, which is the start of rates without a start.
        calendars: the schedule's calendars in their current form.
        remaining_runs: number of runs after the placed runs; `None` for no limit.
        revision: incremented with every change; occurrences carry the revision.
        revision_ends: ends of the earlier revisions with the same timing, latest last.
        stopped: instants that are not run, because a user stopped their tasks or ran them early.
        searched: a cached period that its calendars exclude; a copy with other fields starts a new cache.
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
        """Start of a rate or of an interval without a start; a rate's first occurrence is at this time."""
        return self.created_at if self.spec.start_at is None else self.spec.start_at

    @cached_property
    def recurrence(self) -> Recurrence:
        """The recurrence of the schedule's timing, including rolled and moved occurrences."""
        moved = tuple(each.at for each in self.spec.changed_occurrences if each.at is not None)
        if self.calendars and self.rolled is not None:
            return with_moved(self.rolled, moved)
        return recurrence_of(self.timing, self.spec.clock, self.anchor, self.spec.extra_dates, moved)

    @property
    def unchanged_recurrence(self) -> Recurrence:
        """The recurrence of the schedule's timing, ignoring occurrences that its user moved."""
        if self.calendars and self.rolled is not None:
            return self.rolled
        return recurrence_of(self.timing, self.spec.clock, self.anchor, self.spec.extra_dates)

    @cached_property
    def rolled(self) -> RolledRecurrence | None:
        """The timing's recurrence, rolled to days that are not excluded; `None` if occurrences are not rolled."""
        spec = self.spec
        if not spec.on_excluded.step:
            return None
        # This module is imported here because it is rarely needed.
        from duetime.domain.schedules.rolled_recurrence import RolledRecurrence, roll_rule  # noqa: PLC0415 - as said

        inner = recurrence_of(self.timing, spec.clock, self.anchor, spec.extra_dates)
        rule = roll_rule(spec.clock, self.calendars, spec.on_excluded.step, spec.excluded_dates)
        return RolledRecurrence(inner, rule)

    @property
    def is_permanent(self) -> bool:
        """Whether each run is scheduled when the previous run ends."""
        return isinstance(self.timing, Permanent)


def check(schedule: Schedule) -> Schedule:
    """Validates that the fields of a schedule fit together, and returns the schedule.

    Raises:
        FieldInvalid: a field is invalid; the message names the field and the reason.
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
    """Rejects fields that have no effect on a permanent schedule."""
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
