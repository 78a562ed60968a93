"""The handlers of calendars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition.api import composed
from duetime.contract.http import page_tokens
from duetime.contract.schedules import operations
from duetime.contract.schedules.calendar_responses import CalendarPage, calendar_response
from duetime.contract.schedules.calendars import calendar_name, calendar_of, new_calendar_name
from duetime.contract.tasks.encoding import json_text
from duetime.domain.schedules.calendars import CalendarMode
from duetime.domain.schedules.time_zones import zone_named

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from duetime.contract.schedules.calendars import CalendarListQuery, ICalendarQuery

    from .requests import Request


@route(operations.LIST_CALENDARS)
def list_calendars(request: Request[CalendarListQuery]) -> Response:
    """Read a page of one's calendars."""
    query, scope = request.query, repr((request.owner, operations.LIST_CALENDARS.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found = composed().calendar_manager.list(request.owner, after, query.limit)
    token = page_tokens.text_token(found[-1].name, scope) if len(found) == query.limit else None
    return answer(json_text(CalendarPage(calendars=[calendar_response(each) for each in found], next_token=token)))


@route(operations.READ_CALENDAR)
def get_calendar(request: Request) -> Response:
    """Read one calendar."""
    calendar = composed().calendar_manager.get(request.owner, calendar_name(request.name))
    return answer(json_text(calendar_response(calendar)))


@route(operations.PUT_CALENDAR)
def put_calendar(request: Request[ICalendarQuery]) -> Response:
    """Create or replace one calendar."""
    manager, name = composed().calendar_manager, new_calendar_name(request.name)
    if request.is_icalendar:
        zone, mode = zone_named(request.query.timezone or "UTC"), request.query.mode or CalendarMode.EXCLUDES
        calendar = manager.put_ics(request.owner, name, request.text(), mode, zone)
    else:
        request.query.reject()
        calendar = manager.put(request.owner, calendar_of(request.document(), name))
    return answer(json_text(calendar_response(calendar)))


@route(operations.DELETE_CALENDAR)
def delete_calendar(request: Request) -> Response:
    """Delete one calendar; answer it as it was."""
    request.reject_body()
    manager = composed().calendar_manager
    before = manager.get(request.owner, calendar_name(request.name))
    manager.delete(request.owner, before.name)
    return answer(json_text(calendar_response(before)))
