"""Calendars, which are named sets of dates, weekdays, daily windows and spans in which work may or must not run."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CALENDAR_DATES, MAX_CALENDAR_WINDOWS, MAX_NAME_LENGTH
from duetime.domain.operating_parameters import WORKING_MOMENT_HORIZON
from duetime.domain.schedules.time_zones import UTC_ZONE, Zone, clock_text, day_of, wall_of
from duetime.domain.times import DAY, Millis
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date


_ONE_DAY = timedelta(days=1)
_WEEKDAYS = frozenset(range(7))
_DAYS_KNOWN = 1_000
"""How many computed days are cached for each calendar."""


class CalendarMode(StrEnum):
    """Whether work runs inside or outside the times of a calendar.

    Attributes:
        EXCLUDES: work does not run during the calendar's times.
        INCLUDES: work runs only during the calendar's times.
    """

    EXCLUDES = "excludes"
    INCLUDES = "includes"


EMPTY_CALENDAR = {
    CalendarMode.EXCLUDES: "so the calendar would exclude nothing",
    CalendarMode.INCLUDES: "so nothing would ever run within the calendar",
}
"""The effect that a calendar without times would have, quoted in the error that rejects such a calendar."""


@frozen(order=True)
class Window:
    """A daily period according to the calendar's local time.

    If the clock is set back, a window lasts from its first start to its last end.

    Attributes:
        start: start of the window, in milliseconds since midnight.
        end: the first moment after the window; if `end <= start`, the window extends past midnight.
        weekdays: the days on which the window begins, 0 for Monday.
        label: the window's name for people.
    """

    start: Millis
    end: Millis
    weekdays: frozenset[int] = _WEEKDAYS
    label: str = ""

    def __str__(self) -> str:
        return f"{clock_text(self.start)} to {clock_text(self.end) if self.end < DAY else '24:00'}"


@frozen(order=True)
class Span:
    """A period [start, end) with the reason for it."""

    start: Millis
    end: Millis
    reason: str = ""


@frozen
class Calendar:
    """A named set of times.

    Attributes:
        name: name that schedules use.
        mode: whether work runs inside or outside its times.
        zone: time zone of days and windows.
        dates: the dates that it contains, each with a label that may be empty.
        except_dates: days to which weekdays, windows and dates do not apply.
        weekdays: the weekdays that it contains, 0 for Monday.
        windows: its daily windows.
        spans: its periods, in order.
        known_until: when its known times end, for example because recurring events were expanded only up to then;
            `None` if all times are known.
    """

    name: str
    mode: CalendarMode = CalendarMode.EXCLUDES
    zone: Zone = UTC_ZONE
    dates: Mapping[date, str] = field(default_factory=dict, hash=False)
    except_dates: frozenset[date] = frozenset()
    weekdays: frozenset[int] = frozenset()
    windows: tuple[Window, ...] = ()
    spans: tuple[Span, ...] = ()
    known_until: Millis | None = None
    _known: dict[date, tuple[Span, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Reject an invalid calendar; sort and merge the spans.

        Raises:
            FieldInvalid: there are too many dates, spans or windows, or the name or a window is invalid.
        """
        if not 1 <= len(self.name) <= MAX_NAME_LENGTH:
            raise FieldInvalid("name", f"should have 1 to {MAX_NAME_LENGTH} characters", FaultCode.OUT_OF_RANGE)
        if len(self.dates) + len(self.except_dates) + len(self.spans) > MAX_CALENDAR_DATES:
            raise FieldInvalid(
                "dates", f"should be at most {MAX_CALENDAR_DATES}, spans of time included", FaultCode.TOO_LONG
            )
        if len(self.windows) > MAX_CALENDAR_WINDOWS:
            raise FieldInvalid("windows", f"should be at most {MAX_CALENDAR_WINDOWS}", FaultCode.TOO_LONG)
        for index, window in enumerate(self.windows):
            if not (0 <= window.start < DAY and 0 <= window.end <= DAY and window.start != window.end):
                raise FieldInvalid(f"windows[{index}]", "should begin and end at two times of a day")
            if not window.weekdays <= _WEEKDAYS:
                raise FieldInvalid(f"windows[{index}].weekdays", "should be days of the week")
        object.__setattr__(self, "spans", tuple(_apart(self.spans)))

    @property
    def is_empty(self) -> bool:
        """Whether the calendar has no times."""
        return not (self.windows or self.spans or self.weekdays or self.dates.keys() - self.except_dates)

    @property
    def end_in_words(self) -> str:
        """Describes when the calendar's known times end; only for calendars with `known_until`."""
        end = self.zone.text_at(self.known_until or 0)
        return f"{self.name}: its times are not known from {end[:10] if 'T00:00:00' in end else end} on"

    def is_unknown_at(self, at: Millis) -> bool:
        """Whether the calendar's times around an instant are unknown."""
        return self.known_until is not None and at >= self.known_until

    def covering(self, at: Millis) -> Span | None:
        """An excluded span around an instant, with the reason; `None` if the instant is not excluded.

        Returns:
            A span that contains the instant and is excluded throughout, but is not necessarily the longest such span.
        """
        closed = self._closed(day_of(self.zone.wall_at(at)))
        index = bisect_right(closed, at, key=lambda span: span.start) - 1
        return closed[index] if index >= 0 and at < closed[index].end else None

    def free_around(self, at: Millis) -> Span:
        """A span around a free instant, on the same day, in which work may run; a longer span may exist."""
        day = day_of(self.zone.wall_at(at))
        closed = self._closed(day)
        index = bisect_right(closed, at, key=lambda span: span.start)
        start = closed[index - 1].end if index else _start_of(self.zone, day)
        end = closed[index].start if index < len(closed) else _start_of(self.zone, day + _ONE_DAY)
        return Span(start, end)

    def _closed(self, day: date) -> tuple[Span, ...]:
        closed = self._known.get(day)
        if closed is None:
            if len(self._known) >= _DAYS_KNOWN:
                self._known.clear()
            closed = self._known[day] = tuple(_closed_on(self, day))
        return closed


