"""Responses about schedules. Fields without a value are null."""

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
    payload: NotRequired[Annotated[Any, Field(description="Any JSON; in a list, a large one is left out.")]]
    target: Annotated[TargetResponse | None, Field(description="The target; null for the default of the type.")]
    order: Annotated[OrderKeyResponse | None, Field(description="The ordered key of the runs; null for none.")]


class PermanentResponse(TypedDict):
    """Runs again and again: each run starts some time after the previous one has ended."""

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

    scheduled_at: Annotated[Instant, Field(description="The time that the timing gives.")]
    local_time: Annotated[str, Field(description="The same in the schedule's time zone, with its offset.")]
    runs: bool
    due_at: Annotated[
        Instant | None, Field(description="When it runs, with jitter and moves by calendars; null if it does not run.")
    ]
    note: Annotated[
        str | None, Field(description="Explains the effect of clock changes and calendars, or why it does not run.")
    ]


class PreviewResponse(TypedDict):
    """The next occurrences, in order of time."""

    description: Annotated[str, Field(description=_DESCRIPTION)]
    occurrences: Sequence[PreviewOccurrence]


class OccurrenceResponse(PreviewOccurrence):
    """An occurrence of a schedule, with its task."""

    task_id: Annotated[str | None, Field(description="Id of its task; null if it has none, or none yet.")]
    state: Annotated[
        State | None, Field(description="State of its task; null if there is none, or it is no longer kept.")
    ]


class OccurrenceList(TypedDict):
    """Occurrences, in order of time."""

    occurrences: Sequence[OccurrenceResponse]
    complete_since: Annotated[
        Instant,
        Field(
            description="When the schedule was last changed, paused or resumed: from then on, every occurrence is "
            "listed. Earlier ones are listed only if their tasks are kept; `listScheduleRuns` has more, page by page."
        ),
    ]


class ChangedOccurrenceResponse(TypedDict):
    """An occurrence that was individually skipped or moved."""

    scheduled_at: Annotated[Instant, Field(description="The time that the timing gives.")]
    due_at: Annotated[Instant | None, Field(description="When it runs instead; null if it is skipped.")]


class SkippedRunResponse(TypedDict):
    """A run that was skipped, or another event of the schedule."""

    recorded_at: Annotated[Instant, Field(description="When it was recorded.")]
    local_time: Annotated[str | None, Field(description="Local time of the occurrence, or of the first of several.")]
    reason: str


class LastRunResponse(TypedDict):
    """The latest run that has started."""

    task_id: str
    scheduled_at: Annotated[Instant, Field(description="The time that it was scheduled for.")]
    started_at: Annotated[Instant, Field(description="When it started.")]


class BackfillResponse(TypedDict):
    """A backfill of a past period, and its progress."""

    id: str
    scheduled_after: Annotated[Instant, Field(description="Start of the period, inclusive.")]
    scheduled_before: Annotated[Instant, Field(description="End of the period, exclusive.")]
    per_minute: int
    only_missing: Annotated[bool, Field(description="Whether occurrences that already have a run are passed over.")]
    overlap: Annotated[
        Literal["allow_all", "buffer_all"], Field(description="Whether its runs wait for other runs of the schedule.")
    ]
    occurrences: Annotated[int, Field(description="Number of occurrences in the period, with those that do not run.")]
    runs_started: Annotated[int, Field(description="Number of runs that were started.")]
    runs_known: Annotated[
        int, Field(description="Number of occurrences that were passed over because they already have a run.")
    ]
    finished_at: Annotated[
        Instant | None,
        Field(description="When the last run was started, or the backfill was cancelled; null before that."),
    ]


class BackfillList(TypedDict):
    """The backfills of a schedule: those in progress, and the latest that have finished."""

    backfills: Sequence[BackfillResponse]


