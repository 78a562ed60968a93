"""Keeping calendars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from duetime.domain.errors import Unavailable
from duetime.domain.limits import MAX_PAGE
from duetime.domain.operating_parameters import DELETION_MARKER_LIFE
from duetime.domain.schedules.errors import CalendarExists, CalendarNotFound, CalendarUsed, CalendarVersionMismatch
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.resource_generations import Incarnation
    from duetime.domain.schedules.calendars import Calendar, CalendarMode
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores

_TRIES = 10
_BACK, _AHEAD = 366 * DAY, 2 * 366 * DAY
"""The period for which recurring events of a file are kept."""


class CalendarReader(Protocol):
    """Reads files of calendars."""

    def __call__(
        self, data: bytes, name: str, start: Millis, end: Millis, *, mode: CalendarMode, zone: Zone
    ) -> Calendar:
        """The calendar that a file holds, for a period.

        Raises:
            FieldInvalid: it cannot be read, or has too much.
        """
        ...


@dataclass(frozen=True, slots=True)
class Precondition:
    """What must be so for a calendar to be written.

    Attributes:
        version: at which it must be; `None` for any, or none.
        absent: there must be none.
    """

    version: int | None = None
    absent: bool = False

    def check(self, name: str, calendar: Calendar | None, incarnation: Incarnation) -> None:
        """Reject a write of what is not as it must be.

        Raises:
            CalendarExists: there is one, and there must be none.
            CalendarVersionMismatch: it is at another version, or there is none.
        """
        if self.absent and calendar is not None:
            raise CalendarExists(name)
        if self.version is not None and (calendar is None or incarnation.number != self.version):
            raise CalendarVersionMismatch(name)


@dataclass(frozen=True, slots=True)
class VersionedCalendar:
    """A calendar as it is stored.

    Attributes:
        version: grows with every write.
        is_new: there was none of its name before.
    """

    calendar: Calendar
    version: int
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class CalendarManager:
    """Keeps an owner's calendars.

    Attributes:
        read_ics: reads iCalendar files.
    """

    stores: Stores
    runtime: Runtime
    read_ics: CalendarReader

    def put(self, owner: str, calendar: Calendar, condition: Precondition | None = None) -> VersionedCalendar:
        """Keep a calendar, instead of what was under its name before; it counts from a schedule's next check on.

        Raises:
            CalendarExists: there is one, and there must be none.
            CalendarVersionMismatch: it is at another version than it must be.
            FieldInvalid: it is too large.
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
        """Keep what an iCalendar file says of the last year and the next two.

        Raises:
            CalendarExists: there is one, and there must be none.
            CalendarVersionMismatch: it is at another version than it must be.
            FieldInvalid: it cannot be read, or is too large.
        """
        now = self.runtime.now()
        calendar = self.read_ics(data, name, now - _BACK, now + _AHEAD, mode=mode, zone=zone)
        return self.put(owner, calendar, condition)

    def get(self, owner: str, name: str) -> VersionedCalendar:
        """Read a calendar.

        Raises:
            CalendarNotFound: there is none of that name.
        """
        calendar, incarnation = self.stores.calendars.read_edition(owner, name)
        if calendar is None:
            raise CalendarNotFound(name)
        return VersionedCalendar(calendar, incarnation.number)

    def list(self, owner: str, after: str, limit: int) -> Sequence[Calendar]:
        """An owner's calendars by their names, eventually consistently; the list goes on behind `after`."""
        return self.stores.calendars.list_after(owner, after, limit)

    def delete(self, owner: str, name: str, version: int | None = None) -> None:
        """Remove a calendar.

        Raises:
            CalendarNotFound: there is none of that name.
            CalendarVersionMismatch: it is at another version than it must be.
            CalendarUsed: a schedule names it.
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
                # Somebody else has removed it; what has its name now is another one.
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
    return Unavailable(f"the calendar {name!r} was written by others again and again")
