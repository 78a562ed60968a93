"""Handlers for calendars."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.schedules import ScheduleServices
from duetime.contract.http import page_tokens
from duetime.contract.http.etags import etag_of
from duetime.contract.http.request_errors import FaultCode, ParametersInvalid
from duetime.contract.schedules import operations
from duetime.contract.schedules.calendars import (
    CalendarPage,
    calendar_name,
    calendar_of,
    calendar_response,
    new_calendar_name,
)
from duetime.contract.tasks.encoding import json_text
from duetime.domain.schedules.calendars import CalendarMode
from duetime.domain.schedules.time_zones import zone_named
from duetime.services.schedules.calendars import Precondition

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.schedules.calendars import CalendarListQuery, ICalendarQuery
    from duetime.services.schedules.calendars import VersionedCalendar

    from .requests import Request


@route(operations.LIST_CALENDARS)
def list_calendars(request: Request[CalendarListQuery]) -> Response:
    """Read a page of the owner's calendars."""
    query, scope = request.query, repr((request.owner, operations.LIST_CALENDARS.path))
    after = "" if query.next_token is None else page_tokens.text_after(query.next_token, scope)
    found = composed(ScheduleServices).calendar_manager.list(request.owner, after, query.limit)
    token = page_tokens.text_token(found[-1].name, scope) if len(found) == query.limit else None
    return answer(json_text(CalendarPage(calendars=[calendar_response(each) for each in found], next_token=token)))


@route(operations.READ_CALENDAR)
def get_calendar(request: Request) -> Response:
    """Read one calendar."""
    return _response(composed(ScheduleServices).calendar_manager.get(request.owner, calendar_name(request.name)))


@route(operations.PUT_CALENDAR)
def put_calendar(request: Request[ICalendarQuery]) -> Response:
    """Create or replace one calendar."""
    manager, name, condition = (
        composed(ScheduleServices).calendar_manager,
        new_calendar_name(request.name),
        _condition(request),
    )
    if request.is_icalendar:
        zone, mode = zone_named(request.query.timezone or "UTC"), request.query.mode or CalendarMode.EXCLUDES
        stored = manager.put_ics(request.owner, name, request.text(), mode, zone, condition)
    else:
        request.query.reject()
        stored = manager.put(request.owner, calendar_of(request.document(), name), condition)
    if not stored.is_new:
        return _response(stored)
    return _response(stored, HTTPStatus.CREATED, {"Location": operations.READ_CALENDAR.url(name=name)})


@route(operations.DELETE_CALENDAR)
def delete_calendar(request: Request) -> Response:
    """Delete one calendar, and return the deleted calendar."""
    request.reject_body()
    manager = composed(ScheduleServices).calendar_manager
    before = manager.get(request.owner, calendar_name(request.name))
    manager.delete(request.owner, before.calendar.name, request.version)
    return _response(before)


def _condition(request: Request) -> Precondition:
    """The condition that a calendar's PUT request sets.

    Raises:
        ParametersInvalid: `If-None-Match` names a version, which has no meaning for a write.
    """
    only_new = request.header(operations.ONLY_NEW.name)
    if only_new is not None and only_new.strip() != "*":
        reason = "should be *, which replaces no calendar"
        raise ParametersInvalid.of(operations.ONLY_NEW.name, reason, FaultCode.NOT_ALLOWED)
    return Precondition(request.version, absent=only_new is not None)


def _response(
    found: VersionedCalendar, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    text = json_text(calendar_response(found.calendar))
    return answer(text, status, {"ETag": etag_of(found.version), **(headers or {})})
