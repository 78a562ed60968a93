"""Compares duetime's computation of cron occurrences with croniter's."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from croniter import croniter

from bench.paired_timing import Comparison, compare_cpu
from duetime.domain.schedules.cron_parser import parse_cron
from duetime.domain.schedules.definition import ScheduleSpec, Written
from duetime.domain.schedules.expansion import catch_up, expand
from duetime.domain.schedules.occurrences import following
from duetime.domain.schedules.recurrence_builder import recurrence_of
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.schedule import Schedule
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, MINUTE, to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOW = 1_795_228_387_000
_TIMES = 200
_ZONE = "Europe/London"
_EXPRESSIONS = ("*/5 * * * *", "30 1 * * 1-5", "0 0 29 2 *")


def comparisons() -> Iterator[Comparison]:
    """Measure computing the next 200 occurrences of some expressions and catching up on a missed year."""
    for text in _EXPRESSIONS:
        yield compare_cpu(f"{_TIMES} instants of {text}", _instants(text), "croniter's", _croniters(text), pairs=7)
    schedule = _schedule("*/5 * * * *")
    steps = _croniters("*/5 * * * *")
    yield compare_cpu(
        f"{_TIMES} occurrences of */5 with key and note",
        lambda: following(schedule, _NOW, _TIMES),
        f"{_TIMES} of croniter's",
        steps,
        pairs=7,
    )
    each_second = _schedule("* * * * * *")
    yield compare_cpu(
        "catch up a year of each second",
        lambda: catch_up(each_second, _NOW - 365 * DAY, _NOW),
        f"{_TIMES} of croniter's",
        steps,
        pairs=7,
    )
    yield compare_cpu(
        "a look at 3 minutes of each second",
        lambda: expand(each_second, _NOW, _NOW + 3 * MINUTE),
        f"{_TIMES} of croniter's",
        steps,
        pairs=7,
    )


def _schedule(text: str) -> Schedule:
    spec = ScheduleSpec(Written(cron=text), TaskSpec("bench"), clock=Clock(zone_named(_ZONE)))
    return Schedule("bench", spec, parse_cron(text), 0)


def _instants(text: str) -> Callable[[], None]:
    recurrence = recurrence_of(parse_cron(text), Clock(zone_named(_ZONE)), 0)

    def step() -> None:
        at = _NOW
        for _ in range(_TIMES):
            found = recurrence.after(at)
            if found is None:
                return
            at = found

    return step


def _croniters(text: str) -> Callable[[], object]:
    start = to_datetime(_NOW).astimezone(ZoneInfo(_ZONE))
    return lambda: list(islice(croniter(text, start, ret_type=datetime, max_years_between_matches=400), _TIMES))
