"""What a client says of a schedule, and what it wants updated; its timing is kept as it was written."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.recurrences import UTC_CLOCK, Clock
from duetime.domain.schedules.timings import SEVERAL, Several, SingleTiming, Timing, parse_timing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.domain.times import Millis


DEFAULT_CATCH_UP_SECONDS = 3600
_TIMING = (
    *("written", "clock", "extra_dates", "excluded_dates", "calendars", "on_excluded"),
    *("spread_seconds", "jitter_seconds", "start_at", "end_at", "changed_occurrences"),
)
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
        PREVIOUS_DAY: it runs at the same time of the latest earlier day on which that is not excluded.
        NEXT_DAY: it runs at the same time of the first later day on which that is not excluded.
    """

    SKIP = "skip"
    MOVE = "move"
    PREVIOUS_DAY = "previous_day"
    NEXT_DAY = "next_day"

    @property
    def step(self) -> int:
        """Which days are tried: 1 for later ones, -1 for earlier ones, 0 for none."""
        return (self is OnExcluded.NEXT_DAY) - (self is OnExcluded.PREVIOUS_DAY)


class CatchUpMode(StrEnum):
    """Which of the missed occurrences run that are not too late.

    Attributes:
        LATEST: the latest of them.
        ALL: all of them, in order.
    """

    LATEST = "latest"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Written:
    """A timing as it was written: exactly one of these is given, apart from the dialect, which goes with `cron`."""

    cron: str | None = None
    rate: str | None = None
    interval: str | None = None
    dates: tuple[str, ...] | None = None
    permanent: int | None = None
    dialect: Dialect = Dialect.CRON
    timings: tuple[Written, ...] | None = None

    @property
    def timing(self) -> Timing:
        """What it means.

        Raises:
            FieldInvalid: it cannot be accepted; says why.
        """
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != SEVERAL}
        if self.timings is None:
            return parse_timing(**given)
        if beside := next((name for name in given if getattr(self, name) not in (None, Dialect.CRON)), None):
            raise FieldInvalid(beside, "cannot be given beside timings", FaultCode.CONFLICT)
        return Several(tuple(each.one_of_several(index) for index, each in enumerate(self.timings)))

    def one_of_several(self, index: int) -> SingleTiming:
        """What it means as one of several timings, which the error's field names.

        Raises:
            FieldInvalid: it cannot be accepted; says why.
        """
        at = f"{SEVERAL}[{index}]"
        if self.permanent is not None or self.timings is not None:
            raise FieldInvalid(at, "should be one of cron, rate, interval and dates", FaultCode.CONFLICT)
        try:
            timing = self.timing
        except FieldInvalid as refusal:
            raise refusal.inside(at) from None
        assert not isinstance(timing, Several)  # noqa: S101 - no timings are given
        return timing


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
        extra_dates: date-times that its timing means besides.
        excluded_dates: days, and date-times, at which nothing runs.
        spread_seconds: each occurrence is delayed by the same part of this, which follows from the schedule's name.
        jitter_seconds: an occurrence is delayed by up to this much, always by the same, never past the next one.
        start_at: nothing comes before it; a rate is counted from here.
        end_at: nothing comes after it.
        remaining_runs: how many may run; `None` for no limit.
        catch_up_seconds: how late a missed occurrence may still run.
        catch_up_mode: which of those run.
        pause_on_failure: whether a failed task pauses it.
        expect_success_by: a local time of day by which a run of that day must have succeeded, `06:00`.
        expect_every_seconds: the longest time in which no run succeeds.
        changed_occurrences: those that its user skips or moves, in order; an update of its fields leaves them alone.
    """

    written: Written
    task: TaskSpec
    name: str = ""
    clock: Clock = UTC_CLOCK
    calendars: tuple[str, ...] = ()
    on_excluded: OnExcluded = OnExcluded.SKIP
    extra_dates: tuple[str, ...] = ()
    excluded_dates: tuple[str, ...] = ()
    spread_seconds: int = 0
    jitter_seconds: int = 0
    start_at: Millis | None = None
    end_at: Millis | None = None
    remaining_runs: int | None = None
    overlap: Overlap = Overlap.SKIP
    catch_up_seconds: int = DEFAULT_CATCH_UP_SECONDS
    catch_up_mode: CatchUpMode = CatchUpMode.LATEST
    pause_on_failure: bool = False
    expect_success_by: str | None = None
    expect_every_seconds: int | None = None
    changed_occurrences: tuple[ChangedOccurrence, ...] = ()

    @property
    def is_delayed(self) -> bool:
        """Whether occurrences are due after the instants that they stand for, without any calendar."""
        return bool(self.spread_seconds or self.jitter_seconds)

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


@dataclass(frozen=True, slots=True)
class ChangedOccurrence:
    """What a user wants of one occurrence.

    Attributes:
        nominal: the instant that the timing means; nothing runs there.
        at: when it runs instead; `None` if it does not.
    """

    nominal: Millis
    at: Millis | None = None


def changed_of(changes: Iterable[ChangedOccurrence], nominal: Millis) -> ChangedOccurrence | None:
    """The change of the occurrence of an instant."""
    return next((each for each in changes if each.nominal == nominal), None)


def moved_to(changes: Iterable[ChangedOccurrence], at: Millis) -> ChangedOccurrence | None:
    """The change that moved an occurrence to an instant."""
    return next((each for each in changes if each.at == at), None)
