"""The client's methods for calendars: the days and times at which scheduled tasks may not run, or may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack
from urllib.parse import quote

from duetime_client.lock_admin import read
from duetime_client.pages import pages
from duetime_client.problems import document_of
from duetime_client.schedule_models import Calendar
from duetime_client.task_fields import body_of
from duetime_client.transport import guard

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from duetime_client.schedule_models import CalendarFields
    from duetime_client.transport import Transport

CALENDARS = "/v1/calendars"
ICALENDAR = "text/calendar"


class Calendars:
    """The client's methods for calendars."""

    _transport: Transport

    def list_calendars(self) -> Iterator[Calendar]:
        """All calendars, by name, page by page."""
        for response, entry in pages(self._transport, CALENDARS, "calendars"):
            yield read(Calendar, response, entry)

    def get_calendar(self, name: str) -> Calendar:
        """One calendar."""
        return _calendar(self._transport.request("GET", path_of(name)))

    def put_calendar(self, name: str, /, *, if_match: str | None = None, **fields: Unpack[CalendarFields]) -> Calendar:
        """Create a calendar, or replace it completely; schedules that name it apply it from then on.

        With `if_match`, replace it only if it still has that `etag`; a lost response is not followed by another try.
        """
        headers = guard(if_match)
        return _calendar(
            self._transport.request(
                "PUT", path_of(name), body=body_of(fields), headers=headers, repeatable=if_match is None
            )
        )

    def put_icalendar(
        self,
        name: str,
        data: bytes,
        *,
        mode: str | None = None,
        timezone: str | None = None,
        if_match: str | None = None,
    ) -> Calendar:
        """Create or replace a calendar with an iCalendar file (`.ics`).

        Args:
            name: The calendar's name.
            data: The file's bytes.
            mode: `excludes` (default) or `includes`: whether tasks run outside the events, or during them only.
            timezone: The zone of its days; UTC by default.
            if_match: Replace it only if it still has this `etag`.
        """
        query = [(key, value) for key, value in (("mode", mode), ("timezone", timezone)) if value]
        response = self._transport.request(
            "PUT",
            path_of(name),
            query=query,
            body=data,
            headers={"Content-Type": ICALENDAR, **guard(if_match)},
            repeatable=if_match is None,
        )
        return _calendar(response)

    def delete_calendar(self, name: str, *, if_match: str | None = None) -> Calendar:
        """Delete a calendar that no schedule names; returns it as it was.

        Raises:
            Conflict: A schedule names it.
        """
        headers = guard(if_match)
        return _calendar(self._transport.request("DELETE", path_of(name), headers=headers))


def path_of(name: str) -> str:
    """The path of a calendar; the name is one segment of it, whatever characters it has."""
    return f"{CALENDARS}/{quote(name, safe='', errors='replace')}"


def _calendar(response: httpx.Response) -> Calendar:
    return read(Calendar, response, document_of(response)).at(response.headers.get("ETag"))
