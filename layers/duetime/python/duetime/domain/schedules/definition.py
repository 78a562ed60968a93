"""What a client says of a schedule, and what it wants updated; its timing is kept as it was written."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from duetime.domain.schedules.recurrences import UTC_CLOCK, Clock
from duetime.domain.schedules.timings import Dialect, Timing, parse_timing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import TaskSpec
    from duetime.domain.times import Millis

DEFAULT_CATCH_UP_SECONDS = 3600
_TIMING = ("written", "clock", "calendars", "on_excluded", "jitter_seconds", "start_at", "end_at")
"""Fields of `ScheduleSpec` that decide which occurrences there are, and when each is due."""
_OF_CLOCK = {"timezone": "zone", "dst_gap": "gap", "dst_fold": "fold"}


class Overlap(StrEnum):
    """What happens to an occurrence that is due while the previous one still runs.

    Attributes:
        SKIP: it does not run.
        BUFFER_ONE: one occurrence waits, and runs afterwards.
        BUFFER_ALL: all wait, up to `MAX_WAITING_RUNS`, and run one after the other.
        CANCEL_OTHER: the previous one is asked to stop; the latest runs once that has ended.
        REPLACE_OTHER: the previous one is asked to stop, and the latest runs at once, beside what is left of it.
        ALLOW_ALL: they run at the same time.
    """

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_OTHER = "cancel_other"
    REPLACE_OTHER = "replace_other"
    ALLOW_ALL = "allow_all"


class OnExcluded(StrEnum):
    """What happens to an occurrence at a time that a calendar excludes.

    Attributes:
        SKIP: it does not run.
        MOVE: it runs at the next time that is not excluded; several that are moved there run once.
    """

    SKIP = "skip"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class Written:
    """A timing as it was written: exactly one of the first five is given."""

    cron: str | None = None
    rate: str | None = None
    interval: str | None = None
    dates: tuple[str, ...] | None = None
    permanent: int | None = None
    dialect: Dialect = Dialect.CRON

    @property
    def timing(self) -> Timing:
        """What it means.

        Raises:
            FieldInvalid: it cannot be accepted; says why.
        """
        return parse_timing(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """What a client asks for.

    Attributes:
        written: when, as it was written.
        task: what each occurrence runs; its due time does not count.
        name: its id among its owner's schedules; empty to have one made up.
        clock: in whose zone, and what becomes of times that a clock leaves out or repeats.
        calendars: names of calendars.
        on_excluded: what becomes of an occurrence that a calendar excludes.
        jitter_seconds: an occurrence is delayed by up to this much, always by the same, never past the next one.
        start_at: nothing comes before it; a rate is counted from here.
        end_at: nothing comes after it.
        remaining_runs: how many may run; `None` for no limit.
        catch_up_seconds: how late the latest missed occurrence may still run.
        pause_on_failure: whether a failed task pauses it.
        expect_success_by: a local time of day by which a run of that day must have succeeded, `06:00`.
        expect_every_seconds: the longest time in which no run succeeds.
    """

    written: Written
    task: TaskSpec
    name: str = ""
    clock: Clock = UTC_CLOCK
    calendars: tuple[str, ...] = ()
    on_excluded: OnExcluded = OnExcluded.SKIP
    jitter_seconds: int = 0
    start_at: Millis | None = None
    end_at: Millis | None = None
    remaining_runs: int | None = None
    overlap: Overlap = Overlap.SKIP
    catch_up_seconds: int = DEFAULT_CATCH_UP_SECONDS
    pause_on_failure: bool = False
    expect_success_by: str | None = None
    expect_every_seconds: int | None = None

    def has_timing_of(self, other: ScheduleSpec) -> bool:
        """Whether both mean the same times: then what one has placed is what the other would place."""
        return all(getattr(self, name) == getattr(other, name) for name in _TIMING)


class TimingUpdate(Protocol):
    """What an update makes of a timing."""

    def of(self, before: Written) -> Written:
        """The timing with the update.

        Raises:
            FieldInvalid: it cannot be accepted; says why.
        """
        ...


class TaskUpdate(Protocol):
    """What an update makes of the task of a schedule."""

    @property
    def has_payload(self) -> bool:
        """Whether it gives another payload."""
        ...

    def of(self, before: TaskSpec) -> TaskSpec:
        """The task with the update.

        Raises:
            RequestError: it cannot be accepted; says why.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScheduleUpdate:
    """What a client wants changed.

    Attributes:
        fields: new values by field of `ScheduleSpec`; `timezone`, `dst_gap` and `dst_fold` stand for parts of its
            clock.
        timing: what becomes of its timing; `None` if that stays.
        task: what becomes of its task; `None` if that stays.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    timing: TimingUpdate | None = None
    task: TaskUpdate | None = None

    def of(self, spec: ScheduleSpec) -> ScheduleSpec:
        """The specification with the changes.

        Raises:
            RequestError: they cannot be accepted; says why.
        """
        clock = {_OF_CLOCK[name]: value for name, value in self.fields.items() if name in _OF_CLOCK}
        others = {name: value for name, value in self.fields.items() if name not in _OF_CLOCK}
        if self.timing is not None:
            others["written"] = self.timing.of(spec.written)
        if self.task is not None:
            others["task"] = self.task.of(spec.task)
        return replace(replace(spec, clock=replace(spec.clock, **clock)), **others)
