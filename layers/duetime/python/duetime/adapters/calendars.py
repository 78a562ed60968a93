"""Reads iCalendar files (`.ics`) into calendars. Source: RFC 5545.

Whole-day events become dates, and events with times become spans. dateutil expands recurring events for a period, but
if a rule has no occurrences, dateutil searches until the year 9999. Therefore, only rule parts that calendars of days
use are accepted, all rules in a file share one budget, and a file is rejected at the first rule without occurrences.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import icalendar
from dateutil.rrule import rrulestr
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CALENDAR_BYTES, MAX_CALENDAR_DATES, MAX_CALENDAR_RULES
from duetime.domain.schedules.calendars import EMPTY_CALENDAR, Calendar, CalendarMode, Span
from duetime.domain.schedules.time_zones import (
    FIRST_YEAR,
    UTC_ZONE,
    Zone,
    datetime_of,
    day_of,
    wall_from,
    wall_of,
    zone_named,
)
from duetime.domain.times import Millis, from_datetime
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from icalendar import Component


FIELD = "ics"
_PLAIN = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST"}
_PARTS = {
    "YEARLY": _PLAIN | {"BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"},
    "MONTHLY": _PLAIN | {"BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"},
    "WEEKLY": _PLAIN | {"BYDAY"},
    "DAILY": _PLAIN,
}
"""The allowed parts of a rule, by the rule's frequency (Source: RFC 5545, section 3.3.10)."""
_MAX_RECURRENCES = 20_000
"""Maximum number of recurrences of all rules in a file, including recurrences in the distant past."""
_MAX_LIST = 100
"""Maximum number of values in one part of a rule."""


@dataclass(slots=True)
class Budget:
    """Counts the rules and the expanded recurrences in a file."""

    rules: int = 0
    recurrences: int = 0

    def spend_rule(self) -> None:
        """Count a rule.

        Raises:
            FieldInvalid: the file has too many rules.
        """
        self.rules += 1
        if self.rules > MAX_CALENDAR_RULES:
            raise FieldInvalid(FIELD, f"has more than {MAX_CALENDAR_RULES} recurring events", FaultCode.TOO_LONG)

    def spend_recurrence(self) -> None:
        """Count a recurrence.

        Raises:
            FieldInvalid: the file has too many recurrences.
        """
        self.recurrences += 1
        if self.recurrences > _MAX_RECURRENCES:
            raise FieldInvalid(
                FIELD, f"has events that recur more than {_MAX_RECURRENCES} times in all", FaultCode.TOO_LONG
            )


def starts(
    rule: Mapping[str, Sequence[object]], text: str, start: datetime, until: datetime, budget: Budget
) -> Iterator[datetime]:
    """Yield the naive local starts of a recurring event, up to the first start after `until`.

    Args:
        rule: the rule's parts.
        text: the text of the rule, with a naive local `UNTIL`.
        start: the event's first start.
        until: the end of the expansion.
        budget: the budget of the complete file.

    Raises:
        FieldInvalid: the rule is not supported, has no occurrences, or exceeds the budget.
    """
    budget.spend_rule()
    _check(rule)
    yield start
    try:
        expansion = rrulestr(text, dtstart=start)
    except (ValueError, TypeError, OverflowError, KeyError, AttributeError) as refusal:
        raise FieldInvalid(FIELD, f"has a recurrence rule that cannot be read: {text[:60]}") from refusal
    comes = False
    for moment in _counted(expansion, text):
        comes = True
        budget.spend_recurrence()
        if moment != start:
            yield moment
        if moment > until:
            return
    if not comes:
        raise FieldInvalid(FIELD, f"has a recurrence rule that never occurs: {text[:60]}", FaultCode.OUT_OF_RANGE)


def _counted(expansion: Iterable[datetime], text: str) -> Iterator[datetime]:
    """Yield the starts from dateutil, and reject a rule that dateutil accepts but cannot expand."""
    try:
        yield from expansion
    except (ValueError, IndexError, TypeError, OverflowError) as refusal:
        raise FieldInvalid(FIELD, f"has a recurrence rule that cannot be applied: {text[:60]}") from refusal


