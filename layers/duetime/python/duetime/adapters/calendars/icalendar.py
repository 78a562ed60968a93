"""Reads iCalendar files (`.ics`) into calendars.

Whole-day events become dates, events with times become spans; recurring ones are expanded for a period.
Source: RFC 5545.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import icalendar

from duetime.adapters.calendars.recurrences import FIELD, Budget, starts
from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CALENDAR_BYTES, MAX_CALENDAR_DATES
from duetime.domain.schedules.calendars import Calendar, CalendarMode, Span
from duetime.domain.schedules.time_zones import FIRST_YEAR, UTC_ZONE, Zone, zone_named
from duetime.domain.schedules.wall_times import datetime_of, day_of, wall_from
from duetime.domain.times import Millis, from_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from icalendar import Component

_ONE_DAY = timedelta(days=1)
_LONGEST = timedelta(days=366)
_MAX_LABEL_LENGTH = 80
_FIRST_YEAR, _LAST_YEAR = 1900, 2199
_MOVED = "RECURRENCE-ID"


@dataclass(slots=True)
class _Found:
    """What has been read so far.

    Attributes:
        start: what ended before it is left out.
        end: what begins after it is left out.
        zone: whose time an event without a zone is in.
    """

    start: Millis
    end: Millis
    zone: Zone
    dates: dict[date, str] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day that are kept."""
        return day_of(self.zone.wall_at(self.start)), day_of(self.zone.wall_at(self.end))

    def check_size(self) -> None:
        if len(self.dates) + len(self.spans) > MAX_CALENDAR_DATES:
            raise FieldInvalid(
                FIELD, f"has more than {MAX_CALENDAR_DATES} days and events in this stretch of time", FaultCode.TOO_LONG
            )


@dataclass(frozen=True, slots=True)
class _Event:
    """One event, its times naive and in its zone.

    Attributes:
        whole_days: it has dates and no times.
    """

    start: datetime
    length: timedelta
    zone: Zone
    whole_days: bool
    label: str


def calendar_from_ics(
    data: bytes,
    name: str,
    start: Millis,
    end: Millis,
    *,
    mode: CalendarMode = CalendarMode.EXCLUDES,
    zone: Zone = UTC_ZONE,
) -> Calendar:
    """Read a file.

    Args:
        data: the file's bytes.
        name: the calendar's name.
        start: events that ended before it are left out.
        end: events that begin after it are left out; a recurring event has no end of its own.
        mode: whether work runs outside of the events or in them only.
        zone: whose days they are, and whose time an event without a zone is in.

    Returns:
        The calendar; a cancelled event is not in it.

    Raises:
        FieldInvalid: it is no iCalendar file, has something that cannot be read, or too much; says what.
    """
    found = _Found(start, end, zone)
    events = [each for each in _parsed(data).subcomponents if each.name == "VEVENT"]
    if len(events) > MAX_CALENDAR_DATES:
        raise FieldInvalid(FIELD, f"has more than {MAX_CALENDAR_DATES} events", FaultCode.TOO_LONG)
    moved: dict[str, set[datetime]] = {}
    for component in events:
        if _MOVED in component:
            _check(component)
            moved.setdefault(str(component.get("UID")), set()).add(_moment(component, _MOVED, zone)[0])
    for component in events:
        if str(component.get("STATUS", "")).upper() != "CANCELLED":
            _read(component, found, moved.get(str(component.get("UID")), set()))
    return Calendar(name, mode, zone, found.dates, spans=tuple(found.spans))


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
    """Reject an event that cannot be read, or that another program would read differently."""
    if component.errors:
        raise FieldInvalid(FIELD, f"has an event whose {component.errors[0][0] or 'text'} cannot be read")
    if "EXRULE" in component:
        raise FieldInvalid(FIELD, "has an event with EXRULE, which is not read: write EXDATE")


def _read(component: Component, found: _Found, moved: set[datetime]) -> None:
    _check(component)
    event = _event(component, found.zone)
    rule = component.get("RRULE")
    if isinstance(rule, list):
        raise FieldInvalid(FIELD, "has an event with several recurrence rules")
    left_out = {_local(each, event.zone) for each in _listed(component, "EXDATE")}
    if _MOVED not in component:
        left_out |= moved
    further = [_local(each, event.zone) for each in _listed(component, "RDATE")]
    first = [event.start] if rule is None else _overlap_control(rule, event, found)
    for start in (*first, *further):
        if start not in left_out:
            _put(event, start, found)
            found.check_size()


