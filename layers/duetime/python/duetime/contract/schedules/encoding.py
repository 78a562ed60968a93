"""From schedules and their occurrences to the bodies of answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.contract.schedules.responses import (
    BackfillResponse,
    LastRunResponse,
    OccurrenceResponse,
    PreviewedResponse,
    ScheduleEntry,
    ScheduleResponse,
    SkipResponse,
    TemplateResponse,
)
from duetime.contract.tasks.encoding import instant, json_of, options_response, target_response
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.run_history import BackfillRun
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

UPCOMING = 5
"""Occurrences that a schedule shows of what comes."""


def schedule_entry(stored: StoredSchedule, next_at: Millis | None) -> ScheduleEntry:
    """A schedule as lists show it."""
    spec, timing = stored.spec, stored.spec.written
    return ScheduleEntry(
        id=stored.name,
        name=stored.name,
        state=stored.state,
        note=stored.note or None,
        cron=timing.cron,
        rate=timing.rate,
        interval=timing.interval,
        dates=timing.dates,
        permanent=timing.permanent,
        dialect=timing.dialect,
        timezone=spec.clock.zone.name,
        dst_gap=spec.clock.gap,
        dst_fold=spec.clock.fold,
        calendars=spec.calendars,
        on_excluded=spec.on_excluded,
        jitter_seconds=spec.jitter_seconds,
        start_at=instant(spec.start_at),
        end_at=instant(spec.end_at),
        remaining_runs=stored.remaining_runs,
        overlap=spec.overlap,
        catch_up_seconds=spec.catch_up_seconds,
        pause_on_failure=spec.pause_on_failure,
        task=_template(stored),
        created_at=to_iso(stored.created_at),
        changed_at=to_iso(stored.changed_at),
        next_at=instant(next_at),
        placed=stored.placed,
        skipped=stored.skipped,
        revision=stored.revision,
        tzdata=stored.tzdata,
        version=stored.version,
    )


def schedule_response(
    stored: StoredSchedule, next_at: Millis | None, upcoming: Sequence[Occurrence]
) -> ScheduleResponse:
    """A schedule, whole."""
    last = stored.last
    return ScheduleResponse(
        **schedule_entry(stored, next_at),
        upcoming=[previewed(each) for each in upcoming],
        last=None if last is None else LastRunResponse(task_id=str(last.task_id), at=to_iso(last.nominal)),
        skips=[
            SkipResponse(at=to_iso(each.at), local=each.key or None, note=each.note) for each in reversed(stored.log)
        ],
        backfills=[_backfill(each) for each in stored.backfills],
    )


def previewed(occurrence: Occurrence) -> PreviewedResponse:
    """One time of a timing."""
    return PreviewedResponse(
        at=to_iso(occurrence.nominal),
        local=occurrence.key,
        runs=occurrence.runs,
        due_at=to_iso(occurrence.due_at) if occurrence.runs else None,
        note=occurrence.note or None,
    )


def occurrence_response(
    occurrence: Occurrence, task_id: TaskId | None, task: Task | None, note: str
) -> OccurrenceResponse:
    """One time of a schedule, with its task, and what became of it in words."""
    shown = previewed(occurrence)
    shown["note"] = note or shown["note"]
    return OccurrenceResponse(
        **shown, task_id=None if task_id is None else str(task_id), state=None if task is None else task.state
    )


def _template(stored: StoredSchedule) -> TemplateResponse:
    task = stored.spec.task
    answer = TemplateResponse(
        type=task.type,
        target=None if task.target is None else target_response(task.target),
        **options_response(task),  # type: ignore[typeddict-item] # no option is called `payload`
    )
    if stored.payload.data is not None:
        answer["payload"] = json.loads(json_of(stored.payload))
    return answer


def _backfill(run: BackfillRun) -> BackfillResponse:
    asked, cursor = run.backfill, run.cursor
    return BackfillResponse(
        {
            "id": run.id,
            "from": to_iso(asked.start),
            "until": to_iso(asked.end),
            "per_minute": asked.per_minute,
            "size": run.size,
            "placed": 0 if cursor is None else cursor.placed,
            "ended_at": instant(run.ended_at),
        }
    )
