"""Tests that the counted cost of sparse traffic equals the cost on the pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import thin_traffic, thin_traffic_designs
from bench.thin_traffic_designs import DESIGNS
from duetime.adapters.runtime.telemetry import PowertoolsTelemetry
from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.times import MINUTE, SECOND
from duetime.metrics import Dimension
from duetime_common.cost_estimate import (
    FULL_BATCHES,
    LOG_BYTES,
    LOG_TASK_BYTES,
    RELAXED_TRAFFIC,
    THIN_TRAFFIC,
    TICKS,
    estimate,
    idle_month,
    watched_month,
)
from duetime_common.prices import DEFAULT_REGION, MILLION, PRICES
from tests.scenarios.scenario import PLAIN
from tests.scenarios.tasks import Tasks

ROOT = Path(__file__).parents[2]
BUILT = next(each for each in DESIGNS if "built" in each.name)


@pytest.fixture(scope="module")
def normal() -> thin_traffic.Usage:
    """Return the usage of a task with the precision `normal`."""
    return thin_traffic.usage(Precision.NORMAL)


def test_counted_costs_equal_the_committed_results_and_the_page(normal: thin_traffic.Usage) -> None:
    """Counting again gives the committed figures in dollars, which are also on the reference page."""
    results = json.loads((ROOT / "bench/results.json").read_text())
    page = (ROOT / "docs/reference/costs.md").read_text("utf-8")
    both = (normal, thin_traffic.usage(Precision.RELAXED))
    parts = [thin_traffic.dollars_per_million(each, results["write_units_per_task"], 0.5) for each in both]
    totals = [round(sum(each.values()), 2) for each in parts]
    assert totals == [results["dollars_per_million_thin"], results["dollars_per_million_thin_relaxed"]]
    assert all(f"**${total:.2f}**" in page for total in totals)
    assert f"**${results['dollars_per_million_default_full']:.2f}**" in page
    assert results["dollars_idle_month"] <= 1.5


def test_bills_in_the_results_equal_those_of_the_estimator() -> None:
    """The bills for the default deployment and for an idle `prod` equal the results, and are below their limits.

    With the precision `relaxed`, the limit is $6.60, because the goal of $6 is missed.
    """
    results = json.loads((ROOT / "bench/results.json").read_text())
    idle = idle_month(PRICES[DEFAULT_REGION]) + watched_month()
    bills = {
        "dollars_per_million_default_thin": (estimate(THIN_TRAFFIC).per_million, 8.0),
        "dollars_per_million_default_thin_relaxed": (estimate(RELAXED_TRAFFIC).per_million, 6.6),
        "dollars_per_million_default_full": (estimate(FULL_BATCHES).per_million, 4.0),
        "dollars_idle_month_prod": (idle, 5.0),
    }
    assert {key: results[key] for key in bills} == {key: round(bill, 2) for key, (bill, _) in bills.items()}
    assert all(bill <= goal for bill, goal in bills.values())


def test_an_estimate_includes_the_log_lines_of_an_ordinary_task(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the worker and the trigger log a task, and a worker's log line is as long as assumed."""
    with Tasks() as tasks:
        tasks.create(MINUTE)
        tasks.run(3 * MINUTE)
        written = {machine.function for machine, facts in tasks._facts.items() if facts.measures}
    assert written == {"trigger", "worker"}
    for count in (1, 10):
        telemetry = PowertoolsTelemetry("duetime-worker", "duetime/duetime-prod", {Dimension.TYPE: frozenset()})
        telemetry.count("tasks_succeeded", count)
        for _ in range(count):
            telemetry.measure("lateness", 3, type=PLAIN)
            telemetry.measure("duration", 104, type=PLAIN)
        telemetry.flush()
        assert len(capsys.readouterr().out.encode()) == pytest.approx(LOG_BYTES + count * LOG_TASK_BYTES, rel=0.05)


def test_tasks_in_sparse_traffic_are_delayed_only_by_their_aws_calls(normal: thin_traffic.Usage) -> None:
    """A message that is sent at the best moment delays a task only by the AWS calls before the task starts."""
    assert normal.lateness[0] >= 0
    assert normal.lateness[len(normal.lateness) // 2] == 0
    assert normal.lateness[-1] < 20


def test_the_row_of_the_implemented_design_equals_the_counted_usage(normal: thin_traffic.Usage) -> None:
    """The implemented design's row is within a twentieth of the counted usage, and the page has every row."""
    held = normal.gigabyte_seconds["worker"] / BUILT.worker
    assert BUILT.early + thin_traffic_designs.RUN == pytest.approx(held, rel=0.05)
    assert BUILT.tick_seconds * TICKS / MILLION == pytest.approx(normal.gigabyte_seconds["trigger"], rel=0.05)
    assert BUILT.queue_requests == pytest.approx(normal.requests, rel=0.05)
    assert pytest.approx(2.592) == thin_traffic.GAP / SECOND
    page = (ROOT / "docs/decisions/performance.md").read_text("utf-8")
    assert "\n".join(thin_traffic_designs.table()) in page
    assert BUILT.dollars(PRICES[DEFAULT_REGION]) < DESIGNS[0].dollars(PRICES[DEFAULT_REGION]) / 2


def test_the_estimate_of_the_client_is_near_the_counted_costs(normal: thin_traffic.Usage) -> None:
    """The client's estimate is within a twentieth of the costs that the benchmark counts, for the same parts."""
    counted = sum(thin_traffic.dollars_per_million(normal, 4, 0.5).values())
    others = {"change events", "summary", "lists", "logs and metrics' lines"}
    estimated = sum(line.dollars for line in estimate(THIN_TRAFFIC).lines if line.part not in others)
    assert estimated == pytest.approx(counted, rel=0.05)
