"""`duetime cost`: estimates from the price table, without a deployment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from duetime_client.cost_estimate import CostEstimate, estimate
from duetime_client.prices import PRICES
from duetime_client.workload import Workload, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

MILLION = 1_000_000
PLAIN = {"has_summary": False, "has_traces": False}


def part(found: CostEstimate, name: str) -> float:
    """The dollars of one part."""
    (line,) = (line for line in found.lines if line.part == name)
    return line.dollars


def test_writes_are_the_counted_ones_times_the_price() -> None:
    """Four units a task, two a retry, one a key and a heartbeat."""
    assert part(estimate(Workload(MILLION)), "table writes") == pytest.approx(2.5)
    dear = Workload(MILLION, retries=0.5, keys=True, heartbeats=2)
    assert part(estimate(dear), "table writes") == pytest.approx((4 + 1 + 1 + 2) * 0.625)


def test_full_batches_cost_at_most_three_and_a_half_dollars_a_million() -> None:
    """With requests of a hundred tasks; thin traffic costs more, and `relaxed` less than that."""
    full = estimate(Workload(MILLION, together=1_000, per_request=100, **PLAIN)).per_million
    thin = estimate(Workload(MILLION, **PLAIN)).per_million
    relaxed = estimate(Workload(MILLION, precision="relaxed", **PLAIN)).per_million
    assert full < 3.5 < relaxed < thin


def test_what_the_api_sends_is_held_longer_than_what_the_trigger_sends() -> None:
    """And the trigger does not wait for tasks that are due within its look-ahead."""
    soon, later = (estimate(Workload(MILLION, ahead=ahead)) for ahead in (False, True))
    assert part(soon, "worker, duration") > 2 * part(later, "worker, duration")
    assert part(soon, "trigger, waiting to send") == 0 < part(later, "trigger, waiting to send")


def test_x_ray_records_all_of_thin_traffic_and_a_twentieth_of_the_rest() -> None:
    """The first request of each second, and five of a hundred others."""
    thin, dense = estimate(Workload(MILLION)), estimate(Workload(1e10, together=1_000, per_request=100))
    assert part(thin, "traces") == pytest.approx(20.0)
    assert part(dense, "traces") / 1e10 * MILLION < 0.05


def test_no_tasks_cost_what_an_idle_deployment_does() -> None:
    """In each region, by its own prices."""
    found = estimate(Workload(0))
    assert found.dollars == found.idle == pytest.approx(1.50, abs=0.005)
    months = {region: estimate(Workload(MILLION, region=region)).dollars for region in PRICES}
    assert len(set(months.values())) == len(PRICES) == 3


@pytest.mark.parametrize(
    ("field", "value"), [("tasks", -1), ("per_request", 101), ("precision", "nano"), ("region", "mars"), ("retries", 2)]
)
def test_a_workload_that_cannot_be_is_rejected_by_its_field(duetime: Run, field: str, value: object) -> None:
    """By the model, and by the command with its usual status for a wrong option."""
    with pytest.raises(WorkloadError, match=f"{field}: "):
        Workload(**{"tasks": 1, field: value})  # type: ignore[arg-type]  # wrong on purpose
    tasks = str(value) if field == "tasks" else "1"
    more = () if field == "tasks" else (f"--{field.replace('_', '-')}", str(value))
    result = duetime("cost", "estimate", "--tasks", tasks, *more)
    assert result.exit_code == 2
    assert field in result.stderr


def test_the_command_shows_each_part_and_the_sum(duetime: Run) -> None:
    """In a table, and as JSON for programs; no deployment is asked."""
    arguments = ("cost", "estimate", "--tasks", "3000000", "--per-request", "100", "--no-traces")
    shown = duetime(*arguments).stdout
    told = json.loads(duetime(*arguments, "--json").stdout)
    assert told["workload"]["per_request"] == 100
    assert told["dollars"] == pytest.approx(told["idle_dollars"] + sum(line["dollars"] for line in told["lines"]))
    assert f"{told['dollars']:,.2f}" in shown
    assert all(line["part"] in shown for line in told["lines"])
    assert "traces" not in {line["part"] for line in told["lines"]}