class ExpectationResponse(TypedDict):
    """Whether a schedule meets its expectations, as of the last deadline that was checked."""

    missed_at: Annotated[Instant | None, Field(description="The latest deadline that was missed; null for none.")]
    met_at: Annotated[
        Instant | None, Field(description="When the latest run succeeded that met a deadline; null for none.")
    ]
    misses: Annotated[int, Field(description="Number of deadlines that were missed.")]


class ScheduleSummary(TypedDict):
    """A schedule as lists show it."""

    name: Annotated[str, Field(description="Name of the schedule, unique among its owner's.")]
    state: ScheduleState
    paused_reason: Annotated[str | None, Field(description="Why it is paused; null if it is not.")]
    cron: str | None
    rate: str | None
    interval: str | None
    dates: Sequence[str] | None
    permanent: PermanentResponse | None
    timings: Annotated[Sequence[TimingResponse] | None, Field(description="Several timings; null if there is one.")]
    extra_dates: Annotated[Sequence[str], Field(description="Date-times besides the timing.")]
    excluded_dates: Annotated[Sequence[str], Field(description="Days and date-times at which no occurrence runs.")]
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
            description="Part of `spread_seconds` by which its occurrences are due later, where there is room for it."
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
        str | None, Field(description="Local time of day by which a run must have succeeded; null for none.")
    ]
    expect_every_seconds: Annotated[
        int | None, Field(description="The longest time in which no run succeeds; null for none.")
    ]
    expect_duration_factor: Annotated[
        float | None,
        Field(description="How many times the median a run may take before a notice is sent; null for none."),
    ]
    expectation: Annotated[
        ExpectationResponse | None,
        Field(description="Status of its expectation; null if none is set, or no deadline has passed."),
    ]
    task: TaskTemplateResponse
    created_at: Instant
    updated_at: Annotated[Instant, Field(description="When it was last updated, paused or resumed.")]
    next_at: Annotated[
        Instant | None,
        Field(
            description="When the next run is due; null if there is none, or if that is not known before the run in "
            "progress has ended."
        ),
    ]
    last_run: Annotated[
        LastRunResponse | None,
        Field(
            description="The latest run that has started, of the timing or by request; it may be in progress. Null "
            "before the first."
        ),
    ]
    runs_started: Annotated[
        int,
        Field(
            description="Number of runs that have started, without those of backfills. With `overlap` `allow_all` "
            "and no `remaining_runs`: number of runs that were due and that no pause or change has dropped."
        ),
    ]
    runs_skipped: Annotated[int, Field(description="Number of occurrences that did not run.")]
    revision: Annotated[
        int,
        Field(
            description="Grows with every update; occurrences of an older revision are dropped unless they were due "
            "before the update and the timing still includes them."
        ),
    ]
    tzdata: Annotated[str, Field(description="Version of the time zone data that it was last computed with.")]
    version: Annotated[int, Field(description="Grows with every write; part of the ETag.")]


class ScheduleResponse(ScheduleSummary):
    """A schedule, with its next occurrences and its recent skipped runs."""

    upcoming: Annotated[
        Sequence[PreviewOccurrence], Field(description="The next five occurrences; none while it is paused.")
    ]
    skipped_runs: Annotated[
        Sequence[SkippedRunResponse], Field(description="The latest runs that were skipped, newest first.")
    ]
    changed_occurrences: Annotated[
        Sequence[ChangedOccurrenceResponse],
        Field(
            description="Occurrences that were individually skipped or moved: those to come, and the latest past ones."
        ),
    ]
    estimate: NotRequired[
        Annotated[
            CostEstimateResponse | None,
            Field(
                description="What its runs of the next 30 days will cost: in the response to a creation with "
                "`estimate`. Null for a permanent schedule."
            ),
        ]
    ]
    backfills: Sequence[BackfillResponse]


class SchedulePage(TypedDict):
    """A page of schedules."""

    schedules: Sequence[ScheduleSummary]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last one.")]


