"""Schedules and calendars, in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.incarnations import Incarnation
from duetime.domain.schedules.run_history import Activity

if TYPE_CHECKING:
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.stored_schedule import StoredSchedule
    from duetime.domain.times import Millis


class MemoryScheduleStore:
    """`duetime.ports.schedules.ScheduleStore` in memory."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], tuple[StoredSchedule, str]] = {}
        self._deleted: dict[tuple[str, str], int] = {}
        self._activities: dict[tuple[str, str], tuple[Activity, str]] = {}
        self._lock = Lock()

    def read(self, owner: str, name: str) -> tuple[StoredSchedule | None, Activity]:
        """Read a schedule and its activity."""
        with self._lock:
            stored = self._heads.get((owner, name))
            activity, _ = self._activities.get((owner, name), (Activity(), ""))
            return (None if stored is None else stored[0]), activity

    def vacancy(self, owner: str, name: str) -> int | None:
        """The edition at which a schedule of this name is created; `None` if there is one."""
        with self._lock:
            return None if (owner, name) in self._heads else self._deleted.get((owner, name), 0)

    def save(self, stored_schedule: StoredSchedule, nonce: str) -> bool:
        """Store a schedule if it is still itself, at the edition that was read; a new one if its name is vacant."""
        key = (stored_schedule.owner, stored_schedule.name)
        payload = stored_schedule.payload
        # As every store hands it back: what lies outside has no bytes here, what lies inside is called as its field.
        held = replace(payload, data=None) if payload.is_outside else replace(payload, name="payload")
        with self._lock:
            stored, stored_nonce = self._heads.get(key, (None, ""))
            if stored is not None and stored_nonce == nonce:
                return True
            if stored is not None and stored.uid != stored_schedule.uid:
                return False
            if (self._deleted.get(key, 0) if stored is None else stored.incarnation) != stored_schedule.incarnation:
                return False
            self._heads[key] = (
                replace(stored_schedule, payload=held, incarnation=stored_schedule.incarnation + 1),
                nonce,
            )
            self._deleted.pop(key, None)
            return True

    def remove(self, stored_schedule: StoredSchedule, nonce: str, expires_at: Millis) -> bool:
        """Remove a schedule and its activity, if it is still at the edition that was read, or gone already."""
        del nonce, expires_at  # memory forgets with its process
        key = (stored_schedule.owner, stored_schedule.name)
        with self._lock:
            stored, _ = self._heads.get(key, (None, ""))
            if stored is None or stored.uid != stored_schedule.uid:
                return True
            if stored.incarnation != stored_schedule.incarnation:
                return False
            self._heads.pop(key)
            self._deleted[key] = stored_schedule.incarnation + 1
            activity, _ = self._activities.get(key, (Activity(), ""))
            self._activities[key] = (Activity(stored_schedule.uid, version=activity.version + 1), "")
            return True

    def save_activity(self, owner: str, name: str, activity: Activity, nonce: str) -> bool:
        """Store which occurrence goes on, if that is still at the version that was read."""
        with self._lock:
            stored, stored_nonce = self._activities.get((owner, name), (Activity(), ""))
            if stored_nonce == nonce:
                return True
            if stored.version != activity.version:
                return False
            self._activities[owner, name] = (replace(activity, version=activity.version + 1), nonce)
            return True

    def list_after(self, owner: str, after: str, limit: int) -> list[StoredSchedule]:
        """An owner's schedules in order of their names."""
        with self._lock:
            mine = sorted(name for who, name in self._heads if who == owner and name > after)
            return [self._heads[owner, name][0] for name in mine[:limit]]


class MemoryCalendarStore:
    """`duetime.ports.schedules.CalendarStore` in memory."""

    def __init__(self) -> None:
        self._calendars: dict[tuple[str, str], tuple[Calendar | None, Incarnation, str]] = {}
        self._lock = Lock()

    def put(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str) -> bool:
        """Store a calendar, if what is under its name is still at the edition that was read."""
        return self._put((owner, calendar.name), calendar, incarnation, nonce)

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar; `None` if there is none."""
        return self.read_edition(owner, name)[0]

    def read_edition(self, owner: str, name: str) -> tuple[Calendar | None, Incarnation]:
        """Read a calendar and the edition of what is under its name."""
        with self._lock:
            return self._calendars.get((owner, name), (None, Incarnation(), ""))[:2]

    def remove(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str, expires_at: Millis) -> bool:
        """Remove a calendar, if it is still at the edition that was read, or gone already."""
        del expires_at  # memory forgets with its process
        return self._put((owner, calendar.name), None, incarnation, nonce) or self.read(owner, calendar.name) is None

    def _put(self, key: tuple[str, str], calendar: Calendar | None, incarnation: Incarnation, nonce: str) -> bool:
        with self._lock:
            _, stored, stored_nonce = self._calendars.get(key, (None, Incarnation(), ""))
            if stored_nonce == nonce:
                return True
            if stored.number != incarnation.number:
                return False
            after = Incarnation(incarnation.number + 1) if calendar is None else incarnation.next
            self._calendars[key] = (calendar, after, nonce)
            return True

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """An owner's calendars in order of their names."""
        with self._lock:
            mine = sorted((name, each) for (who, name), (each, *_) in self._calendars.items() if who == owner)
            return [each for name, each in mine if each is not None and name > after][:limit]
