"""Schedule responses. Fields without a value are null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.tasks.history import ActorResponse
from duetime.contract.tasks.responses import (
    CostEstimateResponse,
    Instant,
    OrderKeyResponse,
    TargetResponse,
    TaskOptionsResponse,
)
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import CatchUpMode, OnExcluded, Overlap
from duetime.domain.schedules.runs import RunStatus
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.time_zones import Fold, Gap
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause

_DESCRIPTION = "The timing in plain words, such as `at 01:30 on Monday to Friday`; times are local times of `timezone`."


class TaskTemplateResponse(TaskOptionsResponse):
    """The task that each occurrence of a schedule runs."""

    type: str
    payload: NotRequired[Annotated[Any, Field(description="Any JSON; a large payload is left out in lists.")]]
    target: Annotated[TargetResponse | None, Field(description="The target; null for the default of the type.")]
    order: Annotated[OrderKeyResponse | None, Field(description="The ordered key of the runs; null for no key.")]


class PermanentResponse(TypedDict):
    """Runs repeatedly; each run starts some time after the previous run has ended."""

    gap_seconds: Annotated[int, Field(description="Seconds from the end of one run to the start of the next.")]


class TimingResponse(TypedDict):
    """One of several timings."""

    cron: str | None
    rate: str | None
    interval: str | None
    dates: Sequence[str] | None
    dialect: Dialect


class PreviewOccurrence(TypedDict):
    """An occurrence of a timing."""

    scheduled_at: Annotated[Instant, Field(description="Scheduled time of the occurrence.")]
    local_time: Annotated[str, Field(description="The scheduled time in the schedule's time zone, with its offset.")]
    runs: bool
    due_at: Annotated[
        Instant | None,
        Field(
            description="When the occurrence runs, including jitter and moves by calendars; null if it does not run."
        ),
    ]
    note: Annotated[
        str | None,
        Field(description="Explains effects of clock changes and calendars, or why the occurrence does not run."),
    ]


class PreviewResponse(TypedDict):
    """The next occurrences, in order of time."""

    description: Annotated[str, Field(description=_DESCRIPTION)]
    occurrences: Sequence[PreviewOccurrence]


class OccurrenceResponse(PreviewOccurrence):
    """An occurrence of a schedule, with its task."""

    task_id: Annotated[
        str | None, Field(description="Id of the occurrence's task; null if there is no task, or no task yet.")
    ]
    state: Annotated[
        State | None, Field(description="State of the task; null if there is none, or the task is no longer kept.")
    ]


class OccurrenceList(TypedDict):
    """Occurrences, in order of time."""

    occurrences: Sequence[OccurrenceResponse]
    complete_since: Annotated[
        Instant,
        Field(
            description="When the schedule was last changed, paused or resumed. Every later occurrence is listed. "
            "Earlier occurrences are listed only if their tasks are kept; `listScheduleRuns` lists "
            "more of them, in pages."
        ),
    ]


class ChangedOccurrenceResponse(TypedDict):
    """An occurrence that was individually skipped or moved."""

    scheduled_at: Annotated[Instant, Field(description="Scheduled time of the occurrence.")]
    due_at: Annotated[Instant | None, Field(description="New time; null if the occurrence is skipped.")]


class SkippedRunResponse(TypedDict):
    """A run that was skipped, or another event of the schedule."""

    recorded_at: Annotated[Instant, Field(description="When the event was recorded.")]
    local_time: Annotated[
        str | None, Field(description="Local time of the occurrence, or of the first of several occurrences.")
    ]
    reason: str


class LastRunResponse(TypedDict):
    """The latest run that has started."""

    task_id: str
    scheduled_at: Annotated[Instant, Field(description="Scheduled time of the run.")]
    started_at: Annotated[Instant, Field(description="When the run started.")]


class BackfillResponse(TypedDict):
    """A backfill of a past period, and its progress."""

    id: str
    scheduled_after: Annotated[Instant, Field(description="Start of the period, inclusive.")]
    scheduled_before: Annotated[Instant, Field(description="End of the period, exclusive.")]
    per_minute: int
    only_missing: Annotated[bool, Field(description="Whether occurrences that already have a run are skipped.")]
    overlap: Annotated[
        Literal["allow_all", "buffer_all"],
        Field(description="Whether the backfill's runs wait for other runs of the schedule."),
    ]
    occurrences: Annotated[
        int, Field(description="Number of occurrences in the period, including those that do not run.")
    ]
    runs_started: Annotated[int, Field(description="Number of started runs.")]
    runs_known: Annotated[int, Field(description="Number of occurrences skipped because they already have a run.")]
    finished_at: Annotated[
        Instant | None,
        Field(description="When the last run was started, or the backfill was cancelled; null until then."),
    ]


class BackfillList(TypedDict):
    """The backfills of a schedule: all backfills in progress, and the latest finished backfills."""

    backfills: Sequence[BackfillResponse]


class ExpectationResponse(TypedDict):
    """Whether a schedule meets its expectations, as of the last checked deadline."""

    missed_at: Annotated[Instant | None, Field(description="The latest missed deadline; null if there is none.")]
    met_at: Annotated[
        Instant | None, Field(description="When the latest run that met a deadline succeeded; null if there is none.")
    ]
    misses: Annotated[int, Field(description="Number of missed deadlines.")]


class ScheduleSummary(TypedDict):
    """A schedule, as shown in lists."""

    name: Annotated[str, Field(description="Name of the schedule, unique per owner.")]
    state: ScheduleState
    paused_reason: Annotated[str | None, Field(description="Why the schedule is paused; null if it is not paused.")]
    cron: str | None
    rate: str | None
    interval: str | None
    dates: Sequence[str] | None
    permanent: PermanentResponse | None
    timings: Annotated[
        Sequence[TimingResponse] | None, Field(description="Several timings; null if there is only one timing.")
    ]
    extra_dates: Annotated[Sequence[str], Field(description="Additional date-times.")]
    excluded_dates: Annotated[Sequence[str], Field(description="Days and date-times on which no occurrence runs.")]
    description: Annotated[str, Field(description=_DESCRIPTION)]
    dialect: Dialect
    timezone: str
    dst_gap: Gap
    dst_fold: Fold
    calendars: Sequence[str]
    on_excluded: OnExcluded
    spread_seconds: int
    spread_offset_seconds: Annotated[
        int,
        Field(
            description="Delay of the schedule's occurrences due to `spread_seconds`. An occurrence is "
            "delayed less if the next occurrence would come sooner."
        ),
    ]
    jitter_seconds: int
    start_at: Instant | None
    end_at: Instant | None
    remaining_runs: Annotated[int | None, Field(description="How many more runs may start; null for no limit.")]
    overlap: Overlap
    catch_up_seconds: int
    catch_up_mode: CatchUpMode
    pause_on_failure: bool
    expect_success_by: Annotated[
        str | None, Field(description="Local time of day by which a run must have succeeded; null for no deadline.")
    ]
    expect_every_seconds: Annotated[
        int | None, Field(description="Maximum time without a successful run, in seconds; null for no limit.")
    ]
    expect_duration_factor: Annotated[
        float | None,
        Field(
            description="Maximum duration of a run before a notice is sent, as a multiple of the median; null for no "
            "limit."
        ),
    ]
    expectation: Annotated[
        ExpectationResponse | None,
        Field(
            description="Status of the schedule's expectations; null if no expectation is set, or if no deadline has "
            "passed."
        ),
    ]
    task: TaskTemplateResponse
    created_at: Instant
    updated_at: Annotated[Instant, Field(description="When the schedule was last updated, paused or resumed.")]
    next_at: Annotated[
        Instant | None,
        Field(
            description="When the next run is due; null if there is no next run, or if its time depends on the end of "
            "the current run."
        ),
    ]
    last_run: Annotated[
        LastRunResponse | None,
        Field(
            description=(
                "The latest started run, whether scheduled or requested; it may still be in progress. Null before "
                "the first run."
            )
        ),
    ]
    runs_started: Annotated[
        int,
        Field(
            description="Number of started runs, excluding backfills. If `overlap` is `allow_all` "
            "and `remaining_runs` is null, this is the number of runs that became due and were not dropped by a pause "
            "or a change."
        ),
    ]
    runs_skipped: Annotated[int, Field(description="Number of occurrences that did not run.")]
    revision: Annotated[
        int,
        Field(
            description="Revision that grows with every update and pause. An occurrence of an older revision is "
            "dropped unless it was due before the change and is still part of the timing."
        ),
    ]
    tzdata: Annotated[str, Field(description="Version of the time zone data that the times were last computed with.")]
    version: Annotated[
        int,
        Field(
            description="Version that grows with every change by a user, and when a failure pauses the schedule. It is "
            "part of the ETag."
        ),
    ]


class ScheduleResponse(ScheduleSummary):
    """A schedule with its next occurrences and recently skipped runs."""

    upcoming: Annotated[
        Sequence[PreviewOccurrence],
        Field(description="The next five occurrences; empty for a paused, ended or permanent schedule."),
    ]
    skipped_runs: Annotated[Sequence[SkippedRunResponse], Field(description="The latest skipped runs, newest first.")]
    changed_occurrences: Annotated[
        Sequence[ChangedOccurrenceResponse],
        Field(
            description="All future occurrences and the latest past occurrences that were individually skipped or "
            "moved."
        ),
    ]
    estimate: NotRequired[
        Annotated[
            CostEstimateResponse | None,
            Field(
                description="Estimated cost of the runs in the next 30 days, in the response to a creation with "
                "`estimate`. Null for a permanent schedule."
            ),
        ]
    ]
    backfills: Sequence[BackfillResponse]


class SchedulePage(TypedDict):
    """A page of schedules."""

    schedules: Sequence[ScheduleSummary]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class ScheduleRunResponse(TypedDict):
    """An occurrence of a schedule and its status."""

    scheduled_at: Annotated[Instant, Field(description="Scheduled time of the run.")]
    local_time: Annotated[str, Field(description="The scheduled time in the schedule's time zone, with its offset.")]
    status: Annotated[RunStatus, Field(description="Status of the run.")]
    reason: Annotated[
        str | None, Field(description="Why the occurrence did not run or did not succeed; null if there is no reason.")
    ]
    cause: Annotated[Cause, Field(description="Why the task was or would be created.")]
    task_id: Annotated[
        str | None, Field(description="Id of the occurrence's task; null if there is no task, or no task yet.")
    ]
    state: Annotated[State | None, Field(description="State of the task.")]
    revision: Annotated[int | None, Field(description="Revision of the schedule that created the task.")]
    started_at: Annotated[Instant | None, Field(description="When the first attempt started; null until then.")]
    finished_at: Annotated[Instant | None, Field(description="When the task ended; null until then.")]
    lateness_ms: Annotated[int | None, Field(description="How late the first attempt started, in milliseconds.")]


class AppliedRunsWindow(TypedDict):
    """The time range of a list of runs."""

    scheduled_after: Annotated[
        Instant, Field(description="Start of the list, which is never before the schedule's creation.")
    ]
    scheduled_before: Annotated[Instant | None, Field(description="End of the list; null for no limit.")]
    complete_since: Annotated[
        Instant,
        Field(
            description="Time from which every occurrence is listed. Before this time, when the schedule was "
            "different, occurrences without a task are listed only if the schedule's `skipped_runs` contains them."
        ),
    ]
    tasks_kept_since: Annotated[
        Instant,
        Field(
            description=(
                "Tasks that ended before this time may be gone. Their runs are listed as `expired`, without task and "
                "outcome, or are not listed if they are from before `complete_since`."
            )
        ),
    ]
    is_archived: Annotated[
        bool,
        Field(description="Whether tasks that are gone are in the archive, where `duetime archive query` finds them."),
    ]


class ScheduleRunPage(TypedDict):
    """A page of the runs of a schedule, newest first."""

    runs: Annotated[Sequence[ScheduleRunResponse], Field(description="The runs.")]
    applied: Annotated[AppliedRunsWindow, Field(description="Range of the list.")]
    next_token: Annotated[
        str | None, Field(description="Token of the next page; null on the last page. A page can be short or empty.")
    ]


CREATED: Literal["created"] = "created"
ScheduleEventType: TypeAlias = Literal[
    "created", "updated", "paused", "resumed", "run_requested", "backfill_requested", "backfill_cancelled"
]


class NewValueResponse(TypedDict):
    """The value of a field before and after an update."""

    field: Annotated[str, Field(description="Name of the field; names of task fields start with `task.`.")]
    before: Annotated[str | None, Field(description="Value before the update, as text; null if there is none.")]
    after: Annotated[str | None, Field(description="Value after the update, as text; null if there is none.")]


class ScheduleEventResponse(TypedDict):
    """An action on a schedule, or another event."""

    type: Annotated[ScheduleEventType, Field(description="What happened.")]
    at: Annotated[Instant, Field(description="When the event happened.")]
    actor: Annotated[ActorResponse, Field(description="Who acted: a user, or the system.")]
    reason: Annotated[str | None, Field(description="The reason that the actor gave; null if there is none.")]
    version: Annotated[int | None, Field(description="Version of the schedule after the event; null for its creation.")]
    fields: Annotated[
        Sequence[str],
        Field(description="For an update, the names of the changed fields; names of task fields start with `task.`."),
    ]
    values: Annotated[
        Sequence[NewValueResponse],
        Field(description="For an update, the old and new values of fields with short values."),
    ]
    task_id: Annotated[str | None, Field(description="For a requested run, the id of its task.")]
    backfill_id: Annotated[str | None, Field(description="For a backfill, the backfill's id.")]


class ScheduleEventList(TypedDict):
    """The events of a schedule, oldest first."""

    events: Annotated[Sequence[ScheduleEventResponse], Field(description="The events.")]
    dropped: Annotated[
        int,
        Field(
            description="Number of older actions that are no longer listed, because only the latest actions are kept."
        ),
    ]
