"""Search in calendars: what covers an instant, and the next one that is not excluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import WORKING_MOMENT_HORIZON
from duetime.domain.schedules.calendars import Calendar, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis


_NEVER_MANY = 100_000
"""Steps after which a search for a working moment ends; two years of days in eight calendars are far fewer."""


def covering(calendars: Sequence[Calendar], at: Millis) -> Span | None:
    """Why work may not run at an instant, by the first calendar that says so, and how long by any of them.

    Returns:
        A span that the instant lies in and in all of which no work may run; it need not be the longest.
    """
    spans = [span for each in calendars if (span := each.covering(at)) is not None]
    if not spans:
        return None
    return Span(min(span.start for span in spans), max(span.end for span in spans), spans[0].reason)


def free_around(calendars: Sequence[Calendar], at: Millis) -> Span:
    """A span around an instant that nothing covers, in all of which work may run; it need not be the longest."""
    spans = [each.free_around(at) for each in calendars]
    return Span(max(span.start for span in spans), min(span.end for span in spans))


@dataclass(slots=True)
class Searched:
    """What a search for a working moment has found closed: [start, end). One that follows goes on from there.

    All occurrences of a schedule that fall into a long closed period ask for its end.
    """

    start: Millis = 0
    end: Millis = 0


def next_working_moment(calendars: Sequence[Calendar], at: Millis, searched: Searched | None = None) -> Millis | None:
    """The first moment, not before `at`, at which all calendars let work run; `None` if there is none in two years.

    Args:
        calendars: all of them.
        at: from when on.
        searched: what was found closed before, by these very calendars; it is brought up to date.
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
