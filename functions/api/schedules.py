"""Handlers for schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.schedules import ScheduleServices
from duetime.composition.tasks import TaskServices
from duetime.contract.http import page_tokens
from duetime.contract.http.etags import content_etag
from duetime.contract.schedules import bodies, decoding, operations
from duetime.contract.schedules.encoding import (
    UPCOMING,
    backfill_response,
    occurrence_response,
    previewed,
    run_page,
    schedule_entry,
    schedule_events,
    schedule_response,
)
from duetime.contract.schedules.responses import (
    BackfillList,
    OccurrenceList,
    PreviewResponse,
    SchedulePage,
)
from duetime.contract.tasks import operations as tasks
from duetime.contract.tasks.encoding import json_text
from duetime.domain.bulk import BulkKind
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.occurrence_actions import ManualRun
from duetime.domain.schedules.timing_description import describe_timing
from duetime.domain.tasks.creation import IdempotencyKey
from duetime.domain.times import to_iso
from duetime.services.schedules.manual_runs_and_backfills import Period
from duetime.services.schedules.runs import RunsQuery

from .filter_actions import begin
from .requests import admit_manual_run, admit_schedule, body_hash
from .responses import Response, answer, replayed, task_response, with_estimate
from .routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.schedules.operations import (
        OccurrencesQuery,
        RunListQuery,
        ScheduleListQuery,
        ScheduleUpdateQuery,
    )
    from duetime.contract.tasks.queries import EstimateQuery
    from duetime.domain.schedules.schedule_record import StoredSchedule

    from .requests import Request


@route(operations.CREATE)
def create_schedule(request: Request[EstimateQuery]) -> Response:
    """Create a schedule."""
    document = request.document()
    spec = decoding.schedule_spec(document)
    admit_schedule(request)
    made = composed(ScheduleServices).creator.create(
        request.owner, spec, _key(request, document.value), request.traceparent
    )
    location = {"Location": operations.READ.url(name=made.value.name)}
    response = _response(request, made.value, replayed(location, is_replay=made.is_replay))
    return _with_estimate(response, made.value) if request.query.estimate else response


@route(operations.LIST)
def list_schedules(request: Request[ScheduleListQuery]) -> Response:
    """Read a page of the owner's schedules."""
    query, scope = request.query, request.query.scope(request.owner)
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found, last = composed(ScheduleServices).manager.find(request.owner, query.wanted, after, query.limit)
    token = None if last is None else page_tokens.text_token(last, scope)
    entries = [schedule_entry(each) for each in composed(ScheduleServices).preview.statuses(found)]
    return answer(json_text(SchedulePage(schedules=entries, next_token=token)))


@route(operations.PREVIEW)
def preview_schedule(request: Request) -> Response:
    """Preview a schedule's timing."""
    preview = decoding.preview_request(request.document(), composed().runtime.clock.now())
    found = preview.occurrences(tuple(composed(ScheduleServices).preview.resolve(request.owner, preview.calendars)))
    description = describe_timing(preview.schedule.timing, preview.schedule.spec.extra_dates)
    return answer(json_text(PreviewResponse(description=description, occurrences=[previewed(each) for each in found])))


@route(operations.READ)
def get_schedule(request: Request) -> Response:
    """Read one schedule."""
    return _response(request, composed(ScheduleServices).manager.get(request.owner, _name(request)))


@route(operations.UPDATE)
def update_schedule(request: Request[ScheduleUpdateQuery]) -> Response:
    """Update one schedule."""
    name = _name(request)
    update = decoding.schedule_update(request.document(), name)
    by = request.attributed(request.query.reason)
    manager = composed(ScheduleServices).manager
    return _response(request, manager.update(request.owner, name, update, request.version, by))


@route(operations.DELETE)
def delete_schedule(request: Request) -> Response:
    """Delete one schedule, and return the deleted schedule."""
    request.reject_body()
    manager = composed(ScheduleServices).manager
    before = manager.get_for_deletion(request.owner, _name(request))
    text = _text(before)
    manager.delete(request.owner, before.name, request.version)
    return answer(text)


@route(operations.PAUSE)
def pause_schedule(request: Request) -> Response:
    """Pause one schedule."""
    # The body is optional, because only the reason is in it.
    reason = decoding.pause_reason(request.document()) if request.has_body else ""
    by = request.attributed(reason)
    paused = composed(ScheduleServices).manager.pause(request.owner, _name(request), by, request.version)
    return _response(request, paused)


@route(operations.RESUME)
def resume_schedule(request: Request) -> Response:
    """Resume one schedule."""
    by = request.attributed(decoding.action_reason(request.document()) if request.has_body else "")
    resume = composed(ScheduleServices).manager.resume
    return _response(request, resume(request.owner, _name(request), request.version, by))


@route(operations.PAUSE_BY_TAG)
def pause_schedules_by_tag(request: Request) -> Response:
    """Pause the schedules with the given tags."""
    return _by_tag(request, BulkKind.PAUSE)


@route(operations.RESUME_BY_TAG)
def resume_schedules_by_tag(request: Request) -> Response:
    """Resume the schedules with the given tags."""
    return _by_tag(request, BulkKind.RESUME)


@route(operations.UPDATE_OCCURRENCE)
def update_occurrence(request: Request) -> Response:
    """Skip one occurrence, move it, or run it early."""
    wanted, reason = decoding.occurrence_request(request.document())
    changed = composed(ScheduleServices).occurrence_changer.change(
        request.owner, _name(request), wanted, request.version, request.attributed(reason)
    )
    return _response(request, changed)


