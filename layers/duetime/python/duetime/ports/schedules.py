"""The stores of schedules and calendars.

Every method may raise `duetime.domain.errors.Unavailable` if the store throttles or fails after its own retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duetime.domain.resource_generations import Incarnation
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
    from duetime.domain.times import Millis


class ScheduleStore(Protocol):
    """Schedules, and which of their occurrences goes on."""

    def read(self, owner: str, name: str) -> tuple[StoredSchedule | None, Activity]:
        """Read a schedule and its activity in one request, consistently."""
        ...

    def vacancy(self, owner: str, name: str) -> int | None:
        """The edition at which a schedule of this name is created, read consistently; `None` if there is one.

        It is 0 for a name that nothing has had lately, else the edition of the deletion marker: a creation names what
        it read, so that one which arrives late cannot replace what has come, or gone, in the meantime.
        """
        ...

    def read_removed(self, owner: str, name: str) -> RemovedSchedule | None:
        """What was left of the schedule that was last removed under a name, for some hours, if no other has it now."""
        ...

    def save(self, stored: StoredSchedule, nonce: str) -> bool:
        """Store a schedule, if it is still itself and at the edition that was read; a new one, if the name is vacant.

        Its `uid` says which schedule it is: another one of the same name is left alone, whatever its edition.

        Safe to resend: a rejection by an item that bears the save's own nonce is a success.

        Returns:
            Whether it is stored, at the next edition.
        """
        ...

    def remove(self, stored: StoredSchedule, nonce: str, expires_at: Millis) -> bool:
        """Remove a schedule and its activity, if it is still at the edition that was read, or gone already.

        A deletion marker takes its place until `expires_at`; another schedule of its name is left alone.

        Returns:
            Whether it is gone.
        """
        ...

    def save_activity(self, owner: str, name: str, activity: Activity, nonce: str) -> bool:
        """Store which occurrence goes on, if that is still at the version that was read. Safe to resend.

        Returns:
            Whether it is stored, at the next version.
        """
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[StoredSchedule]:
        """An owner's schedules in order of their names, eventually consistently; the list goes on behind `after`."""
        ...


class CalendarStore(Protocol):
    """Calendars."""

    def put(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str) -> bool:
        """Store a calendar, if what is under its name is still at the edition that was read. Safe to resend.

        Returns:
            Whether it is stored, at the next edition.

        Raises:
            FieldInvalid: it is too large.
        """
        ...

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar, consistently; `None` if there is none."""
        ...

    def read_edition(self, owner: str, name: str) -> tuple[Calendar | None, Incarnation]:
        """Read a calendar and the edition of what is under its name, consistently; a deletion marker has one too."""
        ...

    def remove(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str, expires_at: Millis) -> bool:
        """Remove a calendar, if it is still at the edition that was read, or gone already.

        A deletion marker takes its place until `expires_at`.

        Returns:
            Whether it is gone.
        """
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """An owner's calendars in order of their names, eventually consistently; the list goes on behind `after`."""
        ...
