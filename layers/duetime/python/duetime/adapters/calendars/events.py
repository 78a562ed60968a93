"""The events of iCalendar files: start, duration and time zone.

Source: RFC 5545, 3.6.1 and 3.8.2.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from duetime.adapters.calendars.recurrences import FIELD
from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.schedules.time_zones import FIRST_YEAR, UTC_ZONE, Zone, datetime_of, wall_from, zone_named
from duetime.domain.times import Millis, from_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icalendar import Component

_ONE_DAY = timedelta(days=1)
_LONGEST = timedelta(days=366)
_MAX_LABEL_LENGTH = 80
_PREFIXED = re.compile(r"^/.+?/([A-Z][A-Za-z_]+/[A-Za-z0-9_+/-]+)$")
"""The IANA name at the end of a globally unique zone name (Source: RFC 5545, 3.2.19)."""
_FIRST_YEAR, LAST_YEAR = 1900, 2199


@dataclass(frozen=True, slots=True)
class Event:
    """One event; its times are naive, in its zone.

    Attributes:
        whole_days: whether it has dates instead of times.
    """

    start: datetime
    length: timedelta
    zone: Zone
    whole_days: bool
    label: str


def event_of(component: Component, zone: Zone) -> Event:
    """Read an event.

    Raises:
        FieldInvalid: it has no time, ends before it begins, or is longer than a year.
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
        # RFC 5545 requires a later end; some programs write the same day, and mean that day.
        length = _ONE_DAY
    if not isinstance(length, timedelta) or not timedelta() <= length <= _LONGEST:
        raise FieldInvalid(FIELD, f"has an event that is not 0 to {_LONGEST.days} days long", FaultCode.OUT_OF_RANGE)
    label = str(component.get("SUMMARY", ""))[:_MAX_LABEL_LENGTH]
    label = "".join(each if each.isprintable() else " " for each in label)
    return Event(start, length, own_zone, whole_days, " ".join(label.split()))


def moment_of(component: Component, name: str, zone: Zone) -> tuple[datetime, Zone, bool]:
    """A property's naive local time, its zone, and whether it is a date."""
    value = component.get(name)
    moment = getattr(value, "dt", None)
    if not isinstance(moment, date) or not _FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise FieldInvalid(FIELD, f"has an event whose {name} is missing, twice there, or no date or time")
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time()), zone, True
    if moment.tzinfo is None:
        if "TZID" in value.params:
            raise FieldInvalid(FIELD, f"has the time zone {str(value.params['TZID'])[:60]}, which is not known")
        return moment, zone, False
    own = _zone_of(moment, value.params.get("TZID"))
    return moment.replace(tzinfo=None), own, False


def _zone_of(moment: datetime, given: object) -> Zone:
    """The zone of a time; a zone that the file defines is looked up by name: Windows, IANA, or IANA after a prefix."""
    name = getattr(moment.tzinfo, "key", None)
    if isinstance(name, str):
        return zone_named(name)
    if moment.tzinfo is UTC:
        return UTC_ZONE
    text = str(given or "")
    for candidate in (WINDOWS_TO_OLSON.get(text), text, *_PREFIXED.findall(text)):
        with suppress(FieldInvalid):
            if candidate:
                return zone_named(candidate)
    raise FieldInvalid(FIELD, f"has a time zone of its own, {text[:60]}: names of IANA and Windows are read")


def listed_dates(component: Component, name: str) -> Iterator[date]:
    """The date-times of `EXDATE` or `RDATE`, which may occur several times."""
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
        # Zones are known for the years between; so far away, the hour does not matter.
        return moment.replace(tzinfo=None)
    return datetime_of(zone.wall_at(from_datetime(moment)))


def instant_of(moment: datetime, zone: Zone) -> Millis:
    """The instant of a naive local time in a zone."""
    wall = wall_from(moment)
    # Before the first year with known zones, it only matters that the time is long past.
    return wall if moment.year < FIRST_YEAR else zone.instant_after_gap(wall)
