"""Stores calendars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from duetime.domain.errors import CalendarExists, CalendarNotFound, CalendarUsed, CalendarVersionMismatch, Unavailable
from duetime.domain.limits import MAX_PAGE
from duetime.domain.operating_parameters import DELETION_MARKER_LIFE
from duetime.domain.times import DAY
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.conditional_writes import Incarnation
    from duetime.domain.schedules.calendars import Calendar, CalendarMode
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores

_TRIES = 10
_BACK, _AHEAD = 366 * DAY, 2 * 366 * DAY
"""The period around the current time for which a file's recurring events are stored."""


class CalendarReader(Protocol):
    """Reads calendar files."""

    def __call__(
        self, data: bytes, name: str, start: Millis, end: Millis, *, mode: CalendarMode, zone: Zone
    ) -> Calendar:
        """Parse a calendar file for a period.

        Raises:
            FieldInvalid: the file is invalid or too large.
        """
        ...


@frozen
class Precondition:
    """Condition for writing a calendar.

    Attributes:
        version: required version; `None` for any version, or a new calendar.
        absent: the calendar must not exist.
    """

    version: int | None = None
    absent: bool = False

    def check(self, name: str, calendar: Calendar | None, incarnation: Incarnation) -> None:
        """Reject a write whose condition is not met.

        Raises:
            CalendarExists: the calendar exists, but must not exist.
            CalendarVersionMismatch: the calendar has a different version, or does not exist.
        """
        if self.absent and calendar is not None:
            raise CalendarExists(name)
        if self.version is not None and (calendar is None or incarnation.number != self.version):
            raise CalendarVersionMismatch(name)


@frozen
class VersionedCalendar:
    """A stored calendar.

    Attributes:
        version: increases with every write.
        is_new: whether the write created the calendar.
    """

    calendar: Calendar
    version: int
    is_new: bool = False


@frozen
class CalendarManager:
    """Manages an owner's calendars.

    Attributes:
        read_ics: reads iCalendar files.
    """

    stores: Stores
    runtime: Runtime
    read_ics: CalendarReader

    def put(self, owner: str, calendar: Calendar, condition: Precondition | None = None) -> VersionedCalendar:
        """Store a calendar, replacing any calendar with the same name; schedules use it from their next check on.

        Raises:
            CalendarExists: the calendar exists, but must not exist.
            CalendarVersionMismatch: the calendar is not at the required version.
            FieldInvalid: the calendar is too large.
            Unavailable: too many concurrent writes.
        """
        for _ in range(_TRIES):
            before, incarnation = self.stores.calendars.read_edition(owner, calendar.name)
            (condition or _ANY).check(calendar.name, before, incarnation)
            if self.stores.calendars.put(owner, calendar, incarnation, self.runtime.nonce()):
                return VersionedCalendar(calendar, incarnation.next.number, is_new=before is None)
        raise _busy(calendar.name)

    def put_ics(
        self, owner: str, name: str, data: bytes, mode: CalendarMode, zone: Zone, condition: Precondition | None = None
    ) -> VersionedCalendar:
        """Store the events of an iCalendar file for the last year and the next two years.

        Raises:
            CalendarExists: the calendar exists, but must not exist.
            CalendarVersionMismatch: the calendar is not at the required version.
            FieldInvalid: the file is invalid or too large.
        """
        now = self.runtime.now()
        calendar = self.read_ics(data, name, now - _BACK, now + _AHEAD, mode=mode, zone=zone)
        return self.put(owner, calendar, condition)

    def get(self, owner: str, name: str) -> VersionedCalendar:
        """Read a calendar.

        Raises:
            CalendarNotFound: no calendar has that name.
        """
        calendar, incarnation = self.stores.calendars.read_edition(owner, name)
        if calendar is None:
            raise CalendarNotFound(name)
        return VersionedCalendar(calendar, incarnation.number)

    def list(self, owner: str, after: str, limit: int) -> Sequence[Calendar]:
        """An owner's calendars whose names follow `after`, by name and with eventual consistency."""
        return self.stores.calendars.list_after(owner, after, limit)

    def delete(self, owner: str, name: str, version: int | None = None) -> None:
        """Delete a calendar.

        Raises:
            CalendarNotFound: no calendar has that name.
            CalendarVersionMismatch: the calendar is not at the required version.
            CalendarUsed: a schedule uses the calendar.
            Unavailable: too many concurrent writes.
        """
        calendar, incarnation = self.stores.calendars.read_edition(owner, name)
        if calendar is None:
            raise CalendarNotFound(name)
        for _ in range(_TRIES):
            Precondition(version).check(name, calendar, incarnation)
            self._check_unused(owner, name)
            expires_at = self.runtime.now() + DELETION_MARKER_LIFE
            if self.stores.calendars.remove(owner, calendar, incarnation, self.runtime.nonce(), expires_at):
                return
            calendar, found = self.stores.calendars.read_edition(owner, name)
            if calendar is None or found.created != incarnation.created:
                # A concurrent request has deleted the calendar; the name now belongs to another calendar.
                return
            incarnation = found
        raise _busy(name)

    def _check_unused(self, owner: str, name: str) -> None:
        after = ""
        while page := self.stores.schedules.list_after(owner, after, MAX_PAGE):
            for schedule in page:
                if name in schedule.spec.calendars:
                    raise CalendarUsed(name, schedule.name)
            after = page[-1].name


_ANY = Precondition()


def _busy(name: str) -> Unavailable:
    return Unavailable(f"the calendar {name!r} has too many concurrent writes")
