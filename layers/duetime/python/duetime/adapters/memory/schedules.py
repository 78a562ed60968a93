"""Schedules and calendars, in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.schedules.recurrence import Activity

if TYPE_CHECKING:
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.recurrence import Recurrence


class MemoryScheduleStore:
    """`duetime.ports.stores.ScheduleStore` in memory."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], tuple[Recurrence, str]] = {}
        self._activities: dict[tuple[str, str], tuple[Activity, str]] = {}
        self._lock = Lock()

    def read(self, owner: str, name: str) -> tuple[Recurrence | None, Activity]:
        """Read a schedule and its activity."""
        with self._lock:
            stored = self._heads.get((owner, name))
            activity, _ = self._activities.get((owner, name), (Activity(), ""))
            return (None if stored is None else stored[0]), activity

    def save(self, recurrence: Recurrence, nonce: str) -> bool:
        """Store a schedule, if it is still at the edition that was read."""
        key = (recurrence.owner, recurrence.name)
        payload = recurrence.payload
        # As every store hands it back: what lies outside has no bytes here, what lies inside is called as its field.
        held = replace(payload, data=None) if payload.is_outside else replace(payload, name="payload")
        with self._lock:
            stored, stored_nonce = self._heads.get(key, (None, ""))
            if stored is not None and stored_nonce == nonce:
                return True
            if (0 if stored is None else stored.edition) != recurrence.edition:
                return False
            self._heads[key] = (replace(recurrence, payload=held, edition=recurrence.edition + 1), nonce)
            return True

    def remove(self, recurrence: Recurrence) -> bool:
        """Remove a schedule and its activity, if it is still at the edition that was read, or gone already."""
        key = (recurrence.owner, recurrence.name)
        with self._lock:
            stored, _ = self._heads.get(key, (None, ""))
            if stored is not None and stored.edition != recurrence.edition:
                return False
            self._heads.pop(key, None)
            self._activities.pop(key, None)
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

    def list_after(self, owner: str, after: str, limit: int) -> list[Recurrence]:
        """An owner's schedules in order of their names."""
        with self._lock:
            mine = sorted(name for who, name in self._heads if who == owner and name > after)
            return [self._heads[owner, name][0] for name in mine[:limit]]


class MemoryCalendarStore:
    """`duetime.ports.stores.CalendarStore` in memory."""

    def __init__(self) -> None:
        self._calendars: dict[tuple[str, str], Calendar] = {}
        self._lock = Lock()

    def put(self, owner: str, calendar: Calendar) -> None:
        """Store a calendar, whatever was under its name before."""
        with self._lock:
            self._calendars[owner, calendar.name] = calendar

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar; `None` if there is none."""
        with self._lock:
            return self._calendars.get((owner, name))

    def remove(self, owner: str, name: str) -> None:
        """Remove a calendar, if there is one."""
        with self._lock:
            self._calendars.pop((owner, name), None)

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """An owner's calendars in order of their names."""
        with self._lock:
            mine = sorted(name for who, name in self._calendars if who == owner and name > after)
            return [self._calendars[owner, name] for name in mine[:limit]]
