"""Schedules and calendars: the API's responses, and the fields of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations
from datetime import datetime  # noqa: TC003 - same
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pydantic import Field, PrivateAttr

from duetime_client.open_literals import (  # noqa: TC001 - pydantic reads the annotations
    CalendarMode,
    RunStatus,
    ScheduleCause,
    ScheduleState,
    TaskState,
)
from duetime_client.request_estimates import RequestEstimate  # noqa: TC001 - pydantic reads the annotations
from duetime_client.task import Actor, ResponseModel
from duetime_client.task_request_fields import NewTask  # noqa: TC001 - typed dictionaries are read when they are made

CronDialect: TypeAlias = Literal["cron", "vixie", "kubernetes", "quartz", "spring", "eventbridge"]
"""The cron dialect of an expression."""
BackfillOverlap: TypeAlias = Literal["allow_all", "buffer_all"]
"""Whether the runs of a backfill wait for other runs of the schedule."""


class PermanentTiming(TypedDict):
    """Runs continuously, with the given number of seconds from the end of a run to the start of the next run."""

    gap_seconds: int


class SingleTiming(TypedDict, total=False):
    """One of several timings, with exactly one of `cron`, `rate`, `interval` and `dates`."""

    cron: str | None
    rate: str | None
    interval: str | None
    dates: Sequence[str] | None
    dialect: CronDialect


class TimingFields(TypedDict, total=False):
    """When tasks are due: exactly one of the fields `cron` to `timings`, and how to interpret it."""

    cron: str | None
    rate: str | None
    interval: str | None
    dates: Sequence[str] | None
    permanent: PermanentTiming | None
    timings: Sequence[SingleTiming] | None
    extra_dates: Sequence[str]
    excluded_dates: Sequence[str]
    dialect: CronDialect
    timezone: str
    dst_gap: Literal["skip", "shift_forward"]
    dst_fold: Literal["first", "both"]
    calendars: Sequence[str]
    on_excluded: Literal["skip", "move", "previous_day", "next_day"]
    spread_seconds: int
    jitter_seconds: int
    start_at: datetime | str | None
    end_at: datetime | str | None
    remaining_runs: int | None


class ScheduleFields(TimingFields, total=False):
    """The fields of a schedule except its name. `task` has the fields of a task except its due time."""

    overlap: Literal["skip", "buffer_one", "buffer_all", "cancel_other", "replace_other", "allow_all"]
    catch_up_seconds: int
    catch_up_mode: Literal["latest", "all"]
    pause_on_failure: bool
    expect_success_by: str | None
    expect_every_seconds: int | None
    expect_duration_factor: float | None
    task: NewTask


class CalendarWindow(TypedDict):
    """A daily time range, such as 22:00 to 06:00, on some or all weekdays."""

    start: str
    end: str
    weekdays: NotRequired[Sequence[str]]
    label: NotRequired[str]


class CalendarSpan(TypedDict):
    """A period with its start and end as RFC 3339 times."""

    start: str
    end: str
    reason: NotRequired[str]


class CalendarFields(TypedDict, total=False):
    """The times of a calendar outside (`excludes`) or inside (`includes`) which tasks can run."""

    mode: Literal["excludes", "includes"]
    timezone: str
    dates: Mapping[str, str]
    except_dates: Sequence[str]
    weekdays: Sequence[str]
    windows: Sequence[CalendarWindow]
    spans: Sequence[CalendarSpan]
    known_until: datetime | str | None


class ScheduleRun(ResponseModel):
    """An occurrence of a schedule, and its status.

    Attributes:
        status: planned, waiting, running, succeeded, failed, cancelled, skipped, missed or expired.
        reason: Why the occurrence did not run or did not succeed.
        cause: schedule, catch_up, manual or backfill.
        task_id: The occurrence's task, if there is one.
    """

    scheduled_at: datetime
    local_time: str
    status: RunStatus
    reason: str | None = None
    cause: ScheduleCause = "schedule"
    task_id: str | None = None
    state: TaskState | None = None
    revision: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    lateness_ms: float | None = None


class Occurrence(ResponseModel):
    """An occurrence of a schedule.

    Attributes:
        scheduled_at: The time according to the timing.
        local_time: The same time in the schedule's time zone, with its UTC offset.
        due_at: When the task is due, after jitter and moves; `None` if the occurrence does not run.
        note: The decision about DST, a calendar or the schedule's state, as text.
        task_id: The occurrence's task, if it exists already.
    """

    scheduled_at: datetime
    local_time: str
    runs: bool = True
    due_at: datetime | None = None
    note: str | None = None
    task_id: str | None = None
    state: TaskState | None = None


class ChangedOccurrence(ResponseModel):
    """An occurrence that was individually skipped (`due_at` is None) or moved."""

    scheduled_at: datetime
    due_at: datetime | None = None


class SkippedRun(ResponseModel):
    """A recent event of a schedule: a skipped run with its reason, a manual run, or a pause."""

    recorded_at: datetime
    local_time: str | None = None
    reason: str


class LastRun(ResponseModel):
    """The run that started last; it may still be in progress."""

    task_id: str
    scheduled_at: datetime
    started_at: datetime


class Backfill(ResponseModel):
    """A backfill, which runs the occurrences of a past period at a limited rate.

    Attributes:
        scheduled_after: The first moment of the period.
        scheduled_before: The first moment after the period.
        occurrences: The number of occurrences in the period.
        runs_started: The number of occurrences that have a task.
        runs_known: The number of occurrences that were skipped because they already have a run.
    """

    id: str
    scheduled_after: datetime
    scheduled_before: datetime
    per_minute: int = 0
    only_missing: bool = False
    overlap: str = "allow_all"
    occurrences: int = 0
    runs_started: int = 0
    runs_known: int = 0
    finished_at: datetime | None = None


class Expectation(ResponseModel):
    """The expectation of a schedule, and whether the schedule meets it.

    Attributes:
        missed_at: The latest deadline that was missed.
        met_at: When the latest run that met a deadline succeeded.
        misses: How many deadlines were missed.
    """

    missed_at: datetime | None = None
    met_at: datetime | None = None
    misses: int = 0

    @property
    def is_missed(self) -> bool:
        """Whether a deadline was missed and no deadline has been met since."""
        return self.missed_at is not None and (self.met_at is None or self.met_at < self.missed_at)


class Schedule(ResponseModel):
    """A schedule. Schedules in lists have no upcoming occurrences and no skipped runs."""

    name: str
    state: ScheduleState
    created_at: datetime
    task: Mapping[str, object]
    cron: str | None = None
    rate: str | None = None
    interval: str | None = None
    dates: Sequence[str] | None = None
    permanent: Mapping[str, int] | None = None
    timings: Sequence[Mapping[str, object]] | None = None
    dialect: str = "cron"
    extra_dates: Sequence[str] = ()
    excluded_dates: Sequence[str] = ()
    spread_offset_seconds: int = 0
    timezone: str = "UTC"
    paused_reason: str | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    updated_at: datetime | None = None
    next_at: datetime | None = None
    remaining_runs: int | None = None
    runs_started: int = 0
    runs_skipped: int = 0
    revision: int = 0
    version: int = 0
    expect_success_by: str | None = None
    expect_every_seconds: int | None = None
    expect_duration_factor: float | None = None
    expectation: Expectation | None = None
    last_run: LastRun | None = None
    upcoming: list[Occurrence] = Field(default_factory=list)
    skipped_runs: list[SkippedRun] = Field(default_factory=list)
    changed_occurrences: list[ChangedOccurrence] = Field(default_factory=list)
    backfills: list[Backfill] = Field(default_factory=list)
    estimate: RequestEstimate | None = None
    """Estimated cost of the schedule's runs in a month, if requested at creation."""

    @property
    def etag(self) -> str:
        """The version for `schedules.update(if_match=…)`."""
        return f'"{self.version}"'

    @property
    def timing(self) -> str:
        """The timing as written; an expression in another dialect is prefixed with the dialect's name if needed."""
        if self.cron:
            is_told = self.dialect in {"cron", "eventbridge"}
            return self.cron if is_told else f"{self.dialect} {self.cron}"
        for field in ("rate", "interval"):
            if text := getattr(self, field):
                return f"{field} {text}"
        if self.permanent is not None:
            return f"permanent, gap {self.permanent['gap_seconds']} s"
        if self.timings is not None:
            return f"{len(self.timings)} timings"
        return f"{len(self.dates or ())} dates"


