"""Every number that a schedule or a backfill takes, at both ends of its legal range, by what it does there."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.schedules.action_bodies import BackfillCreate
from duetime.contract.schedules.bodies import ScheduleCreate
from duetime.domain.schedules.backfill import requested, steps
from duetime.domain.schedules.expansion import catch_up, expand
from duetime.domain.schedules.expectations import OLDEST_WINDOWS, Window, next_window
from duetime.domain.schedules.occurrences import following, judged
from duetime.domain.schedules.run_history import ExpectationState
from duetime.domain.schedules.schedule import next_permanent_run
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.times import DAY, MINUTE, SECOND
from tests.domain.schedules.times import at, changed, scheduled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import BaseModel

NOW = at("2027-01-01T00:00:30")


def bounded(model: type[BaseModel], left_out: frozenset[str] = frozenset()) -> dict[str, tuple[int, int]]:
    """The numbers of a request with a legal range, by their names; those within other fields are `field.name`."""
    schema = model.model_json_schema()

    def walk(name: str, node: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        for part in node.get("anyOf", ()):
            yield from walk(name, part)
        if node.get("type") in {"integer", "number"} and "minimum" in node and "maximum" in node:
            yield name, (node["minimum"], node["maximum"])
        for inner, each in node.get("properties", {}).items():
            if inner not in left_out:
                yield from walk(f"{name}.{inner}" if name else inner, each)

    return dict(walk("", schema))


def _delays(name: str, seconds: int) -> None:
    """Delays of up to so long, and of a part of it that is seen, where the next occurrence leaves room."""
    schedule = changed(scheduled("0 0 1 * *"), **{name: seconds})
    delays = [each.due_at - each.nominal for each in following(schedule, NOW, 24)]
    assert max(delays) <= seconds * SECOND
    assert (max(delays) > seconds * SECOND // 20) is bool(seconds)


def _catches_up(seconds: int) -> None:
    """One that is late by just so much runs, one that is a second later does not."""
    schedule = changed(scheduled("0 0 1 1 *"), catch_up_seconds=seconds)
    missed = following(schedule, NOW, 1)[0].nominal
    assert catch_up(schedule, NOW, missed + seconds * SECOND).run == judged(schedule, missed)
    late = catch_up(schedule, NOW, missed + (seconds + 1) * SECOND)
    assert (late.run, late.missed) == (None, 1)


def _expects(seconds: int) -> None:
    """Its deadline is one period after the latest success, whenever that is looked into before."""
    spec = replace(scheduled("* * * * *").spec, expect_every_seconds=seconds)
    for now in (NOW, NOW + seconds * SECOND // 2, NOW + seconds * SECOND):
        found = next_window(spec, ExpectationState(NOW, NOW), now - OLDEST_WINDOWS)
        assert found == Window(NOW, NOW + seconds * SECOND, is_period=True)


def _remains(runs: int) -> None:
    """So many occurrences are placed, and no more."""
    schedule = replace(scheduled("* * * * * *"), remaining_runs=runs)
    found = expand(schedule, NOW, NOW + MINUTE)
    placed = min(runs, 60)
    assert (len(found.occurrences), found.remaining_runs) == (placed, runs - placed)


def _pauses(seconds: int) -> None:
    """The next run is so long after the end of the one before."""
    schedule = replace(scheduled("* * * * *"), timing=parse_timing(permanent=seconds))
    assert next_permanent_run(schedule, NOW) == NOW + seconds * SECOND


def _fills(per_minute: int) -> None:
    """So many a minute are due."""
    backfill = requested(NOW - DAY, NOW, per_minute, NOW)
    found = [each for each, _ in islice(steps(scheduled("* * * * * *"), backfill, 86_400), per_minute + 1)]
    assert (found[0].due_at, found[-1].due_at) == (NOW, NOW + MINUTE)


ROWS: dict[str, Callable[[int], None]] = {
    "spread_seconds": lambda seconds: _delays("spread_seconds", seconds),
    "jitter_seconds": lambda seconds: _delays("jitter_seconds", seconds),
    "catch_up_seconds": _catches_up,
    "expect_every_seconds": _expects,
    "remaining_runs": _remains,
    "permanent.gap_seconds": _pauses,
    "per_minute": _fills,
}
RANGES = {**bounded(ScheduleCreate, frozenset({"task"})), **bounded(BackfillCreate)}


def test_each_number_of_a_schedule_has_a_row() -> None:
    """A number with a legal range is tried below, and so is each that is added."""
    assert set(RANGES) == set(ROWS)


@pytest.mark.parametrize("end", ["lowest", "highest"])
@pytest.mark.parametrize("name", ROWS)
def test_a_number_does_at_both_ends_of_its_range_what_it_says(name: str, end: str) -> None:
    """What is decided with it, not only that it is accepted."""
    ROWS[name](RANGES[name][end == "highest"])