class ScheduleRunResponse(TypedDict):
    """An occurrence of a schedule and its status."""

    scheduled_at: Annotated[Instant, Field(description="The time that it was scheduled for.")]
    local_time: Annotated[str, Field(description="The same in the schedule's time zone, with its offset.")]
    status: Annotated[RunStatus, Field(description="Its status.")]
    reason: Annotated[str | None, Field(description="Why it did not run, or did not succeed; null if there is none.")]
    cause: Annotated[Cause, Field(description="Why there is, or would be, a task.")]
    task_id: Annotated[str | None, Field(description="Id of its task; null if it has none, or none yet.")]
    state: Annotated[State | None, Field(description="State of its task.")]
    revision: Annotated[int | None, Field(description="Revision of the schedule that created the task.")]
    started_at: Annotated[Instant | None, Field(description="When the first attempt started; null before that.")]
    finished_at: Annotated[Instant | None, Field(description="When the task ended; null before that.")]
    lateness_ms: Annotated[int | None, Field(description="How late its first attempt started, in milliseconds.")]


class AppliedRunsWindow(TypedDict):
    """The range of a list of runs."""

    scheduled_after: Annotated[Instant, Field(description="The list begins there, at the earliest with the schedule.")]
    scheduled_before: Annotated[Instant | None, Field(description="The list ends there; null for no limit.")]
    complete_since: Annotated[
        Instant,
        Field(
            description="From then on, every occurrence is listed. Before that, when the schedule was different, "
            "occurrences without a task are listed only if `skipped_runs` of the schedule has them."
        ),
    ]
    tasks_kept_since: Annotated[
        Instant,
        Field(
            description="Tasks that ended before it may be gone: their runs are listed as `expired`, without task "
            "and outcome; those from before `complete_since` are not listed."
        ),
    ]
    is_archived: Annotated[
        bool, Field(description="Whether the archive has the tasks that are gone: `duetime archive query` finds them.")
    ]


class ScheduleRunPage(TypedDict):
    """A page of the runs of a schedule, newest first."""

    runs: Annotated[Sequence[ScheduleRunResponse], Field(description="The runs.")]
    applied: Annotated[AppliedRunsWindow, Field(description="What the list covers.")]
    next_token: Annotated[
        str | None, Field(description="Token of the next page; null on the last one. A page can be short or empty.")
    ]


CREATED: Literal["created"] = "created"
ScheduleEventType: TypeAlias = Literal[
    "created", "updated", "paused", "resumed", "run_requested", "backfill_requested", "backfill_cancelled"
]


class NewValueResponse(TypedDict):
    """The value of a field before and after an update."""

    field: Annotated[str, Field(description="Name of the field; those of the task start with `task.`.")]
    before: Annotated[str | None, Field(description="Its value before, as text; null for none.")]
    after: Annotated[str | None, Field(description="Its value after, as text; null for none.")]


class ScheduleEventResponse(TypedDict):
    """An action on a schedule, or another event."""

    type: Annotated[ScheduleEventType, Field(description="What happened.")]
    at: Annotated[Instant, Field(description="When it happened.")]
    actor: Annotated[ActorResponse, Field(description="Who did it: a user, or the system.")]
    reason: Annotated[str | None, Field(description="Why, as the actor said; null if nothing was said.")]
    version: Annotated[int | None, Field(description="Version of the schedule after it; null for its creation.")]
    fields: Annotated[
        Sequence[str],
        Field(description="For an update, the names of the changed fields; those of the task start with `task.`."),
    ]
    values: Annotated[
        Sequence[NewValueResponse],
        Field(description="For an update, the old and new values of those fields that have short ones."),
    ]
    task_id: Annotated[str | None, Field(description="For a requested run, its task.")]
    backfill_id: Annotated[str | None, Field(description="For a backfill, its id.")]


class ScheduleEventList(TypedDict):
    """The events of a schedule, oldest first."""

    events: Annotated[Sequence[ScheduleEventResponse], Field(description="The events.")]
    dropped: Annotated[
        int, Field(description="How many of the oldest actions are no longer listed: only the latest are kept.")
    ]
