"""A schedule's definition as requested by a client, and updates of the definition. The timing is kept as written."""

from __future__ import annotations

from dataclasses import field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.recurrences import UTC_CLOCK, Clock
from duetime.domain.schedules.timings import SEVERAL, Several, SingleTiming, Timing, parse_timing
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.times import Millis


DEFAULT_CATCH_UP_SECONDS = 3600
_TIMING = (
    *("written", "clock", "extra_dates", "excluded_dates", "calendars", "on_excluded"),
    *("spread_seconds", "jitter_seconds", "start_at", "end_at", "changed_occurrences"),
)
"""Fields of `ScheduleSpec` that determine the occurrences and their due times."""
_OF_CLOCK = {"timezone": "zone", "dst_gap": "gap", "dst_fold": "fold"}


class Overlap(StrEnum):
    """What happens to an occurrence that is due while the previous run is still open.

    Attributes:
        SKIP: the occurrence does not run.
        BUFFER_ONE: one occurrence waits for the run to end.
        BUFFER_ALL: all occurrences wait, up to `MAX_WAITING_RUNS`, and run one after another.
        CANCEL_OTHER: the previous run is asked to stop, and the latest occurrence runs when that run has ended.
        REPLACE_OTHER: the previous run is asked to stop, and the latest occurrence runs at once.
        ALLOW_ALL: the runs are concurrent.
    """

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_OTHER = "cancel_other"
    REPLACE_OTHER = "replace_other"
    ALLOW_ALL = "allow_all"


class OnExcluded(StrEnum):
    """What happens to an occurrence at an excluded time.

    Attributes:
        SKIP: the occurrence does not run.
        MOVE: the occurrence runs at the next time that is not excluded; several occurrences moved to the same time run
            once.
        PREVIOUS_DAY: the occurrence runs at the same time on the latest earlier day on which that time is not excluded.
        NEXT_DAY: the occurrence runs at the same time on the first later day on which that time is not excluded.
    """

    SKIP = "skip"
    MOVE = "move"
    PREVIOUS_DAY = "previous_day"
    NEXT_DAY = "next_day"

    @property
    def step(self) -> int:
        """Direction of the search for another day: 1 for later, -1 for earlier, 0 for no search."""
        return (self is OnExcluded.NEXT_DAY) - (self is OnExcluded.PREVIOUS_DAY)


class CatchUpMode(StrEnum):
    """Which missed occurrences within the catch-up window run.

    Attributes:
        LATEST: only the latest missed occurrence.
        ALL: all missed occurrences, in order.
    """

    LATEST = "latest"
    ALL = "all"