def _check(rule: Mapping[str, Sequence[object]]) -> None:
    frequency = str(next(iter(rule.get("FREQ", ())), ""))
    if frequency not in _PARTS:
        raise FieldInvalid(FIELD, "has a recurrence rule other than YEARLY, MONTHLY, WEEKLY or DAILY")
    extra = sorted(set(rule) - _PARTS[frequency])
    if extra:
        raise FieldInvalid(FIELD, f"has a {frequency} recurrence rule with {extra[0][:20]}, which is not supported")
    for interval in rule.get("INTERVAL", ()):
        if not isinstance(interval, int) or interval < 1:
            raise FieldInvalid(FIELD, f"has a recurrence rule with an interval of {str(interval)[:20]}")
    if 0 in rule.get("BYMONTHDAY", ()):
        # dateutil would ignore the value, and expand the rule to every day.
        raise FieldInvalid(FIELD, "has a recurrence rule with the day 0 of a month")
    if any(len(values) > _MAX_LIST for values in rule.values()):
        raise FieldInvalid(FIELD, "has a recurrence rule with a very long list")


_ONE_DAY = timedelta(days=1)
_LONGEST = timedelta(days=366)
_MAX_LABEL_LENGTH = 80
_PREFIXED = re.compile(r"^/.+?/([A-Z][A-Za-z_]+/[A-Za-z0-9_+/-]+)$")
"""The IANA name at the end of a globally unique zone name (Source: RFC 5545, 3.2.19)."""
_LONGEST_ZONE = 255
"""Maximum number of characters that are examined in a zone's name, because matching the pattern takes quadratic
time."""
_FIRST_YEAR, LAST_YEAR = 1900, 2199


@frozen
class Event:
    """One event, whose times are naive local times in the event's zone.

    Attributes:
        whole_days: whether the event has dates instead of times.
    """

    start: datetime
    length: timedelta
    zone: Zone
    whole_days: bool
    label: str


def event_of(component: Component, zone: Zone) -> Event:
    """Read an event.

    Raises:
        FieldInvalid: the event has no time, ends before it begins, or is longer than a year.
    """
    start, own_zone, whole_days = moment_of(component, "DTSTART", zone)
    length: object
    if "DTEND" in component:
        end, end_zone, end_whole_days = moment_of(component, "DTEND", zone)
        if end_whole_days != whole_days:
            raise FieldInvalid(FIELD, "has an event that begins on a date and ends at a time")
        length = end - start
        if not whole_days:
            length = timedelta(milliseconds=instant_of(end, end_zone) - instant_of(start, own_zone))
    elif "DURATION" in component:
        length = getattr(component.get("DURATION"), "dt", None)
    else:
        length = _ONE_DAY if whole_days else timedelta()
    if whole_days and length == timedelta():
        # RFC 5545 requires a later end, but some programs write the same day as the end of a one-day event.
        length = _ONE_DAY
    if not isinstance(length, timedelta) or not timedelta() <= length <= _LONGEST:
        raise FieldInvalid(FIELD, f"has an event that is not 0 to {_LONGEST.days} days long", FaultCode.OUT_OF_RANGE)
    label = str(component.get("SUMMARY", ""))[:_MAX_LABEL_LENGTH]
    label = "".join(each if each.isprintable() else " " for each in label)
    return Event(start, length, own_zone, whole_days, " ".join(label.split()))


def moment_of(component: Component, name: str, zone: Zone) -> tuple[datetime, Zone, bool]:
    """A property's naive local time, its zone, and whether the property is a date."""
    value = component.get(name)
    moment = getattr(value, "dt", None)
    if not isinstance(moment, date) or not _FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise FieldInvalid(FIELD, f"has an event whose {name} is missing, repeated, or not a date or time")
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time()), zone, True
    if moment.tzinfo is None:
        if "TZID" in value.params:
            raise FieldInvalid(FIELD, f"has the time zone {str(value.params['TZID'])[:60]}, which is not known")
        return moment, zone, False
    own = _zone_of(moment, value.params.get("TZID"))
    return moment.replace(tzinfo=None), own, False