def _closed_on(calendar: Calendar, day: date) -> Iterator[Span]:
    """A day's excluded spans, in order and without overlaps; of overlapping spans, the first span's reason is used."""
    start, end = _start_of(calendar.zone, day), _start_of(calendar.zone, day + _ONE_DAY)
    spans = [each for each in _spans_reaching(calendar, day) if each.start < end and start < each.end]
    if calendar.mode is CalendarMode.INCLUDES:
        yield from _between(spans, start, end, f"{calendar.name}: outside its times")
    else:
        for each in sorted(spans):
            start = max(start, each.start)
            if start < min(end, each.end):
                yield Span(start, min(end, each.end), each.reason)
                start = min(end, each.end)


def _between(spans: Sequence[Span], start: Millis, end: Millis, reason: str) -> Iterator[Span]:
    for each in sorted(spans):
        if each.start > start:
            yield Span(start, each.start, reason)
        start = max(start, each.end)
    if start < end:
        yield Span(start, end, reason)


def _spans_reaching(calendar: Calendar, day: date) -> Iterator[Span]:
    """The calendar's spans that may overlap a day."""
    yield from _spans_near(calendar, day)
    yield from _windows_on(calendar, day - _ONE_DAY)
    if day in calendar.except_dates:
        return
    start, end = _start_of(calendar.zone, day), _start_of(calendar.zone, day + _ONE_DAY)
    if day in calendar.dates:
        label = calendar.dates[day]
        yield Span(start, end, f"{calendar.name}: {day}{f' ({label})' if label else ''}")
    if day.weekday() in calendar.weekdays:
        yield Span(start, end, f"{calendar.name}: {day:%A}")
    yield from _windows_on(calendar, day)


