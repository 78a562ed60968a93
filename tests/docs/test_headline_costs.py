"""Tests that the pages state the costs that the estimator computes for a million tasks in the default deployment."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from duetime_common.cost_estimate import FULL_BATCHES, THIN_TRAFFIC, Workload, estimate

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/comparison.md",
    "docs/migrations/eventbridge-scheduler.md",
    "docs/reference/costs.md",
)
THIN, FULL = (f"${estimate(each).per_million:.2f}" for each in (THIN_TRAFFIC, FULL_BATCHES))


@pytest.mark.parametrize("page", PAGES)
def test_the_headline_costs_equal_the_estimate(page: str) -> None:
    """Both costs, for sparse traffic and for full batches, follow from the default settings."""
    text = (ROOT / page).read_text("utf-8")
    assert THIN in text
    assert FULL in text


@pytest.mark.parametrize(
    ("example", "workload"),
    [
        ("a team's", Workload(3_000, seconds=2)),
        ("a shop:", Workload(3_000_000, seconds=0.5, together=5, per_request=100, retries=0.02)),
        ("10 million", Workload(300_000_000, seconds=0.2, together=10, per_request=100)),
    ],
)
def test_the_worked_examples_equal_the_estimate(example: str, workload: Workload) -> None:
    """The row of each example has its workload's number of tasks and cost in dollars."""
    page = (
        (ROOT / "docs/how-to/plan-capacity-and-cost.md").read_text("utf-8").translate({ord(" "): None, ord(","): None})
    )
    (row,) = re.findall(rf"^\|{re.escape(example.replace(' ', ''))}.*\|([\d]+)\|([\d.]+)\|$", page, re.MULTILINE)
    dollars = estimate(workload).dollars
    assert int(row[0]) == workload.tasks
    assert float(row[1]) == pytest.approx(dollars, abs=0.005 if dollars < 1000 else 0.5)


@pytest.mark.parametrize("seconds", [30, 5, 2, 1])
def test_the_price_of_a_shorter_stream_window_equals_the_estimate(seconds: int) -> None:
    """The page has a line for each stream window, with sparse traffic and with a hundred times as much traffic."""
    page = (ROOT / "docs/decisions/history-and-lists.md").read_text("utf-8")
    workloads = (replace(THIN_TRAFFIC, tasks=tasks, stream_seconds=seconds) for tasks in (1_000_000, 100_000_000))
    dollars = " | ".join(f"{estimate(each).per_million:.2f}" for each in workloads)
    assert re.search(rf"^\| {seconds}( \(.*\))? \| {re.escape(dollars)} \|$", page, re.MULTILINE), dollars


def test_headline_costs_are_only_on_tested_pages() -> None:
    """The cost of a million tasks is stated only on pages that are tested or that compare designs."""
    told = re.compile(r"\$[0-9.]+ (?:for )?a million (?:small )?tasks|million (?:small )?tasks cost \$")
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
        if told.search(" ".join(path.read_text("utf-8").split()))
    }
    assert found <= {*PAGES, "docs/decisions/change-stream.md", "docs/decisions/tracing.md"}
