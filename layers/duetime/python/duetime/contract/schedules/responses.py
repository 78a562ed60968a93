"""The bodies of answers about schedules. A field that has no value is null."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import (
    Annotated,
    Any,
    NotRequired,  # pydantic describes no other before Python 3.12
)

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.tasks.responses import Instant, TaskOptionsResponse
from duetime.contract.tasks.target_responses import TargetResponse  # noqa: TC001 - same
from duetime.domain.schedules.definition import OnExcluded, Overlap  # noqa: TC001 - same
from duetime.domain.schedules.schedule import ScheduleState  # noqa: TC001 - same
from duetime.domain.schedules.time_zones import Fold, Gap  # noqa: TC001 - same
from duetime.domain.schedules.timings import Dialect  # noqa: TC001 - same
from duetime.domain.tasks.states import State  # noqa: TC001 - same


class TaskTemplateResponse(TaskOptionsResponse):
    """What each occurrence runs."""

    type: str
    payload: NotRequired[
        Annotated[Any, Field(description="In a list, one that is too large to stand in the record is left out.")]
    ]
    target: Annotated[TargetResponse | None, Field(description="Null leaves it to the type.")]


class PermanentResponse(TypedDict):
    """Again and again: each run starts a time after the one before has ended."""

    gap_seconds: Annotated[int, Field(description="Seconds from the end of one run to the start of the next.")]


class PreviewOccurrence(TypedDict):
    """One time of a timing."""

    scheduled_at: Annotated[Instant, Field(description="The instant that the timing means.")]
    local_time: Annotated[str, Field(description="The same by the clock of the time zone, with its offset.")]
    runs: bool
    due_at: Annotated[Instant | None, Field(description="When it runs, jitter and moves included; null if not at all.")]
    note: Annotated[
        str | None, Field(description="What a clock or a calendar has to do with it, in words; why it does not run.")
    ]


class PreviewResponse(TypedDict):
    """What comes, in order of time."""

    occurrences: Sequence[PreviewOccurrence]


class OccurrenceResponse(PreviewOccurrence):
    """One time of a schedule, with its task."""

    task_id: Annotated[str | None, Field(description="Its task; null as long as there is none, or none was made.")]
    state: Annotated[State | None, Field(description="Of its task; null when that is no longer kept.")]


class OccurrencePage(TypedDict):
    """Times of a schedule, in order."""

    occurrences: Sequence[OccurrenceResponse]


class SkippedRunResponse(TypedDict):
    """Why something did not run, or what else happened to the schedule."""

    recorded_at: Annotated[Instant, Field(description="When that was found.")]
    local_time: Annotated[str | None, Field(description="The occurrence, or the first of several, in local time.")]
    reason: str


class LastRunResponse(TypedDict):
    """The latest occurrence that was placed."""

    task_id: str
    scheduled_at: Annotated[Instant, Field(description="The instant that it stands for.")]


class BackfillResponse(TypedDict):
    """A past period whose occurrences run."""

    id: str
    scheduled_after: Annotated[Instant, Field(description="The first moment of the period.")]
    scheduled_before: Annotated[Instant, Field(description="The first moment after it.")]
    per_minute: int
    occurrences: Annotated[int, Field(description="How many the period has, those included that do not run.")]
    runs_started: Annotated[int, Field(description="How many of them have been given a task.")]
    finished_at: Annotated[
        Instant | None, Field(description="When the last of them was given a task, or it was cancelled.")
    ]


class BackfillPage(TypedDict):
    """The backfills of a schedule: those on their way, and the latest that have finished."""

    backfills: Sequence[BackfillResponse]


class ScheduleSummary(TypedDict):
    """A schedule as lists show it."""

    name: Annotated[str, Field(description="Unique among its owner's schedules.")]
    state: ScheduleState
    paused_reason: Annotated[str | None, Field(description="Why it is paused; null if it is not.")]
    cron: str | None
    rate: str | None
    interval: str | None
    dates: Sequence[str] | None
    permanent: PermanentResponse | None
    dialect: Dialect
    timezone: str
    dst_gap: Gap
    dst_fold: Fold
    calendars: Sequence[str]
    on_excluded: OnExcluded
    jitter_seconds: int
    start_at: Instant | None
    end_at: Instant | None
    remaining_runs: Annotated[int | None, Field(description="How many may still be placed; null for any number.")]
    overlap: Overlap
    catch_up_seconds: int
    pause_on_failure: bool
    task: TaskTemplateResponse
    created_at: Instant
    updated_at: Annotated[Instant, Field(description="When it was last updated, paused or resumed.")]
    next_at: Annotated[Instant | None, Field(description="When it runs next; null if it does not.")]
    runs_started: Annotated[int, Field(description="How many occurrences have been given a task.")]
    runs_skipped: Annotated[int, Field(description="How many have not, or were not let run.")]
    revision: Annotated[
        int, Field(description="Grows with every update; queued occurrences of an older one are dropped.")
    ]
    tzdata: Annotated[str, Field(description="Version of the time zone rules it was last computed with.")]
    version: Annotated[int, Field(description="Grows with every write; the ETag is made of it.")]


class ScheduleResponse(ScheduleSummary):
    """A schedule, with what comes next and what did not run lately."""

    upcoming: Annotated[Sequence[PreviewOccurrence], Field(description="The next five; none while it is paused.")]
    last_run: LastRunResponse | None
    skipped_runs: Annotated[
        Sequence[SkippedRunResponse], Field(description="Why occurrences did not run, the latest first.")
    ]
    backfills: Sequence[BackfillResponse]


class SchedulePage(TypedDict):
    """Some of an owner's schedules."""

    schedules: Sequence[ScheduleSummary]
    next_token: Annotated[str | None, Field(description="Asks for the next page; null on the last one.")]
