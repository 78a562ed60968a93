"""What the runs of a schedule look like in responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.responses import Instant
from duetime.domain.schedules.runs import RunStatus
from duetime.domain.tasks.parent_references import Cause
from duetime.domain.tasks.states import State
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.contract.schedules.queries import RunListQuery
    from duetime.domain.schedules.runs import RunPage, ScheduleRun
    from duetime.domain.schedules.schedule_record import StoredSchedule


class ScheduleRunResponse(TypedDict):
    """An occurrence of a schedule, and what became of it."""

    scheduled_at: Annotated[Instant, Field(description="The time that it was scheduled for.")]
    local_time: Annotated[str, Field(description="The same in the schedule's time zone, with its offset.")]
    status: Annotated[RunStatus, Field(description="What became of it.")]
    reason: Annotated[str | None, Field(description="Why it did not run, or did not succeed; null if there is none.")]
    cause: Annotated[Cause, Field(description="Why there is, or would be, a task.")]
    task_id: Annotated[str | None, Field(description="Id of its task; null if it has none, or none yet.")]
    state: Annotated[State | None, Field(description="State of its task.")]
    revision: Annotated[int | None, Field(description="Revision of the schedule that created the task.")]
    started_at: Annotated[Instant | None, Field(description="When the first attempt started; null before that.")]
    finished_at: Annotated[Instant | None, Field(description="When the task ended; null before that.")]
    lateness_ms: Annotated[int | None, Field(description="How late its first attempt started, in milliseconds.")]


class AppliedRunsWindow(TypedDict):
    """What a list of runs covers."""

    scheduled_after: Annotated[Instant, Field(description="The list begins there, at the earliest with the schedule.")]
    scheduled_before: Annotated[Instant | None, Field(description="The list ends there; null for no limit.")]
    complete_since: Annotated[
        Instant,
        Field(
            description="From there on, every occurrence is listed. Before it, when the schedule was another one, "
            "occurrences without a task are listed only as far as `skipped_runs` of the schedule has them."
        ),
    ]
    tasks_kept_since: Annotated[
        Instant,
        Field(
            description="Tasks that ended before it may be gone: their runs are listed as `expired`, without task and "
            "outcome, or from before `complete_since` not at all."
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


def run_page(page: RunPage, query: RunListQuery, next_token: str | None) -> ScheduleRunPage:
    """A page of runs of a schedule."""
    return ScheduleRunPage(
        runs=[_run(each, page.stored) for each in page.runs],
        applied=AppliedRunsWindow(
            scheduled_after=to_iso(page.since),
            scheduled_before=instant(query.scheduled_before),
            complete_since=to_iso(page.complete_since),
            tasks_kept_since=to_iso(page.kept_since),
            is_archived=page.is_archived,
        ),
        next_token=next_token,
    )


def _run(run: ScheduleRun, stored: StoredSchedule) -> ScheduleRunResponse:
    task = run.task
    return ScheduleRunResponse(
        scheduled_at=to_iso(run.nominal),
        local_time=stored.spec.clock.zone.text_at(run.nominal),
        status=run.status,
        reason=run.reason or None,
        cause=run.cause,
        task_id=None if task is None else task.id.text,
        state=None if task is None else task.state,
        revision=None if task is None or task.schedule_ref is None else task.schedule_ref.revision,
        started_at=None if task is None else instant(task.started_at),
        finished_at=None if task is None else instant(task.finished_at),
        lateness_ms=None if task is None else task.lateness,
    )
