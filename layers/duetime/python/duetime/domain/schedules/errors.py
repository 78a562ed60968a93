"""Errors of requests for a schedule, a backfill or a calendar."""

from __future__ import annotations

from duetime.domain.errors import RequestError


class ScheduleNotFound(RequestError):
    """There is no such schedule, or it belongs to another owner."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name!r}")
        self.name = name


class ScheduleExists(RequestError):
    """There is a schedule of this name already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already")
        self.name = name


class ScheduleStateConflict(RequestError):
    """The schedule's state does not allow what was requested."""

    def __init__(self, name: str, state: str, wanted: str) -> None:
        super().__init__(f"the schedule {name!r} is {state} and cannot be {wanted}")
        self.name = name
        self.state = state


class ScheduleVersionMismatch(RequestError):
    """The schedule has changed since the version that the request was made for."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__(f"the schedule {name!r} is at version {version}")
        self.name = name
        self.version = version


class BackfillNotFound(RequestError):
    """The schedule has no such backfill, or has forgotten it."""

    def __init__(self, name: str, backfill_id: str) -> None:
        super().__init__(f"the schedule {name!r} has no backfill {backfill_id!r}")
        self.name = name
        self.backfill_id = backfill_id


class CalendarNotFound(RequestError):
    """There is no such calendar, or it belongs to another owner."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no calendar {name!r}")
        self.name = name


class CalendarExists(RequestError):
    """There is a calendar of this name already, and the request is to replace none."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a calendar {name!r} already")
        self.name = name


class CalendarVersionMismatch(RequestError):
    """The calendar has changed since the version that the request was made for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the calendar {name!r} is not at this version")
        self.name = name


class CalendarUsed(RequestError):
    """A calendar cannot be removed while a schedule names it."""

    def __init__(self, name: str, schedule: str) -> None:
        super().__init__(f"the schedule {schedule!r} names the calendar {name!r}")
        self.name = name
        self.schedule = schedule
