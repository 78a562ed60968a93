"""Searches in calendars: what excludes an instant, and the next instant that is not excluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import WORKING_MOMENT_HORIZON
from duetime.domain.schedules.calendars import Calendar, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis


_NEVER_MANY = 100_000
"""Maximum number of steps of a search; two years of days in eight calendars take far fewer."""


def covering(calendars: Sequence[Calendar], at: Millis) -> Span | None:
    """A span around an excluded instant, with the reason of the first calendar; `None` if it is not excluded.

    Returns:
        A span that contains the instant and is excluded throughout; it need not be the longest.
    """
    spans = [span for each in calendars if (span := each.covering(at)) is not None]
    if not spans:
        return None
    return Span(min(span.start for span in spans), max(span.end for span in spans), spans[0].reason)


def free_around(calendars: Sequence[Calendar], at: Millis) -> Span:
    """A span around an instant in which no calendar excludes work; it need not be the longest."""
    spans = [each.free_around(at) for each in calendars]
    return Span(max(span.start for span in spans), min(span.end for span in spans))


@dataclass(slots=True)
class Searched:
    """A period [start, end) that a search found excluded, from which the next search continues.

    Many occurrences in one long excluded period search for its end.
    """

    start: Millis = 0
    end: Millis = 0


def next_working_moment(calendars: Sequence[Calendar], at: Millis, searched: Searched | None = None) -> Millis | None:
    """The first moment from `at` on at which no calendar excludes work; `None` if there is none within two years.

    Args:
        calendars: all of them.
        at: start of the search.
        searched: a period that these calendars were found to exclude; it is updated.
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