def _overlap_control(rule: Mapping[str, Any], event: _Event, found: _Found) -> Iterator[datetime]:
    """Its starts, which dateutil counts by the event's own clock."""
    parts = []
    for name, values in rule.items():
        texts = [str(each) for each in values]
        if name == "UNTIL":
            texts = [f"{_local(each, event.zone):%Y%m%dT%H%M%S}" for each in values]
        parts.append(f"{name}={','.join(texts)}")
    last = datetime_of(event.zone.wall_at(found.end))
    return starts(rule, ";".join(parts), event.start, last, found.budget)


def _put(event: _Event, start: datetime, found: _Found) -> None:
    if start.year > _LAST_YEAR:
        return
    if event.whole_days:
        first, last = found.days
        day = max(start.date(), first)
        until = min((start + event.length).date(), last + _ONE_DAY)
        while day < until:
            found.dates.setdefault(day, event.label)
            day += _ONE_DAY
        return
    begins = _instant(start, event.zone)
    ends = begins + event.length // timedelta(milliseconds=1)
    if begins < ends and found.start <= ends and begins <= found.end:
        found.spans.append(Span(begins, ends, event.label))


def _event(component: Component, zone: Zone) -> _Event:
    start, own_zone, whole_days = _moment(component, "DTSTART", zone)
    length: object
    if "DTEND" in component:
        end, end_zone, end_topology = _moment(component, "DTEND", zone)
        if end_topology != whole_days:
            raise FieldInvalid(FIELD, "has an event that begins on a date and ends at a time")
        length = end - start
        if not whole_days:
            length = timedelta(milliseconds=_instant(end, end_zone) - _instant(start, own_zone))
    elif "DURATION" in component:
        length = getattr(component.get("DURATION"), "dt", None)
    else:
        length = _ONE_DAY if whole_days else timedelta()
    if not isinstance(length, timedelta) or not timedelta() <= length <= _LONGEST:
        raise FieldInvalid(FIELD, f"has an event that is not 0 to {_LONGEST.days} days long", FaultCode.OUT_OF_RANGE)
    label = str(component.get("SUMMARY", ""))[:_MAX_LABEL_LENGTH]
    label = "".join(each if each.isprintable() else " " for each in label)
    return _Event(start, length, own_zone, whole_days, " ".join(label.split()))


def _moment(component: Component, name: str, zone: Zone) -> tuple[datetime, Zone, bool]:
    """A property's naive local time, its zone, and whether it is a date."""
    value = component.get(name)
    moment = getattr(value, "dt", None)
    if not isinstance(moment, date) or not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise FieldInvalid(FIELD, f"has an event whose {name} is missing, twice there, or no date or time")
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time()), zone, True
    if moment.tzinfo is None:
        if "TZID" in value.params:
            raise FieldInvalid(FIELD, f"has the time zone {str(value.params['TZID'])[:60]}, which is not known")
        return moment, zone, False
    own = _zone_of(moment)
    return moment.replace(tzinfo=None), own, False


def _zone_of(moment: datetime) -> Zone:
    name = getattr(moment.tzinfo, "key", None)
    if not isinstance(name, str):
        if moment.tzinfo is UTC:
            return UTC_ZONE
        raise FieldInvalid(FIELD, f"has a time zone of its own, {str(moment.tzinfo)[:60]}: IANA names are read")
    return zone_named(name)


def _listed(component: Component, name: str) -> Iterator[date]:
    """The date-times of `EXDATE` or `RDATE`, which may be there several times."""
    value = component.get(name, [])
    for each in value if isinstance(value, list) else [value]:
        for one in getattr(each, "dts", ()):
            if not isinstance(one.dt, date):
                raise FieldInvalid(FIELD, f"has {name} with something other than dates")
            yield one.dt


def _local(moment: date, zone: Zone) -> datetime:
    """A date or a date-time by the clock of a zone."""
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time())
    if moment.tzinfo is None or not FIRST_YEAR <= moment.year <= _LAST_YEAR:
        # Zones are known for the years between: so far off, nothing hangs on the hour.
        return moment.replace(tzinfo=None)
    return datetime_of(zone.wall_at(from_datetime(moment)))


def _instant(moment: datetime, zone: Zone) -> Millis:
    wall = wall_from(moment)
    # Before the first year that zones are known for, only that it is long past counts.
    return wall if moment.year < FIRST_YEAR else zone.instant_after_gap(wall)
