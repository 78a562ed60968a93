"""Finds the occurrence of a schedule at a given time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_OCCURRENCES
from duetime.domain.schedules.calendar_search import covering
from duetime.domain.schedules.occurrences import between, count_between, is_in_gap, judged, previous_nominal
from duetime.domain.times import HOUR, MINUTE, SECOND, from_datetime

if TYPE_CHECKING:
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.times import Millis


_GAP = 3 * HOUR
"""No clock is changed by more."""


def occurrence_at(schedule: Schedule, at: Millis) -> Occurrence | None:
    """The occurrence that somebody means who names a time: to the minute if it is a whole one, else to the second.

    A local time that a clock jumped over is found by the offset before the jump, one that jitter has moved by when it
    is due.
    """
    first, unit = time_meant(at)
    for found in between(schedule, first - 1, first + unit - 1, MAX_OCCURRENCES):
        if not is_in_gap(schedule, found):
            return found
    if (lost := _lost_at(schedule, first, unit)) is not None:
        return lost
    earlier = previous_nominal(schedule, first)
    moved = None if earlier is None else judged(schedule, earlier)
    return moved if moved is not None and moved.runs and first <= moved.due_at < first + unit else None


def rolled_at(schedule: Schedule, at: Millis) -> str:
    """What has become of a time that its calendars exclude and that runs on another day; empty for any other."""
    first, unit = time_meant(at)
    if (rolled := schedule.rolled) is None or (origin := rolled.inner.after(first - 1)) is None:
        return ""
    landing, zone = rolled.rule.roll(origin).at, schedule.spec.clock.zone
    span = covering(schedule.calendars, origin)
    if origin >= first + unit or landing == origin or span is None:
        return ""
    return f"{span.reason}: it runs at {zone.text_at(landing)} instead of {zone.text_at(origin)}."


def time_meant(at: Millis) -> tuple[Millis, Millis]:
    """The beginning and the length of the minute, or second, that somebody means who names a time."""
    unit = MINUTE if at % MINUTE == 0 else SECOND
    return at - at % unit, unit


def _lost_at(schedule: Schedule, first: Millis, unit: Millis) -> Occurrence | None:
    """A time that a clock jumped over."""
    if count_between(schedule, first - _GAP, first + _GAP) >= MAX_OCCURRENCES:
        return None
    for found in between(schedule, first - _GAP, first + _GAP, MAX_OCCURRENCES):
        if is_in_gap(schedule, found) and first <= from_datetime(datetime.fromisoformat(found.key)) < first + unit:
            return found
    return None