def _zone_of(moment: datetime, given: object) -> Zone:
    """The zone of a time.

    A zone that the file defines is found by its Windows name, or by its IANA name after any prefix.
    """
    name = getattr(moment.tzinfo, "key", None)
    if isinstance(name, str):
        return zone_named(name)
    if moment.tzinfo is UTC:
        return UTC_ZONE
    text = str(given or "")[:_LONGEST_ZONE]
    for candidate in (WINDOWS_TO_OLSON.get(text), text, *_PREFIXED.findall(text)):
        with suppress(FieldInvalid):
            if candidate:
                return zone_named(candidate)
    raise FieldInvalid(FIELD, f"has a custom time zone, {text[:60]}: only names of IANA and Windows are supported")


def listed_dates(component: Component, name: str) -> Iterator[date]:
    """Yield the dates and times in `EXDATE` or `RDATE`, which may occur several times in an event."""
    value = component.get(name, [])
    for each in value if isinstance(value, list) else [value]:
        for one in getattr(each, "dts", ()):
            if not isinstance(one.dt, date):
                raise FieldInvalid(FIELD, f"has a value in {name} that is not a date")
            yield one.dt


def local_time(moment: date, zone: Zone) -> datetime:
    """A date or date-time in a zone's local time."""
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time())
    if moment.tzinfo is None or not FIRST_YEAR <= moment.year <= LAST_YEAR:
        # Zones are known only for these years. In other years, the hour does not matter.
        return moment.replace(tzinfo=None)
    return datetime_of(zone.wall_at(from_datetime(moment)))


def instant_of(moment: datetime, zone: Zone) -> Millis:
    """The instant of a naive local time in a zone."""
    wall = wall_from(moment)
    # Before the first year with known zones, the zone does not matter, because the time is long past.
    return wall if moment.year < FIRST_YEAR else zone.instant_after_gap(wall)


_MOVED = "RECURRENCE-ID"


@dataclass(slots=True)
class _Found:
    """The dates and spans that were read from a file.

    Attributes:
        start: the start of the period; earlier events are left out.
        end: the end of the period; later events are left out.
        zone: the zone of events without a zone.
        is_cut: whether any event ends after `end`.
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
                FIELD, f"has more than {MAX_CALENDAR_DATES} days and events in this period", FaultCode.TOO_LONG
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
    """Parse an iCalendar file.

    Args:
        data: the file's bytes.
        name: the calendar's name.
        start: events that ended before this time are left out.
        end: events that begin after this time are left out, because a recurring event may have no end.
        mode: whether work runs outside the events or only during them.
        zone: the zone of the calendar's days, and of events without a zone.

    Returns:
        The calendar, without cancelled events. Its data ends on the day of `end` if any event ends later.

    Raises:
        FieldInvalid: the data is not an iCalendar file, is partly unreadable, has no times, or is too large.
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
            _check_component(component)
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
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as refusal:
        # RecursionError can occur because icalendar looks up a time zone's name as nested packages, one for each part.
        raise FieldInvalid(FIELD, "is not an iCalendar file", FaultCode.UNREADABLE) from refusal
    if not isinstance(parsed, icalendar.Calendar):
        raise FieldInvalid(FIELD, "is not an iCalendar file", FaultCode.UNREADABLE)
    return parsed


def _check_component(component: Component) -> None:
    """Reject an event that cannot be read, or that other programs would interpret differently."""
    if component.errors:
        raise FieldInvalid(FIELD, f"has an event whose {component.errors[0][0] or 'text'} cannot be read")
    if "EXRULE" in component:
        raise FieldInvalid(FIELD, "has an event with EXRULE, which is not supported: write EXDATE")


def _read(component: Component, found: _Found, moved: set[datetime]) -> None:
    _check_component(component)
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
    """Yield the starts of a recurring event, which dateutil computes in the event's local time."""
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
