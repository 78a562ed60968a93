"""A schedule: what is to be done again and again, when, and what happens to an occurrence that cannot run then."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_CALENDARS, MAX_CATCH_UP_SECONDS, MAX_JITTER_SECONDS, MAX_NAME_LENGTH
from duetime.domain.schedules.calendars import Searched
from duetime.domain.schedules.recurrence_builder import recurrence_of
from duetime.domain.schedules.recurrences import UTC_CLOCK, Clock, Recurrence
from duetime.domain.schedules.timings import Permanent, Timing

if TYPE_CHECKING:
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.tasks.task import TaskSpec
    from duetime.domain.times import Millis

DEFAULT_CATCH_UP_SECONDS = 3600


class Overlap(StrEnum):
    """What happens to an occurrence that is due while the one before still runs.

    Attributes:
        SKIP: it does not run.
        BUFFER_ONE: one waits and runs afterwards.
        ALLOW_ALL: they run side by side.
    """

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    ALLOW_ALL = "allow_all"


class OnExcluded(StrEnum):
    """What happens to an occurrence at a time that a calendar does not let work run.

    Attributes:
        SKIP: it does not run.
        MOVE: it runs at the next working moment, once for all that were moved there.
    """

    SKIP = "skip"
    MOVE = "move"


class ScheduleState(StrEnum):
    """Where a schedule stands.

    Attributes:
        ACTIVE: it produces tasks.
        PAUSED: its user, or a failure, holds it.
        ENDED: nothing is to come any more.
    """

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A recurring definition.

    Attributes:
        id: its own id.
        task: what each occurrence runs; opaque here.
        timing: when.
        clock: in whose zone, and what happens to times that a clock leaves out or repeats.
        calendars: the calendars it names, as they are now.
        on_excluded: what happens to an occurrence that a calendar excludes.
        jitter_seconds: an occurrence is delayed by up to this much, always by the same, never past the next one.
        created_at: when it was made; a rate without a start is counted from here.
        start_at: nothing comes before it; a rate is counted from here.
        end_at: nothing comes after it.
        remaining_runs: how many may still run after those that were placed; `None` for no limit.
        catch_up_seconds: how late the latest missed occurrence may still run.
        pause_on_failure: whether a failed task pauses it.
        note: why it is paused, in its user's words.
        revision: grows with every change; occurrences carry it.
        revision_ends: when the revisions before it ended that had the same timing, the latest last.
        tzdata: version of the time zone rules it was last computed with.
        searched: where its calendars were found closed; a copy with other fields begins again.
    """

    id: str
    owner: str
    task: TaskSpec
    timing: Timing
    created_at: Millis
    name: str = ""
    clock: Clock = UTC_CLOCK
    calendars: tuple[Calendar, ...] = ()
    on_excluded: OnExcluded = OnExcluded.SKIP
    jitter_seconds: int = 0
    start_at: Millis | None = None
    end_at: Millis | None = None
    remaining_runs: int | None = None
    overlap: Overlap = Overlap.SKIP
    catch_up_seconds: int = DEFAULT_CATCH_UP_SECONDS
    pause_on_failure: bool = False
    state: ScheduleState = ScheduleState.ACTIVE
    note: str = ""
    revision: int = 1
    revision_ends: tuple[Millis, ...] = ()
    tzdata: str = ""
    searched: Searched = field(default_factory=Searched, init=False, compare=False, repr=False)

    @property
    def anchor(self) -> Millis:
        """From where a rate or an interval without a start is counted; it is the first occurrence of a rate."""
        return self.created_at if self.start_at is None else self.start_at

    @property
    def recurrence(self) -> Recurrence:
        """Its timing in its zone."""
        return recurrence_of(self.timing, self.clock, self.anchor)

    @property
    def is_permanent(self) -> bool:
        """Whether its next run comes after the last one's end, and no clock says when."""
        return isinstance(self.timing, Permanent)


def check(schedule: Schedule) -> Schedule:
    """The schedule itself, if its fields fit together.

    Raises:
        FieldInvalid: one of them does not; names it and says why.
    """
    bounds = (
        ("name", len(schedule.name), MAX_NAME_LENGTH, "characters"),
        ("calendars", len(schedule.calendars), MAX_CALENDARS, "calendars"),
        ("jitter_seconds", schedule.jitter_seconds, MAX_JITTER_SECONDS, "seconds"),
        ("catch_up_seconds", schedule.catch_up_seconds, MAX_CATCH_UP_SECONDS, "seconds"),
    )
    for name, amount, most, unit in bounds:
        if not 0 <= amount <= most:
            raise FieldInvalid(name, f"should be 0 to {most} {unit}")
    if schedule.remaining_runs is not None and schedule.remaining_runs < 0:
        raise FieldInvalid("remaining_runs", "should not be negative")
    if schedule.end_at is not None and schedule.start_at is not None and schedule.end_at < schedule.start_at:
        raise FieldInvalid("end_at", "should not be before start_at")
    if schedule.is_permanent and (schedule.overlap is not Overlap.SKIP or schedule.jitter_seconds):
        name = "jitter_seconds" if schedule.jitter_seconds else "overlap"
        raise FieldInvalid(name, "means nothing for a permanent schedule, which runs one after the other")
    return schedule


def next_permanent_run(schedule: Schedule, ended_at: Millis) -> Millis | None:
    """When a permanent schedule runs next, after its last run ended; `None` if it has come to its end."""
    if not isinstance(schedule.timing, Permanent) or schedule.remaining_runs == 0:
        return None
    at = max(ended_at + schedule.timing.pause, schedule.start_at or 0)
    return None if schedule.end_at is not None and at > schedule.end_at else at