@frozen
class Written:
    """A timing as written. Exactly one field is set, apart from the dialect, which is only used with `cron`."""

    cron: str | None = None
    rate: str | None = None
    interval: str | None = None
    dates: tuple[str, ...] | None = None
    permanent: int | None = None
    dialect: Dialect = Dialect.CRON
    timings: tuple[Written, ...] | None = None

    @property
    def timing(self) -> Timing:
        """Parses the timing.

        Raises:
            FieldInvalid: the timing is invalid; the error gives the reason.
        """
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != SEVERAL}
        if self.timings is None:
            return parse_timing(**given)
        if beside := next((name for name in given if getattr(self, name) not in (None, Dialect.CRON)), None):
            raise FieldInvalid(beside, "cannot be given beside timings", FaultCode.CONFLICT)
        return Several(tuple(each.one_of_several(index) for index, each in enumerate(self.timings)))

    def one_of_several(self, index: int) -> SingleTiming:
        """Parses the timing as one of several timings; errors name its index.

        Raises:
            FieldInvalid: the timing is invalid; the error gives the reason.
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


@frozen
class ScheduleSpec:
    """A client's request for a schedule.

    Attributes:
        written: the timing as written.
        task: the template of the schedule's tasks, without a due time.
        name: unique among the owner's schedules; empty for a generated name.
        clock: time zone, and rules for times that are skipped or repeated by clock changes.
        calendars: names of calendars.
        on_excluded: what happens to an occurrence that a calendar excludes.
        extra_dates: additional date-times.
        excluded_dates: days and date-times without occurrences.
        spread_seconds: upper bound of a constant delay of all occurrences, derived from the schedule's name.
        jitter_seconds: upper bound of each occurrence's own constant delay, which never extends beyond the next
            occurrence.
        start_at: no occurrence is before this time; rates start at this time.
        end_at: no occurrence is after this time.
        remaining_runs: maximum number of runs from now on; `None` for no limit.
        catch_up_seconds: how late a missed occurrence may still run.
        catch_up_mode: which missed occurrences run.
        pause_on_failure: whether a failed task pauses the schedule.
        expect_success_by: local time of day by which a run of that day must have succeeded, such as `06:00`.
        expect_every_seconds: longest allowed time without a success.
        expect_duration_factor: longest expected duration of a run, as a multiple of the median of its latest successes.
        changed_occurrences: occurrences that a user skipped or moved, in order; updates of other fields keep these
            changes.
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
    expect_duration_factor: float | None = None
    changed_occurrences: tuple[ChangedOccurrence, ...] = ()

    @property
    def is_delayed(self) -> bool:
        """Whether a spread or jitter makes occurrences due later than their instants, regardless of calendars."""
        return bool(self.spread_seconds or self.jitter_seconds)

    def has_timing_of(self, other: ScheduleSpec) -> bool:
        """Whether both specifications have the same occurrences, so that placed occurrences stay valid."""
        return all(getattr(self, name) == getattr(other, name) for name in _TIMING)


class TimingUpdate(Protocol):
    """An update of a timing."""

    def of(self, before: Written) -> Written:
        """Returns the updated timing.

        Raises:
            FieldInvalid: the result is invalid; the error gives the reason.
        """
        ...


class TemplateUpdate(Protocol):
    """An update of a schedule's task template."""

    @property
    def has_payload(self) -> bool:
        """Whether the update changes the payload."""
        ...

    def of(self, before: TaskSpec) -> TaskSpec:
        """Returns the updated task.

        Raises:
            RequestError: the result is invalid; the error gives the reason.
        """
        ...


@frozen
class ScheduleUpdate:
    """A client's request to update a schedule.

    Attributes:
        fields: new values of `ScheduleSpec` fields; `timezone`, `dst_gap` and `dst_fold` are parts of the
            specification's clock.
        timing: update of the timing; `None` for no change.
        task: update of the task; `None` for no change.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    timing: TimingUpdate | None = None
    task: TemplateUpdate | None = None

    def of(self, spec: ScheduleSpec) -> ScheduleSpec:
        """Returns the updated specification.

        Raises:
            RequestError: the result is invalid; the error gives the reason.
        """
        clock = {_OF_CLOCK[name]: value for name, value in self.fields.items() if name in _OF_CLOCK}
        others = {name: value for name, value in self.fields.items() if name not in _OF_CLOCK}
        if self.timing is not None:
            others["written"] = self.timing.of(spec.written)
        if self.task is not None:
            others["task"] = self.task.of(spec.task)
        return replace(replace(spec, clock=replace(spec.clock, **clock)), **others)


@frozen
class ChangedOccurrence:
    """A user's change to one occurrence.

    Attributes:
        nominal: the occurrence's instant in the timing; nothing runs at this instant.
        at: when the occurrence runs instead; `None` if it is skipped.
    """

    nominal: Millis
    at: Millis | None = None


def changed_of(changes: Iterable[ChangedOccurrence], nominal: Millis) -> ChangedOccurrence | None:
    """The user's change to the occurrence at an instant; `None` if the occurrence was not changed."""
    return next((each for each in changes if each.nominal == nominal), None)


def moved_to(changes: Iterable[ChangedOccurrence], at: Millis) -> ChangedOccurrence | None:
    """The change that moved an occurrence to an instant; `None` if there is none."""
    return next((each for each in changes if each.at == at), None)