class Calendar(ResponseModel):
    """A named set of times.

    Attributes:
        known_until: The time until which the calendar's times are known; `None` if there is no limit.
    """

    name: str
    mode: CalendarMode
    timezone: str = "UTC"
    dates: Mapping[str, str] = Field(default_factory=dict)
    except_dates: Sequence[str] = ()
    weekdays: Sequence[str] = ()
    windows: Sequence[Mapping[str, object]] = ()
    spans: Sequence[Mapping[str, object]] = ()
    known_until: datetime | None = None

    _etag: str | None = PrivateAttr(default=None)

    @property
    def etag(self) -> str | None:
        """The version for `calendars.put(if_match=…)`; `None` in lists."""
        return self._etag

    def at(self, etag: str | None) -> Calendar:
        """Set the calendar's version, and return the calendar."""
        self._etag = etag
        return self


class NewValue(ResponseModel):
    """The value of a field before and after an update, as text; `None` for no value."""

    field: str
    before: str | None = None
    after: str | None = None


class ScheduleEvent(ResponseModel):
    """An event of a schedule; fields that do not apply to its type are `None`."""

    type: str
    at: datetime
    actor: Actor
    reason: str | None = None
    version: int | None = None
    fields_changed: tuple[str, ...] = Field(default=(), alias="fields")
    values: tuple[NewValue, ...] = ()
    task_id: str | None = None
    backfill_id: str | None = None


class ScheduleHistory(ResponseModel):
    """The events of a schedule, oldest first; `dropped` is the number of older actions that are no longer kept."""

    events: tuple[ScheduleEvent, ...]
    dropped: int = 0


class PlannedRuns(ResponseModel):
    """How many runs a schedule plans in a period."""

    name: str
    runs: int


class ForecastPeriod(ResponseModel):
    """The number of runs planned in a period; `schedules` lists the schedules with the most runs."""

    start_at: datetime
    runs: int
    schedules: tuple[PlannedRuns, ...] = ()


class ForecastCollision(ResponseModel):
    """A minute in which several schedules begin a run."""

    at: datetime
    schedules: tuple[str, ...]


class Forecast(ResponseModel):
    """The runs that the active schedules plan."""

    period_seconds: int
    periods: tuple[ForecastPeriod, ...]
    collisions: tuple[ForecastCollision, ...] = ()
    is_complete: bool = True