@route(operations.RUN)
def run_schedule(request: Request) -> Response:
    """Run a schedule's task, now or later."""
    name, document = _name(request), request.document() if request.has_body else None
    wanted, reason = (ManualRun(), "") if document is None else decoding.run_request(document)
    manual_runs = composed(ScheduleServices).manual_runs
    key = _key(request, [name, document.value] if document is not None and document.value else name)
    by = request.attributed(reason)
    admit_manual_run(request)
    run = manual_runs.run(request.owner, name, request.version, key, by, request.traceparent, wanted)
    task = composed(TaskServices).reader.with_contents(run.value)
    headers = replayed({"Location": tasks.READ.url(task_id=task.id)}, is_replay=run.is_replay)
    return task_response(task, request.operation.returns.status, headers)


@route(operations.CREATE_BACKFILL)
def create_backfill(request: Request) -> Response:
    """Begin a backfill, which runs the occurrences in a past period."""
    document, name = request.document(), _name(request)
    wanted = decoding.backfill_request(document)
    # `scheduled_before` is exclusive, but the end of a period is inclusive.
    last, overlap = wanted.scheduled_before - 1, Overlap(wanted.overlap)
    period = Period(wanted.scheduled_after, last, wanted.per_minute, wanted.only_missing, overlap)
    key = _key(request, [name, document.value])
    by = request.attributed("")
    manual_runs = composed(ScheduleServices).manual_runs
    begun = manual_runs.backfill(request.owner, name, period, request.version, key, by)
    location = {"Location": operations.GET_BACKFILL.url(name=name, backfill_id=begun.value.id)}
    headers = replayed(location, is_replay=begun.is_replay)
    return answer(json_text(backfill_response(begun.value)), request.operation.returns.status, headers)


@route(operations.LIST_BACKFILLS)
def list_backfills(request: Request) -> Response:
    """Read the backfills of one schedule."""
    found = composed(ScheduleServices).manual_runs.backfills(request.owner, _name(request))
    return answer(json_text(BackfillList(backfills=[backfill_response(each) for each in found])))


@route(operations.GET_BACKFILL)
def get_backfill(request: Request) -> Response:
    """Read one backfill."""
    run = composed(ScheduleServices).manual_runs.get_backfill(
        request.owner, _name(request), request.parameters["backfill_id"]
    )
    return answer(json_text(backfill_response(run)))


@route(operations.CANCEL_BACKFILL)
def cancel_backfill(request: Request) -> Response:
    """Cancel one backfill."""
    request.reject_body()
    run = composed(ScheduleServices).manual_runs.cancel_backfill(
        request.owner, _name(request), request.parameters["backfill_id"], request.attributed("")
    )
    return answer(json_text(backfill_response(run)))


@route(operations.LIST_EVENTS)
def list_schedule_events(request: Request) -> Response:
    """Read the events of one schedule."""
    stored = composed(ScheduleServices).manager.get(request.owner, _name(request))
    return answer(json_text(schedule_events(stored)))


@route(operations.LIST_OCCURRENCES)
def list_occurrences(request: Request[OccurrencesQuery]) -> Response:
    """Read the occurrences of one schedule."""
    start, end = request.query.bounds(composed().runtime.clock.now())
    seen, complete_since = composed(ScheduleServices).runs.occurrences(
        request.owner, _name(request), start, end, request.query.limit
    )
    occurrences = [occurrence_response(each.occurrence, each.task_id, each.task, each.note) for each in seen]
    return answer(json_text(OccurrenceList(occurrences=occurrences, complete_since=to_iso(complete_since))))


@route(operations.LIST_RUNS)
def list_schedule_runs(request: Request[RunListQuery]) -> Response:
    """Read a page of the runs of one schedule."""
    owner, name, query = request.owner, _name(request), request.query
    after = None if query.next_token is None else page_tokens.after_of(query.next_token, query.scope(owner, name))
    wanted = RunsQuery(after, query.scheduled_after or 0, query.scheduled_before, query.limit, frozenset(query.status))
    page = composed(ScheduleServices).runs.list(owner, name, wanted)
    token = None if page.after is None else page_tokens.token_of(page.after, query.scope(owner, name))
    return answer(json_text(run_page(page, query, token)))


def _name(request: Request) -> str:
    return decoding.schedule_name(request.name)


def _key(request: Request, said: object) -> IdempotencyKey | None:
    """The idempotency key of a request.

    The hash includes the operation, because requests for different operations can have identical bodies.
    """
    return IdempotencyKey(request.key, body_hash([request.operation.id, said])) if request.key else None


def _response(request: Request, stored: StoredSchedule, headers: Mapping[str, str] | None = None) -> Response:
    status = request.operation.returns.status
    text = _text(stored)
    return answer(text, status, {"ETag": content_etag(stored.version, text), **(headers or {})})


def _with_estimate(response: Response, stored: StoredSchedule) -> Response:
    """Add the monthly cost of the schedule's runs, which is unknown for a permanent schedule."""
    return with_estimate(
        response,
        stored.owner,
        lambda workloads: None if stored.is_permanent else workloads.of_schedule(stored.schedule()),
    )


def _text(stored: StoredSchedule) -> str:
    schedule_preview = composed(ScheduleServices).preview
    upcoming = schedule_preview.upcoming(stored, UPCOMING)
    return json_text(schedule_response(schedule_preview.status(stored), upcoming))


def _by_tag(request: Request, kind: BulkKind) -> Response:
    document = request.document()
    body = bodies.read_schedules_by_tag(document)
    wanted = bodies.request_of(body, kind, request.text())
    return begin(request, replace(wanted, by=request.attributed(body.reason)), document.value)
