"""Errors of requests for a schedule, a backfill or a calendar."""

from __future__ import annotations

from duetime.domain.errors import RequestError


class ScheduleNotFound(RequestError):
    """The schedule does not exist, or belongs to another owner."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name!r}")
        self.name = name


class ScheduleExists(RequestError):
    """A schedule with this name already exists."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the schedule {name!r} already exists")
        self.name = name


class ScheduleStateConflict(RequestError):
    """The schedule's state does not allow what was requested."""

    def __init__(self, name: str, state: str, wanted: str) -> None:
        super().__init__(f"the schedule {name!r} is {state} and cannot be {wanted}")
        self.name = name
        self.state = state


class ScheduleVersionMismatch(RequestError):
    """The schedule has changed since the version that the request names."""

    def __init__(self, name: str, version: int) -> None:
        super().__init__(f"the schedule {name!r} is at version {version}")
        self.name = name
        self.version = version


class BackfillNotFound(RequestError):
    """The backfill of the schedule does not exist, or is no longer stored."""

    def __init__(self, name: str, backfill_id: str) -> None:
        super().__init__(f"the schedule {name!r} has no backfill {backfill_id!r}")
        self.name = name
        self.backfill_id = backfill_id


class CalendarNotFound(RequestError):
    """The calendar does not exist, or belongs to another owner."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no calendar {name!r}")
        self.name = name


class CalendarExists(RequestError):
    """A calendar with this name already exists, and the request must not replace one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the calendar {name!r} already exists")
        self.name = name


class CalendarVersionMismatch(RequestError):
    """The calendar has changed since the version that the request names."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the calendar {name!r} is not at this version")
        self.name = name


class CalendarUsed(RequestError):
    """The calendar cannot be deleted while a schedule uses it."""

    def __init__(self, name: str, schedule: str) -> None:
        super().__init__(f"the schedule {schedule!r} names the calendar {name!r}")
        self.name = name
        self.schedule = schedule
