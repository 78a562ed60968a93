"""Calendars: named sets of dates, weekdays, daily windows and spans, outside or inside of which work may run."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CALENDAR_DATES, MAX_CALENDAR_WINDOWS, MAX_NAME_LENGTH
from duetime.domain.schedules.time_zones import UTC_ZONE, Zone, clock_text, day_of, wall_of
from duetime.domain.times import DAY, Millis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date


_ONE_DAY = timedelta(days=1)
_WEEKDAYS = frozenset(range(7))
_DAYS_KNOWN = 1_000
"""So many days of a calendar are kept once they were worked out."""


class CalendarMode(StrEnum):
    """What the times of a calendar mean.

    Attributes:
        EXCLUDES: work does not run in them.
        INCLUDES: work runs in them only.
    """

    EXCLUDES = "excludes"
    INCLUDES = "includes"


EMPTY_CALENDAR = {
    CalendarMode.EXCLUDES: "so the calendar would exclude nothing",
    CalendarMode.INCLUDES: "so nothing would ever run within the calendar",
}
"""What a calendar without times, which is rejected, would mean."""


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A time of each day, by the calendar's clock.

    Where a clock is set back, a window reaches from its first beginning to its last end.

    Attributes:
        start: since midnight, in milliseconds.
        end: the first moment after it; not after `start` for a window over midnight.
        weekdays: the days it begins on, 0 for Monday.
        label: what it is called, in words.
    """

    start: Millis
    end: Millis
    weekdays: frozenset[int] = _WEEKDAYS
    label: str = ""

    def __str__(self) -> str:
        return f"{clock_text(self.start)} to {clock_text(self.end) if self.end < DAY else '24:00'}"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A period [start, end) with the reason why it is in the calendar."""

    start: Millis
    end: Millis
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Calendar:
    """A set of times.

    Attributes:
        name: what schedules call it.
        mode: whether work runs outside of it or inside only.
        zone: whose days and windows they are.
        dates: its days, each with a label that may be empty.
        except_dates: days on which weekdays, windows and dates do not count.
        weekdays: its days of each week, 0 for Monday.
        windows: its times of day.
        spans: its periods, in order.
        known_until: from when on its times are not known, such as where recurring events were expanded no further;
            `None` if all are.
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
        """Reject what is too large, and put the spans in order and apart.

        Raises:
            FieldInvalid: there are too many dates, spans or windows, or a window or span is empty.
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
        """Whether it has no times at all."""
        return not (self.windows or self.spans or self.weekdays or self.dates.keys() - self.except_dates)

    @property
    def end_in_words(self) -> str:
        """That its times are not known from some day on; for a calendar of which not all are."""
        end = self.zone.text_at(self.known_until or 0)
        return f"{self.name}: its times are not known from {end[:10] if 'T00:00:00' in end else end} on"

    def is_unknown_at(self, at: Millis) -> bool:
        """Whether it does not know about an instant."""
        return self.known_until is not None and at >= self.known_until

    def covering(self, at: Millis) -> Span | None:
        """Why and how long work may not run at an instant; `None` if it may.

        Returns:
            A span that the instant lies in and in all of which no work may run; it need not be the longest.
        """
        closed = self._closed(day_of(self.zone.wall_at(at)))
        index = bisect_right(closed, at, key=lambda span: span.start) - 1
        return closed[index] if index >= 0 and at < closed[index].end else None

    def free_around(self, at: Millis) -> Span:
        """How long work may run around an instant at which it may, on that day; it need not be the longest span."""
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
    """The spans of a day in which no work may run, in order and apart; where several lie, the first says why."""
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
    """The calendar's times that may reach into a day."""
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
    """The windows that begin on a day; one over midnight reaches into the next."""
    if day in calendar.except_dates or not calendar.windows:
        return
    wall, weekday = wall_of(day), day.weekday()
    # On all but a few days of a year every window is as far from UTC, and looking for jumps of the clock costs most.
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
    """Spans in order; what overlaps is one, under the reason of the first."""
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
    """The last instant at which the clock shows a wall time, or the end of the gap it lies in."""
    instants = zone.instants_of(wall)
    return instants[-1] if instants else zone.instant_after_gap(wall)


def _start_of(zone: Zone, day: date) -> Millis:
    return zone.instant_after_gap(wall_of(day))
