"""Tests how the scheduler comparison evaluates when tasks start."""

from __future__ import annotations

from math import isnan

from bench.results import OTHERWISE
from bench.scheduler_comparison.lateness_figures import CaseFigures, SchedulerFigures
from bench.scheduler_comparison.report import markdown
from bench.scheduler_comparison.scheduled_tasks import Outcome
from bench.scheduler_comparison.schedulers import SCHEDULERS

_DUE = 1_000_000


def _figures(*late: int | None) -> CaseFigures:
    started = [None if each is None else _DUE + each for each in late]
    return CaseFigures.of(Outcome("burst", [_DUE] * len(late), started, 1.5))


def test_lost_tasks_are_not_in_the_percentiles() -> None:
    """A lost task is counted as lost, and is not part of any other figure."""
    figures = _figures(*range(101), None)
    assert (figures.p50_ms, figures.p99_ms, figures.all_started_s, figures.lost) == (50.0, 99.0, 0.1, 1)


def test_only_a_start_before_the_due_time_is_early() -> None:
    """A start at the due time is not early; the largest lead is reported, or 0 if no task was early."""
    figures = _figures(-1, -7, 0, 3)
    assert (figures.early, figures.early_by_ms) == (2, 7)
    assert (_figures(0, 5).early, _figures(0, 5).early_by_ms) == (0, 0)


def test_a_scheduler_that_ran_nothing_has_no_lateness() -> None:
    """The lateness of a scheduler that ran no task is NaN, which is left out of the results because JSON lacks NaN."""
    nothing, some = _figures(None, None), _figures(2, 4)
    assert isnan(nothing.p50_ms)
    kept = SchedulerFigures(some, nothing).kept("rq_redis")
    assert kept == {
        "lateness_p50_ms_rq_redis": 3.0,
        "lateness_p99_ms_rq_redis": 4.0,
        "early_rq_redis": 0,
        "early_by_ms_rq_redis": 0,
        "lost_rq_redis": 2,
        "spread_processor_s_rq_redis": 1.5,
        "burst_processor_s_rq_redis": 1.5,
    }


def test_early_starts_and_lost_tasks_of_both_cases_are_added() -> None:
    """The figures for both cases are added up, but the larger lead is used; `make bench` knows each key."""
    for scheduler in SCHEDULERS:
        kept = SchedulerFigures(_figures(-5, 2, None), _figures(-3, 4)).kept(scheduler.key)
        assert [kept[f"{key}_{scheduler.key}"] for key in ("early", "early_by_ms", "lost")] == [2, 5, 1]
        assert kept.keys() <= OTHERWISE.keys()


def test_each_table_has_a_row_for_each_scheduler() -> None:
    """Each of the three tables has a row for each scheduler."""
    figures = SchedulerFigures(_figures(1, 2), _figures(3, 4))
    parts = "\n".join(markdown(dict.fromkeys(SCHEDULERS, figures))).split(":\n\n")[1:]
    tables = [[line for line in part.splitlines() if line.startswith("|")] for part in parts]
    assert [len(lines) for lines in tables] == 3 * [2 + len(SCHEDULERS)]
    assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)
