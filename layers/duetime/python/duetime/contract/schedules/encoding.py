"""Encodes schedules and occurrences as responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.contract.mapping import response_of
from duetime.contract.schedules.responses import (
    CREATED,
    AppliedRunsWindow,
    BackfillResponse,
    ChangedOccurrenceResponse,
    ExpectationResponse,
    LastRunResponse,
    NewValueResponse,
    OccurrenceResponse,
    PermanentResponse,
    PreviewOccurrence,
    ScheduleEventList,
    ScheduleEventResponse,
    ScheduleResponse,
    ScheduleRunPage,
    ScheduleRunResponse,
    ScheduleSummary,
    SkippedRunResponse,
    TaskTemplateResponse,
    TimingResponse,
)
from duetime.contract.tasks.encoding import instant, json_of, options_response, request_fields, target_response
from duetime.contract.tasks.history import ActorResponse
from duetime.contract.tasks.responses import OrderKeyResponse
from duetime.domain.schedules.schedule import spread_offset
from duetime.domain.schedules.schedule_history import ScheduleAction
from duetime.domain.schedules.timing_description import describe_timing
from duetime.domain.tasks.action_history import ActorType
from duetime.domain.tasks.type_defaults import DEFAULTED, TaskSpec
from duetime.domain.times import SECOND, to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.contract.schedules.operations import RunListQuery
    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.definition import Written
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.run_history import BackfillRun, BegunRun
    from duetime.domain.schedules.runs import RunPage, ScheduleRun, ScheduleStatus
    from duetime.domain.schedules.schedule_history import ScheduleActionRecord
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task

UPCOMING = 5
"""Number of future occurrences in a schedule's response."""
_BUILT_IN = TaskSpec("")
_OF_BACKFILLS = frozenset({ScheduleAction.BACKFILL_REQUESTED, ScheduleAction.BACKFILL_CANCELLED})


def schedule_entry(status: ScheduleStatus) -> ScheduleSummary:
    """A schedule in a list."""
    stored = status.stored
    spec, timing = stored.spec, stored.spec.written
    return response_of(
        ScheduleSummary,
        spec,
        name=stored.name,
        state=stored.state,
        paused_reason=stored.paused_reason or None,
        cron=timing.cron,
        rate=timing.rate,
        interval=timing.interval,
        dates=timing.dates,
        permanent=None if timing.permanent is None else PermanentResponse(gap_seconds=timing.permanent),
        timings=None if timing.timings is None else [_single(each) for each in timing.timings],
        description=describe_timing(timing.timing, spec.extra_dates),
        dialect=timing.dialect,
        timezone=spec.clock.zone.name,
        dst_gap=spec.clock.gap,
        dst_fold=spec.clock.fold,
        spread_offset_seconds=spread_offset(stored.name, spec.spread_seconds) // SECOND,
        remaining_runs=stored.runs_left,
        expectation=_expectation(stored),
        task=_template(stored),
        created_at=to_iso(stored.created_at),
        updated_at=to_iso(stored.updated_at),
        next_at=instant(status.next_at),
        last_run=_last_run(status.latest_run),
        runs_started=status.runs_started,
        runs_skipped=stored.runs_skipped,
        revision=stored.revision,
        tzdata=stored.tzdata,
        version=stored.version,
    )


def _single(timing: Written) -> TimingResponse:
    return response_of(TimingResponse, timing)


def schedule_response(status: ScheduleStatus, upcoming: Sequence[Occurrence]) -> ScheduleResponse:
    """The complete response for a schedule."""
    stored = status.stored
    return ScheduleResponse(
        **schedule_entry(status),  # type: ignore[typeddict-item]  # a summary has no estimate
        upcoming=[previewed(each) for each in upcoming],
        skipped_runs=[
            SkippedRunResponse(recorded_at=to_iso(each.at), local_time=each.key or None, reason=each.note)
            for each in reversed(stored.log)
        ],
        changed_occurrences=[
            ChangedOccurrenceResponse(scheduled_at=to_iso(each.nominal), due_at=instant(each.at))
            for each in stored.spec.changed_occurrences
        ],
        backfills=[backfill_response(each) for each in stored.backfills],
    )


