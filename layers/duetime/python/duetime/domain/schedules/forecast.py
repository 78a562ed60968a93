"""How many runs schedules plan in each period of the time to come, and where they begin together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.schedules.occurrences import count_between, forward
from duetime.domain.times import HOUR, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.times import Millis

FORECAST_LENGTH = 24 * HOUR
"""How far a forecast looks."""
FORECAST_PERIOD = 30 * MINUTE
"""Length of each of its periods."""
MAX_FORECAST_SCHEDULES = 100
"""How many schedules a forecast counts."""
MAX_LISTED_RUNS = 300
"""Of a schedule with more runs than this, the runs are counted by arithmetic: calendars do not change its counts, and
it begins together with whatever else runs, which is worth no mention."""


@dataclass(frozen=True, slots=True)
class PlannedPeriod:
    """A period, with how many runs each schedule plans in it; a schedule without any is left out."""

    start: Millis
    runs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Collision:
    """A minute in which several schedules begin a run."""

    at: Millis
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is planned from an instant on.

    Attributes:
        periods: one after the other, without gaps; the first began at the half hour before.
        collisions: the minutes in which most schedules begin come first.
        is_complete: whether all active schedules are counted.
    """

    start: Millis
    periods: Sequence[PlannedPeriod]
    collisions: Sequence[Collision]
    is_complete: bool


def forecast(schedules: Iterable[tuple[str, Schedule]], start: Millis, *, is_complete: bool) -> Forecast:
    """The forecast of the schedules of these names, from an instant on."""
    end = start + FORECAST_LENGTH
    first = start - start % FORECAST_PERIOD
    starts = range(first, end, FORECAST_PERIOD)
    periods: list[dict[str, int]] = [{} for _ in starts]
    minutes: dict[Millis, list[str]] = defaultdict(list)
    for name, schedule in schedules:
        times = planned_times(schedule, start, end)
        if times is None:
            bounds = ((max(each, start) - 1, min(each + FORECAST_PERIOD, end) - 1) for each in starts)
            counts = [count_between(schedule, after, until) for after, until in bounds]
        else:
            counts = [0 for _ in starts]
            for at in times:
                counts[(at - first) // FORECAST_PERIOD] += 1
            for minute in {at - at % MINUTE for at in times}:
                minutes[minute].append(name)
        for period, count in zip(periods, counts, strict=True):
            if count:
                period[name] = count
    together = [Collision(at, names) for at, names in minutes.items() if len(names) > 1]
    return Forecast(
        start,
        [PlannedPeriod(at, runs) for at, runs in zip(starts, periods, strict=True)],
        sorted(together, key=lambda each: (-len(each.names), each.at)),
        is_complete,
    )


def planned_times(schedule: Schedule, start: Millis, end: Millis) -> Sequence[Millis] | None:
    """When its runs in [start, end) are due; `None` if there are too many to list."""
    count = count_between(schedule, start - 1, end - 1)
    if count > MAX_LISTED_RUNS and (schedule.remaining_runs is None or schedule.remaining_runs > MAX_LISTED_RUNS):
        return None
    found = (each.due_at for each in forward(schedule, start - 1, end - 1) if each.runs)
    return [at for at in found if at < end]
