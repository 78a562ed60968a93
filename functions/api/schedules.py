"""The routes of schedules."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import page_tokens, routes
from duetime.contract.http.etags import etag_of, version_wanted
from duetime.contract.schedules.decoding import (
    backfill_request,
    pause_note,
    preview_request,
    schedule_change,
    schedule_name,
    schedule_spec,
)
from duetime.contract.schedules.encoding import (
    UPCOMING,
    occurrence_response,
    previewed,
    schedule_entry,
    schedule_response,
)
from duetime.contract.schedules.queries import occurrences_query, schedule_list_query
from duetime.contract.schedules.responses import OccurrencesResponse, PreviewResponse, SchedulePage
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query

from . import requests
from .identity import asked
from .responses import answer, task_response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from duetime.domain.schedules.stored_schedule import StoredSchedule

_SCHEDULE = requests.pattern(routes.SCHEDULE)
_TASK_NESTING = 1
"""A task stands one level deeper in a schedule than by itself."""

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.post(routes.SCHEDULES)
def create_schedule() -> Response[str]:
    """Create a schedule."""
    event, owner = asked(router)
    no_query(requests.query(event))
    spec = schedule_spec(requests.body(event, wrapped=_TASK_NESTING))
    created = composed().schedule_manager.create(owner, spec)
    return _response(created, HTTPStatus.CREATED, {"Location": f"{routes.SCHEDULES}/{created.name}"})


@router.get(routes.SCHEDULES)
def list_schedules() -> Response[str]:
    """Read a page of one's schedules."""
    event, owner = asked(router)
    query = schedule_list_query(requests.query(event))
    scope = query.scope(owner)
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    inside = composed()
    found = inside.schedule_manager.list(owner, after, query.limit)
    token = page_tokens.text_token(found[-1].name, scope) if len(found) == query.limit else None
    entries = [
        schedule_entry(each, inside.schedule_preview.next_at(each))
        for each in found
        if query.state is None or each.state is query.state
    ]
    return answer(json_text(SchedulePage(schedules=entries, next_token=token)))


@router.post(routes.SCHEDULE_PREVIEW)
def preview_schedule() -> Response[str]:
    """Say what a timing means."""
    event, owner = asked(router)
    no_query(requests.query(event))
    inside = composed()
    preview = preview_request(requests.body(event), inside.runtime.clock.now())
    found = preview.occurrences(tuple(inside.schedule_preview.resolve(owner, preview.calendars)))
    return answer(json_text(PreviewResponse(occurrences=[previewed(each) for each in found])))


@router.get(_SCHEDULE)
def get_schedule(name: str) -> Response[str]:
    """Read one schedule."""
    event, owner = asked(router)
    no_query(requests.query(event))
    return _response(composed().schedule_manager.get(owner, schedule_name(name)))


@router.patch(_SCHEDULE)
def change_schedule(name: str) -> Response[str]:
    """Change one schedule."""
    event, owner = asked(router)
    no_query(requests.query(event))
    version = _version(event)
    change = schedule_change(requests.body(event, wrapped=_TASK_NESTING))
    return _response(composed().schedule_manager.change(owner, schedule_name(name), change, version))


@router.delete(_SCHEDULE)
def delete_schedule(name: str) -> Response[str]:
    """Remove one schedule; answer it as it was."""
    event, owner = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    inside = composed()
    before = inside.schedule_manager.get(owner, schedule_name(name))
    text = _text(before)
    inside.schedule_manager.delete(owner, before.name, _version(event))
    return answer(text)


@router.post(requests.pattern(routes.SCHEDULE_PAUSE))
def pause_schedule(name: str) -> Response[str]:
    """Hold one schedule."""
    event, owner = asked(router)
    no_query(requests.query(event))
    # Nobody has to say why.
    note = pause_note(requests.body(event)) if requests.has_body(event) else ""
    return _response(composed().schedule_manager.pause(owner, schedule_name(name), note, _version(event)))


@router.post(requests.pattern(routes.SCHEDULE_RESUME))
def resume_schedule(name: str) -> Response[str]:
    """Let one schedule go on."""
    event, owner = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    return _response(composed().schedule_manager.resume(owner, schedule_name(name), _version(event)))


@router.post(requests.pattern(routes.SCHEDULE_TRIGGER))
def trigger_schedule(name: str) -> Response[str]:
    """Run a schedule's task now."""
    event, owner = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    inside = composed()
    task = inside.task_reader.with_contents(inside.schedule_manager.trigger(owner, schedule_name(name)))
    return task_response(task, HTTPStatus.CREATED, {"Location": f"{routes.TASKS}/{task.id}"})


@router.post(requests.pattern(routes.SCHEDULE_BACKFILL))
def backfill_schedule(name: str) -> Response[str]:
    """Run the occurrences of a stretch of the past."""
    event, owner = asked(router)
    no_query(requests.query(event))
    wanted = backfill_request(requests.body(event))
    begun = composed().schedule_manager.backfill(
        owner, schedule_name(name), wanted.start, wanted.until, wanted.per_minute
    )
    return _response(begun, HTTPStatus.ACCEPTED)


@router.delete(requests.pattern(routes.SCHEDULE_BACKFILL_ONE))
def cancel_backfill(name: str, backfill_id: str) -> Response[str]:
    """End a backfill before it is done."""
    event, owner = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    return _response(composed().schedule_manager.cancel_backfill(owner, schedule_name(name), backfill_id))


@router.get(requests.pattern(routes.SCHEDULE_OCCURRENCES))
def list_occurrences(name: str) -> Response[str]:
    """Read the occurrences of one schedule."""
    event, owner = asked(router)
    query = occurrences_query(requests.query(event))
    inside = composed()
    start, end = query.bounds(inside.runtime.clock.now())
    seen = inside.schedule_preview.occurrences(owner, schedule_name(name), start, end, query.limit)
    occurrences = [occurrence_response(each.occurrence, each.task_id, each.task, each.note) for each in seen]
    return answer(json_text(OccurrencesResponse(occurrences=occurrences)))


def _version(event: Mapping[str, Any]) -> int | None:
    return version_wanted(requests.header(event, "If-Match"))


def _response(
    stored: StoredSchedule, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response[str]:
    return answer(_text(stored), status, {"ETag": etag_of(stored.version), **(headers or {})})


def _text(stored: StoredSchedule) -> str:
    schedule_preview = composed().schedule_preview
    upcoming = schedule_preview.upcoming(stored, UPCOMING)
    return json_text(schedule_response(stored, schedule_preview.next_at(stored), upcoming))
