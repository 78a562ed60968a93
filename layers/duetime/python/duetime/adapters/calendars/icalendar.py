"""Reads iCalendar files (`.ics`) into calendars.

Whole-day events become dates, events with times become spans; recurring ones are expanded for a period.
Source: RFC 5545.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import icalendar

from duetime.adapters.calendars.events import (
    LAST_YEAR,
    Event,
    event_of,
    instant_of,
    listed_dates,
    local_time,
    moment_of,
)
from duetime.adapters.calendars.recurrences import FIELD, Budget, starts
from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CALENDAR_BYTES, MAX_CALENDAR_DATES
from duetime.domain.schedules.calendars import EMPTY_CALENDAR, Calendar, CalendarMode, Span
from duetime.domain.schedules.time_zones import UTC_ZONE, Zone, datetime_of, day_of, wall_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from icalendar import Component

    from duetime.domain.times import Millis

_ONE_DAY = timedelta(days=1)
_MOVED = "RECURRENCE-ID"


@dataclass(slots=True)
class _Found:
    """The state of reading a file.

    Attributes:
        start: earlier events are left out.
        end: later events are left out.
        zone: zone of events without one.
        is_cut: whether anything at or after `end` was left out.
    """

    start: Millis
    end: Millis
    zone: Zone
    dates: dict[date, str] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)
    is_cut: bool = False

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day to keep."""
        return day_of(self.zone.wall_at(self.start)), day_of(self.zone.wall_at(self.end))

    def check_size(self) -> None:
        if len(self.dates) + len(self.spans) > MAX_CALENDAR_DATES:
            raise FieldInvalid(
                FIELD, f"has more than {MAX_CALENDAR_DATES} days and events in this stretch of time", FaultCode.TOO_LONG
            )


def calendar_from_ics(
    data: bytes,
    name: str,
    start: Millis,
    end: Millis,
    *,
    mode: CalendarMode = CalendarMode.EXCLUDES,
    zone: Zone = UTC_ZONE,
) -> Calendar:
    """Parse a file.

    Args:
        data: the file's bytes.
        name: the calendar's name.
        start: events that ended before it are left out.
        end: events that begin after it are left out; a recurring event has no end.
        mode: whether work runs outside of the events or only during them.
        zone: zone of the calendar's days, and of events without one.

    Returns:
        The calendar, without cancelled events. Its data end at the day of `end` if any event is later.

    Raises:
        FieldInvalid: it is no iCalendar file, is unreadable in part, has no times or is too large; with the reason.
    """
    found = _Found(start, end, zone)
    events = [each for each in _parsed(data).subcomponents if each.name == "VEVENT"]
    if not events:
        raise FieldInvalid(FIELD, f"has no events (VEVENT), {EMPTY_CALENDAR[mode]}", FaultCode.REQUIRED)
    if len(events) > MAX_CALENDAR_DATES:
        raise FieldInvalid(FIELD, f"has more than {MAX_CALENDAR_DATES} events", FaultCode.TOO_LONG)
    moved: dict[str, set[datetime]] = {}
    for component in events:
        if _MOVED in component:
            _check(component)
            moved.setdefault(str(component.get("UID")), set()).add(moment_of(component, _MOVED, zone)[0])
    for component in events:
        if str(component.get("STATUS", "")).upper() != "CANCELLED":
            _read(component, found, moved.get(str(component.get("UID")), set()))
    known_until = zone.instant_after_gap(wall_of(found.days[1])) if found.is_cut else None
    calendar = Calendar(name, mode, zone, found.dates, spans=tuple(found.spans), known_until=known_until)
    if calendar.is_empty:
        first, last = found.days
        reason = f"has no event that takes any time from {first} to {last}, {EMPTY_CALENDAR[mode]}"
        raise FieldInvalid(FIELD, reason, FaultCode.REQUIRED)
    return calendar


def _parsed(data: bytes) -> icalendar.Calendar:
    if len(data) > MAX_CALENDAR_BYTES:
        raise FieldInvalid(FIELD, f"should have at most {MAX_CALENDAR_BYTES} bytes", FaultCode.TOO_LONG)
    try:
        parsed = icalendar.Calendar.from_ical(data)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as refusal:
        raise FieldInvalid(FIELD, "is not an iCalendar file", FaultCode.UNREADABLE) from refusal
    if not isinstance(parsed, icalendar.Calendar):
        raise FieldInvalid(FIELD, "is not an iCalendar file", FaultCode.UNREADABLE)
    return parsed


def _check(component: Component) -> None:
    """Reject an event that cannot be read, or that other programs interpret differently."""
    if component.errors:
        raise FieldInvalid(FIELD, f"has an event whose {component.errors[0][0] or 'text'} cannot be read")
    if "EXRULE" in component:
        raise FieldInvalid(FIELD, "has an event with EXRULE, which is not supported: write EXDATE")


def _read(component: Component, found: _Found, moved: set[datetime]) -> None:
    _check(component)
    event = event_of(component, found.zone)
    rule = component.get("RRULE")
    if isinstance(rule, list):
        raise FieldInvalid(FIELD, "has an event with several recurrence rules")
    left_out = {local_time(each, event.zone) for each in listed_dates(component, "EXDATE")}
    if _MOVED not in component:
        left_out |= moved
    further = [local_time(each, event.zone) for each in listed_dates(component, "RDATE")]
    first = [event.start] if rule is None else _overlap_control(rule, event, found)
    for start in (*first, *further):
        if start not in left_out:
            _put(event, start, found)
            found.check_size()


def _overlap_control(rule: Mapping[str, Any], event: Event, found: _Found) -> Iterator[datetime]:
    """Its starts, which dateutil computes in the event's local time."""
    parts = []
    for name, values in rule.items():
        texts = [str(each) for each in values]
        if name == "UNTIL":
            texts = [f"{local_time(each, event.zone):%Y%m%dT%H%M%S}" for each in values]
        parts.append(f"{name}={','.join(texts)}")
    last = datetime_of(event.zone.wall_at(found.end))
    for start in starts(rule, ";".join(parts), event.start, last, found.budget):
        found.is_cut |= start > last
        if start <= last:
            yield start


def _put(event: Event, start: datetime, found: _Found) -> None:
    if start.year > LAST_YEAR:
        found.is_cut = True
        return
    if event.whole_days:
        first, last = found.days
        found.is_cut |= (start + event.length).date() > last + _ONE_DAY
        day = max(start.date(), first)
        until = min((start + event.length).date(), last + _ONE_DAY)
        while day < until:
            found.dates.setdefault(day, event.label)
            day += _ONE_DAY
        return
    begins = instant_of(start, event.zone)
    ends = begins + event.length // timedelta(milliseconds=1)
    found.is_cut |= ends > found.end
    if begins < ends and found.start <= ends and begins <= found.end:
        found.spans.append(Span(begins, ends, event.label))