def _windows_on(calendar: Calendar, day: date) -> Iterator[Span]:
    """The windows that start on a day; windows that extend past midnight end on the next day."""
    if day in calendar.except_dates or not calendar.windows:
        return
    wall, weekday = wall_of(day), day.weekday()
    # A constant UTC offset is used where possible, because almost all days have one and searching for clock changes is
    # slow.
    offset = calendar.zone.even_offset(wall, wall + 2 * DAY)
    for window in calendar.windows:
        if weekday in window.weekdays:
            first, last = wall + window.start, wall + window.end + (DAY if window.end <= window.start else 0)
            start = calendar.zone.instant_after_gap(first) if offset is None else first - offset
            end = _last_instant(calendar.zone, last) if offset is None else last - offset
            if start < end:
                yield Span(start, end, f"{calendar.name}: {window.label or window}")


def _spans_near(calendar: Calendar, day: date) -> Iterator[Span]:
    start, end = _start_of(calendar.zone, day), _start_of(calendar.zone, day + _ONE_DAY)
    first = bisect_right(calendar.spans, start, key=lambda span: span.end)
    for span in islice(calendar.spans, first, None):
        if span.start >= end:
            return
        yield Span(span.start, span.end, f"{calendar.name}: {span.reason}" if span.reason else calendar.name)


def _apart(spans: Sequence[Span]) -> Iterator[Span]:
    """Returns sorted spans without overlaps; overlapping spans are merged and keep the first span's reason."""
    current: Span | None = None
    for span in sorted(spans):
        if current is not None and span.start < current.end:
            current = Span(current.start, max(current.end, span.end), current.reason)
            continue
        if current is not None:
            yield current
        current = span
    if current is not None:
        yield current


def _last_instant(zone: Zone, wall: int) -> Millis:
    """The last instant at which the clock shows a wall time; if the clock skips the time, the end of the gap."""
    instants = zone.instants_of(wall)
    return instants[-1] if instants else zone.instant_after_gap(wall)


def _start_of(zone: Zone, day: date) -> Millis:
    return zone.instant_after_gap(wall_of(day))


_NEVER_MANY = 100_000
"""Maximum number of steps in a search; searching two years of days in eight calendars takes far fewer steps."""


def covering(calendars: Sequence[Calendar], at: Millis) -> Span | None:
    """An excluded span around an instant, with the first calendar's reason; `None` if the instant is not excluded.

    Returns:
        A span that contains the instant and is excluded throughout, but is not necessarily the longest such span.
    """
    spans = [span for each in calendars if (span := each.covering(at)) is not None]
    if not spans:
        return None
    return Span(min(span.start for span in spans), max(span.end for span in spans), spans[0].reason)


def free_around(calendars: Sequence[Calendar], at: Millis) -> Span:
    """A span around an instant in which no calendar excludes work; a longer span may exist."""
    spans = [each.free_around(at) for each in calendars]
    return Span(max(span.start for span in spans), min(span.end for span in spans))


@dataclass(slots=True)
class Searched:
    """A period [start, end) that a search found to be excluded. The next search continues at the period's end.

    Without this class, each of many occurrences in a long excluded period would search the entire period.
    """

    start: Millis = 0
    end: Millis = 0


def next_working_moment(calendars: Sequence[Calendar], at: Millis, searched: Searched | None = None) -> Millis | None:
    """The first moment from `at` on when no calendar excludes work; `None` if there is none within two years.

    Args:
        calendars: all of the schedule's calendars.
        at: start of the search.
        searched: a period that these calendars were found to exclude; the search updates this period.
    """
    closed = Searched() if searched is None else searched
    if not closed.start <= at <= closed.end:
        closed.start = closed.end = at
    for _ in range(_NEVER_MANY):
        if closed.end > at + WORKING_MOMENT_HORIZON:
            return None
        span = covering(calendars, closed.end)
        if span is None:
            return closed.end
        closed.end = span.end
    return None
