"""Compares the simulator for large scale with formulas and with a model that simulates each task."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.scale import aws_limits
from bench.scale.cohort_model import BATCH, RUN_WRITES, Deployment, Run, simulate
from bench.scale.discrete_model import starts
from bench.scale.fair_queue_model import Key, waits
from bench.scale.tables import case_table, counted, fair_table, step_table
from duetime.domain.limits import MAX_FAIR_WEIGHT
from tests.parts import others_slow

if TYPE_CHECKING:
    from bench.scale.cohort_model import Series

ROOT = Path(__file__).parents[2]
READY = Deployment(
    shards=1_000,
    table_writes=1e6,
    table_quota=1e6,
    mapping_start=100,
    mapping_most=100,
    warm=100,
    concurrency=100,
    batch_seconds=1.0,
)
"""A hundred workers, with more of all other resources than the workers need."""


def burst(number: float, seconds: float, step: float) -> Series:
    """Return a series in which all tasks are due at the start, followed by time to run the tasks."""
    due = np.zeros((round(seconds / step), 1))
    due[0] = number
    return due


def even(rate: float, seconds: float, step: float, after: float = 0.0) -> Series:
    """Return a series in which tasks are due evenly, followed by time after the last task."""
    due = np.zeros((round((seconds + after) / step), 1))
    due[: round(seconds / step)] = rate * step
    return due


def slowest(run: Run) -> float:
    """Return the longest wait in seconds."""
    assert run.left == pytest.approx(0, abs=1e-6)
    return float(run.waits().max())


def test_a_burst_runs_in_waves() -> None:
    """If a hundred workers run 10,000 one-second tasks, ten at a time each, the last wave starts after nine seconds."""
    run = simulate(READY, burst(10_000, 20, 0.01), 0.01)
    assert slowest(run) == pytest.approx(9.0, rel=0.02)
    assert np.median(run.waits()) == pytest.approx(4.5, abs=0.6)
    assert run.workers == pytest.approx(100)


def test_an_overloaded_table_delays_tasks_by_its_ratio() -> None:
    """If tasks need twice the sustainable write rate for a minute, the last task waits a minute."""
    limited = replace(READY, mapping_start=1e4, mapping_most=1e4, warm=1e4, concurrency=1e4, table_writes=1_000.0)
    run = simulate(limited, even(2 * 1_000 / RUN_WRITES, 60, 0.1, after=80), 0.1)
    assert slowest(run) == pytest.approx(60, rel=0.03)
    assert run.table_limited == pytest.approx(118, rel=0.03)
    shards = replace(limited, table_writes=1e6, shards=1)
    assert slowest(simulate(shards, even(1_000, 60, 0.1, after=80), 0.1)) == pytest.approx(60, rel=0.03)


def test_a_table_doubles_in_half_an_hour() -> None:
    """If tasks need 4/3 of the table's capacity, the longest wait is a quarter of the table's doubling time."""
    limited = replace(READY, mapping_start=1e4, mapping_most=1e4, warm=1e4, concurrency=1e4, table_writes=900.0)
    run = simulate(limited, even(600, 3_600, 1.0, after=3_600), 1.0)
    assert slowest(run) == pytest.approx(aws_limits.TABLE_DOUBLES_IN / 4, rel=0.03)


def test_a_cold_mapping_grows_by_five_batches_a_second() -> None:
    """Apart from the cold start, 5t + 5t²/2 one-second batches have started after t seconds."""
    cold = replace(READY, warm=0.0, mapping_start=5.0, mapping_growth=5.0, mapping_most=1e4, concurrency=1e4)
    run = simulate(cold, burst(10_000, 60, 0.01), 0.01)
    expected = -1 + np.sqrt(1 + 2 * 1_000 / 5)
    assert slowest(run) == pytest.approx(expected, abs=2.0)
    assert slowest(run) > expected - 1


def test_the_backlog_of_an_outage_is_processed_with_the_free_capacity() -> None:
    """After an outage of ten minutes, with load at half the capacity, the backlog is processed in ten minutes."""
    run = simulate(READY, even(500, 1_800, 1.0, after=60), 1.0, down=(0, 600))
    assert slowest(run) == pytest.approx(600, rel=0.02)
    waiting = np.cumsum(run.due[:, 0]) - np.cumsum(run.started[:, 0])
    assert np.argmax(waiting[600:] < 1_000) == pytest.approx(600, rel=0.02)


def test_classes_share_workers_fairly() -> None:
    """A class that needs less than half of the workers does not wait because of a flood of other tasks."""
    both = np.hstack([even(200, 60, 0.1), even(5_000, 60, 0.1)])
    run = simulate(replace(READY, batch_seconds=0.5), both, 0.1)
    assert run.waits(0).max() < 0.6
    assert run.waits(1).max() > 20


@pytest.mark.parametrize(
    ("rate", "workers", "units"),
    [(1e6, 10, 0.0), (200.0, 10, 0.0), (200.0, 30, 120.0)],
    ids=["burst", "flow", "table"],
)
def test_a_model_that_follows_each_task_has_the_same_percentiles(rate: float, workers: int, units: float) -> None:
    """For 6,000 tasks, both models' wait percentiles differ by at most a twentieth plus a batch's duration.

    A free worker takes a single due task, so the first batches are not full, unlike the first batches in the cohort
    model. The cohort model's table also starts with one second of saved write units.
    """
    apart = 1.1 + (units > 0)
    due = [number / rate for number in range(6_000)]
    small = replace(READY, mapping_start=workers, mapping_most=workers, warm=workers, concurrency=workers)
    if units:
        small = replace(small, table_writes=units * RUN_WRITES)
    run = simulate(small, even(rate, due[-1], 0.01, after=70) if units or rate < 1e6 else burst(6_000, 70, 0.01), 0.01)
    waits = np.array(starts(due, workers=workers, batch=BATCH, seconds=1.0, units=units)) - np.array(due)
    for percent in (10, 50, 90, 99):
        one, other = np.percentile(run.waits(), percent), np.percentile(waits, percent)
        assert one == pytest.approx(other, rel=0.05, abs=apart), percent


def test_keys_that_have_a_backlog_share_by_their_weights() -> None:
    """Among the first 20,000 tasks, the key with weight 3 has three times as many tasks as the key with weight 1."""
    keys = [Key(f"large-{weight}", 30_000, 0.0, str(weight), weight) for weight in (1, 3)]
    found = waits(keys, workers=100, seconds=0.5)
    first = {kind: int((each < 10).sum()) for kind, each in found.items()}
    assert first["3"] == pytest.approx(3 * first["1"], rel=0.02)


@pytest.mark.parametrize("weight", others_slow(range(MAX_FAIR_WEIGHT, 0, -1)))
def test_no_weight_of_a_key_makes_other_keys_wait(weight: int) -> None:
    """While other keys use nearly half of the workers, no weight of a large key makes small keys wait."""
    others = [Key(f"other-{number}", 900, 10.0, "other") for number in range(10)]
    for groups, longest in ((weight, 1.0), (10, 100.0)):
        found = waits([Key("large", 20_000, 0.0, "large", groups), *others], workers=100, seconds=0.5)
        assert found["other"].max() < longest
        assert groups == weight or found["other"].max() > 5


def test_a_key_alone_has_all_workers() -> None:
    """A fair key sets no limit, so if all tasks have the same key, they run like tasks without a key."""
    alone = waits([Key("large", 10_000, 0.0, "large")], workers=100, seconds=0.5)["large"]
    assert alone.max() == pytest.approx(
        waits([Key(None, 10_000, 0.0, "large")], workers=100, seconds=0.5)["large"].max()
    )


@pytest.mark.slow
def test_the_page_and_the_results_have_the_simulated_figures() -> None:
    """`docs/scale.md` has the three tables, and its two figures in `results.json` are below their goals."""
    page = (ROOT / "docs/scale.md").read_text("utf-8")
    assert "\n".join(case_table()) in page
    assert "\n".join(step_table()) in page
    assert "\n".join(fair_table()) in page
    results = json.loads((ROOT / "bench/results.json").read_text())
    figures = counted()
    assert figures.items() <= results.items()
    assert figures["simulated_p99_s_120k"] <= 0.25
    assert figures["simulated_p99_s_burst"] <= 6
