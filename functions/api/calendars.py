"""The routes of calendars."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import page_tokens, routes
from duetime.contract.schedules.calendars import (
    CalendarPage,
    calendar_list_query,
    calendar_name,
    calendar_of,
    calendar_response,
    icalendar_query,
    new_calendar_name,
)
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query
from duetime.domain.schedules.time_zones import zone_named

from . import requests
from .identity import asked
from .responses import answer

_CALENDAR = requests.pattern(routes.CALENDAR)

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.get(routes.CALENDARS)
def list_calendars() -> Response[str]:
    """Read a page of one's calendars."""
    event, owner = asked(router)
    query = calendar_list_query(requests.query(event))
    scope = repr((owner, routes.CALENDARS))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found = composed().calendar_manager.list(owner, after, query.limit)
    token = page_tokens.text_token(found[-1].name, scope) if len(found) == query.limit else None
    return answer(json_text(CalendarPage(calendars=[calendar_response(each) for each in found], next_token=token)))


@router.get(_CALENDAR)
def get_calendar(name: str) -> Response[str]:
    """Read one calendar."""
    event, owner = asked(router)
    no_query(requests.query(event))
    return answer(json_text(calendar_response(composed().calendar_manager.get(owner, calendar_name(name)))))


@router.put(_CALENDAR)
def put_calendar(name: str) -> Response[str]:
    """Create or replace one calendar."""
    event, owner = asked(router)
    keeping, called = composed().calendar_manager, new_calendar_name(name)
    if requests.is_icalendar(event):
        query = icalendar_query(requests.query(event))
        data = requests.bytes_body(event)
        calendar = keeping.put_ics(owner, called, data, query.kind, zone_named(query.timezone))
    else:
        no_query(requests.query(event))
        calendar = keeping.put(owner, calendar_of(requests.body(event), called))
    return answer(json_text(calendar_response(calendar)))


@router.delete(_CALENDAR)
def delete_calendar(name: str) -> Response[str]:
    """Remove one calendar; answer it as it was."""
    event, owner = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    keeping = composed().calendar_manager
    before = keeping.get(owner, calendar_name(name))
    keeping.delete(owner, before.name)
    return answer(json_text(calendar_response(before)))
