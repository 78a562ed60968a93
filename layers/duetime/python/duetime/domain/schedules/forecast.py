"""Forecasts how many runs schedules plan in each coming period, and when runs coincide."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from duetime.domain.schedules.expansion import latest_occurrence
from duetime.domain.schedules.occurrences import count_between, forward
from duetime.domain.times import HOUR, MINUTE
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.times import Millis

FORECAST_LENGTH = 24 * HOUR
"""Default length of a forecast."""
MAX_FORECAST_HOURS = 7 * 24
"""Maximum length of a forecast, in hours."""
MAX_FORECAST_SCHEDULES = 2_000
"""Maximum number of schedules in a forecast."""
MAX_LISTED_RUNS = 300
"""If a schedule has more runs than this, the runs are counted without enumerating them. The count then ignores
calendars, and the schedule is ignored for collisions, because it would coincide with every other schedule."""


@frozen
class PlannedPeriod:
    """A period and the number of planned runs per schedule; schedules without planned runs are left out."""

    start: Millis
    runs: Mapping[str, int]


@frozen
class Collision:
    """A minute in which several schedules start a run."""

    at: Millis
    names: Sequence[str]


@frozen
class Forecast:
    """Planned runs from an instant on.

    Attributes:
        periods: consecutive periods, the first of which starts at the last multiple of `period` before `start`.
        collisions: minutes in which several schedules start a run, the minutes with the most starts first.
        period: length of each period.
        is_complete: whether all active schedules are included.
    """

    start: Millis
    period: Millis
    periods: Sequence[PlannedPeriod]
    collisions: Sequence[Collision]
    is_complete: bool


def period_of(length: Millis) -> Millis:
    """Length of a forecast's periods: half an hour, or three hours if the forecast is longer than a day."""
    return 30 * MINUTE if length <= FORECAST_LENGTH else 3 * HOUR


def forecast(
    schedules: Iterable[tuple[str, Schedule]],
    start: Millis,
    length: Millis = FORECAST_LENGTH,
    is_complete: Callable[[], bool] = lambda: True,
) -> Forecast:
    """The forecast of named schedules from an instant on.

    Args:
        schedules: the schedules by name; they are taken from the iterable one by one, because computing each of them
            can take milliseconds.
        start: when the forecast begins.
        length: how far the forecast looks ahead.
        is_complete: called at the end; returns whether all schedules were given.
    """
    end, length_of_each = start + length, period_of(length)
    first = start - start % length_of_each
    starts = range(first, end, length_of_each)
    periods: list[dict[str, int]] = [{} for _ in starts]
    minutes: dict[Millis, list[str]] = defaultdict(list)
    for name, schedule in schedules:
        times = planned_times(schedule, start, end)
        if times is None:
            bounds = [(max(each, start) - 1, min(each + length_of_each, end) - 1) for each in starts]
            counts = _counts(schedule, bounds)
        else:
            counts = [0 for _ in starts]
            for at in times:
                counts[(at - first) // length_of_each] += 1
            for minute in {at - at % MINUTE for at in times}:
                minutes[minute].append(name)
        for period, count in zip(periods, counts, strict=True):
            if count:
                period[name] = count
    together = [Collision(at, names) for at, names in minutes.items() if len(names) > 1]
    return Forecast(
        start=start,
        period=length_of_each,
        periods=[PlannedPeriod(at, runs) for at, runs in zip(starts, periods, strict=True)],
        collisions=sorted(together, key=lambda each: (-len(each.names), each.at)),
        is_complete=is_complete(),
    )


def planned_times(schedule: Schedule, start: Millis, end: Millis) -> Sequence[Millis] | None:
    """Due times of a schedule's runs in [start, end); `None` if there are too many to list."""
    count = count_between(schedule, start - 1, end - 1)
    if count > MAX_LISTED_RUNS and (schedule.remaining_runs is None or schedule.remaining_runs > MAX_LISTED_RUNS):
        return None
    found = [*_delayed(schedule, start), *forward(schedule, start - 1, end - 1)]
    return [each.due_at for each in found if each.runs and start <= each.due_at < end]


def _delayed(schedule: Schedule, start: Millis) -> Sequence[Occurrence]:
    """The last occurrence before an instant, which may be due later; it is placed, so it is not a remaining run."""
    found = latest_occurrence(schedule, start - 1)
    return [found] if found is not None and found.nominal >= schedule.created_at else []


def _counts(schedule: Schedule, bounds: Sequence[tuple[Millis, Millis]]) -> Sequence[int]:
    """Number of runs in each of consecutive periods (after, until], ignoring calendars."""
    counts: list[int] = []
    for after, until in bounds:
        count = count_between(schedule, after, until)
        if schedule.remaining_runs is not None:
            count = min(count, schedule.remaining_runs - sum(counts))
        counts.append(count)
    return counts
