"""`client.calendars`: the days and times at which scheduled tasks may or may not run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Unpack

from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.problems import document_of
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import read
from duetime_client.schedule_models import Calendar
from duetime_client.session import guard, segment
from duetime_client.task_request_fields import body_of

if TYPE_CHECKING:
    import httpx

    from duetime_client.io_operations import Items
    from duetime_client.literals import CalendarMode
    from duetime_client.schedule_models import CalendarFields

CALENDARS = "/v1/calendars"
ICALENDAR = "text/calendar"


class CalendarOperations(Resource):
    """Calendars."""

    @Stream
    def list(self) -> Items[Calendar]:
        """List all calendars in order of name; pages are fetched as needed."""
        return pages(self._session, CALENDARS, "calendars", partial(read, Calendar))

    @Operation
    def get(self, name: str) -> Request[Calendar]:
        """One calendar."""
        return Request("GET", path_of(name), _calendar)

    @Operation
    def put(self, name: str, /, *, if_match: str | None = None, **fields: Unpack[CalendarFields]) -> Request[Calendar]:
        """Create or completely replace a calendar; schedules that use the calendar apply the new times from then on.

        With `if_match`, the calendar is replaced only if it still has that `etag`, and the request is not retried if
        its response is lost.
        """
        headers, is_repeatable = guard(if_match), if_match is None
        return Request("PUT", path_of(name), _calendar, body=body_of(fields), headers=headers, repeatable=is_repeatable)

    @Operation
    def put_icalendar(
        self,
        name: str,
        data: bytes,
        *,
        mode: CalendarMode | None = None,
        timezone: str | None = None,
        if_match: str | None = None,
    ) -> Request[Calendar]:
        """Create or replace a calendar from an iCalendar file (`.ics`).

        Args:
            name: The calendar's name.
            data: The file's bytes.
            mode: `excludes` (default) if tasks run only outside the events, or `includes` if tasks run only during the
                events.
            timezone: The time zone of the calendar's days; UTC by default.
            if_match: Replace the calendar only if it still has this `etag`.
        """
        return Request(
            "PUT",
            path_of(name),
            _calendar,
            query=[(key, value) for key, value in (("mode", mode), ("timezone", timezone)) if value],
            body=data,
            headers={"Content-Type": ICALENDAR, **guard(if_match)},
            repeatable=if_match is None,
        )

    @Operation
    def delete(self, name: str, *, if_match: str | None = None) -> Request[Calendar]:
        """Delete a calendar that no schedule uses, and return the deleted calendar.

        Raises:
            Conflict: A schedule uses the calendar.
        """
        return Request("DELETE", path_of(name), _calendar, headers=guard(if_match))


class Calendars(CalendarOperations, SyncResource):
    """`client.calendars` of `Client`."""


class AsyncCalendars(CalendarOperations, AsyncResource):
    """`client.calendars` of `AsyncClient`."""


def path_of(name: str) -> str:
    """The path of a calendar; the name is escaped as one path segment."""
    return f"{CALENDARS}/{segment(name)}"


def _calendar(response: httpx.Response) -> Calendar:
    return read(Calendar, response, document_of(response)).at(response.headers.get("ETag"))