def previewed(occurrence: Occurrence) -> PreviewOccurrence:
    """An occurrence in a preview."""
    return PreviewOccurrence(
        scheduled_at=to_iso(occurrence.nominal),
        local_time=occurrence.key,
        runs=occurrence.runs,
        due_at=to_iso(occurrence.due_at) if occurrence.runs else None,
        note=occurrence.note or None,
    )


def occurrence_response(
    occurrence: Occurrence, task_id: TaskId | None, task: Task | None, note: str
) -> OccurrenceResponse:
    """An occurrence of a schedule, with its task and a description of the result."""
    shown = previewed(occurrence)
    shown["note"] = note or shown["note"]
    return OccurrenceResponse(
        **shown, task_id=None if task_id is None else str(task_id), state=None if task is None else task.state
    )


def template_fields(task: TaskSpec) -> dict[str, Any]:
    """A schedule's task in the form of a request, without options that were not given."""
    fields = {"type": task.type, **request_fields(task.target, task)}
    for name in DEFAULTED:
        if name in task.explicit:
            fields.setdefault(name, None)
        elif getattr(task, name) == getattr(_BUILT_IN, name):
            fields.pop(name, None)
    if task.order is not None:
        fields["order"] = response_of(OrderKeyResponse, task.order)
    if task.payload:
        fields["payload"] = json.loads(task.payload)
    return fields


def backfill_response(run: BackfillRun) -> BackfillResponse:
    """The response for a backfill."""
    wanted, cursor = run.backfill, run.cursor
    return BackfillResponse(
        id=run.id,
        scheduled_after=to_iso(wanted.start),
        scheduled_before=to_iso(wanted.end + 1),
        per_minute=wanted.per_minute,
        only_missing=wanted.only_missing,
        overlap="buffer_all" if wanted.is_buffered else "allow_all",
        occurrences=run.occurrences,
        runs_started=0 if cursor is None else cursor.runs_started,
        runs_known=0 if cursor is None else cursor.runs_known,
        finished_at=instant(run.finished_at),
    )


def _last_run(last: BegunRun | None) -> LastRunResponse | None:
    if last is None:
        return None
    return LastRunResponse(
        task_id=str(last.task_id), scheduled_at=to_iso(last.nominal), started_at=to_iso(last.started_at)
    )


def _expectation(stored: StoredSchedule) -> ExpectationResponse | None:
    spec = stored.spec
    if spec.expect_success_by is None and spec.expect_every_seconds is None:
        return None
    return response_of(ExpectationResponse, stored.expectation)


def _template(stored: StoredSchedule) -> TaskTemplateResponse:
    task = stored.spec.task
    answer = TaskTemplateResponse(
        type=task.type,
        target=None if task.target is None else target_response(task.target),
        order=response_of(OrderKeyResponse, task.order),
        **options_response(task),  # type: ignore[typeddict-item] # no option is called `payload`
    )
    if stored.payload.data is not None:
        answer["payload"] = json.loads(json_of(stored.payload))
    return answer


def run_page(page: RunPage, query: RunListQuery, next_token: str | None) -> ScheduleRunPage:
    """The response for a page of runs."""
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


def schedule_events(stored: StoredSchedule) -> ScheduleEventList:
    """The response with a schedule's events."""
    created = ScheduleEventResponse(
        type=CREATED,
        at=to_iso(stored.created_at),
        actor=ActorResponse(kind=ActorType.USER, name=stored.owner),
        reason=None,
        version=None,
        fields=[],
        values=[],
        task_id=None,
        backfill_id=None,
    )
    events = [created, *(_event(each, stored.owner) for each in stored.actions.records)]
    return ScheduleEventList(events=events, dropped=stored.actions.dropped)


def _event(record: ScheduleActionRecord, owner: str) -> ScheduleEventResponse:
    by = record.by
    name = None if by.actor is ActorType.SYSTEM else by.name or owner
    return ScheduleEventResponse(
        type=record.action.value,
        at=to_iso(record.at),
        actor=ActorResponse(kind=by.actor, name=name),
        reason=by.reason or None,
        version=record.version,
        fields=list(record.fields),
        values=[NewValueResponse(field=each.field, before=each.before, after=each.after) for each in record.values],
        task_id=record.subject if record.action is ScheduleAction.RUN_REQUESTED else None,
        backfill_id=record.subject if record.action in _OF_BACKFILLS else None,
    )
