"""The bodies of answers about calendars, and how a calendar becomes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.schedules.calendars import WEEKDAYS, Weekday
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.responses import Instant
from duetime.domain.schedules.calendars import CalendarMode
from duetime.domain.times import DAY, MINUTE, SECOND, Millis, to_iso

if TYPE_CHECKING:
    from duetime.domain.schedules.calendars import Calendar


class CalendarWindowResponse(TypedDict):
    """A time window on each of its days."""

    start: str
    end: str
    weekdays: Sequence[Weekday]
    label: str


class CalendarSpanResponse(TypedDict):
    """A period of time."""

    start: Instant
    end: Instant
    reason: str


class CalendarResponse(TypedDict):
    """A calendar: a named set of times."""

    name: Annotated[str, Field(description="Name of the calendar.")]
    mode: CalendarMode
    timezone: str
    dates: Annotated[Mapping[str, str], Field(description="Dates, each with a label.")]
    except_dates: Sequence[str]
    weekdays: Sequence[Weekday]
    windows: Sequence[CalendarWindowResponse]
    spans: Sequence[CalendarSpanResponse]
    known_until: Annotated[
        Instant | None,
        Field(description="From when on its times are not known; null if they always are. Replace it before."),
    ]


class CalendarPage(TypedDict):
    """A page of calendars."""

    calendars: Sequence[CalendarResponse]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last one.")]


def calendar_response(calendar: Calendar) -> CalendarResponse:
    """A calendar."""
    return CalendarResponse(
        name=calendar.name,
        mode=calendar.mode,
        timezone=calendar.zone.name,
        dates={str(day): label for day, label in sorted(calendar.dates.items())},
        except_dates=[str(day) for day in sorted(calendar.except_dates)],
        weekdays=_names(calendar.weekdays),
        windows=[
            CalendarWindowResponse(
                start=_clock(each.start), end=_clock(each.end), weekdays=_names(each.weekdays), label=each.label
            )
            for each in calendar.windows
        ],
        spans=[
            CalendarSpanResponse(start=to_iso(each.start), end=to_iso(each.end), reason=each.reason)
            for each in calendar.spans
        ],
        known_until=instant(calendar.known_until),
    )


def _names(weekdays: frozenset[int]) -> list[Weekday]:
    return [WEEKDAYS[day] for day in sorted(weekdays)]


def _clock(since_midnight: Millis) -> str:
    """A time of day, its seconds only where there are any."""
    if since_midnight == DAY:
        return "24:00"
    minutes, rest = divmod(since_midnight, MINUTE)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{rest // SECOND:02d}" if rest else text
