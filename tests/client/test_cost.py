"""Tests that `duetime cost` estimates costs from the price table without a deployment, and sums the API's estimates."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime_common.cost_estimate import FULL_BATCHES, THIN_TRAFFIC, CostEstimate, Workload, WorkloadError, estimate
from duetime_common.prices import PRICES
from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

MILLION = 1_000_000
SCHEDULE = {"created_at": "2026-11-21T10:00:00Z", "task": {"type": "report"}, "cron": "0 1 * * *", "version": 1}
PLAIN = Workload(MILLION, has_summary=False, has_lists=False)


def part(found: CostEstimate, name: str) -> float:
    """Return one part of an estimate in dollars."""
    (line,) = (line for line in found.lines if line.part == name)
    return line.dollars


def test_writes_are_priced_by_their_write_units() -> None:
    """A task costs four write units, a retry costs two, and an idempotency key and a heartbeat cost one each."""
    assert part(estimate(Workload(MILLION)), "table writes") == pytest.approx(2.5)
    dear = Workload(MILLION, retries=0.5, keys=True, heartbeats=2)
    assert part(estimate(dear), "table writes") == pytest.approx((4 + 1 + 1 + 2) * 0.625)


def test_a_million_tasks_in_full_batches_cost_at_most_3_50_dollars() -> None:
    """A million tasks in full batches cost at most $3.50 in the default deployment; sparse traffic costs more."""
    full, thin = estimate(FULL_BATCHES).per_million, estimate(THIN_TRAFFIC).per_million
    relaxed = estimate(replace(THIN_TRAFFIC, precision="relaxed")).per_million
    assert full < 3.5 < relaxed < 6.75 < thin < 8


def test_a_longer_stream_window_costs_less_in_sparse_traffic() -> None:
    """In sparse traffic, a longer stream window saves deliveries and transactions."""
    windows = [estimate(Workload(MILLION, stream_seconds=seconds)) for seconds in (1, 5, 30)]
    assert [round(part(each, "change events") + part(each, "summary"), 2) for each in windows] == [7.16, 2.01, 0.48]
    without = estimate(PLAIN)
    assert part(without, "change events") == part(windows[2], "change events")
    assert "summary" not in {line.part for line in without.lines}


def test_workers_hold_messages_of_the_api_longer_than_of_the_trigger() -> None:
    """Workers hold messages from the API longer than those from the trigger, which waits only for tasks due later."""
    soon, later = (estimate(Workload(MILLION, ahead=ahead)) for ahead in (False, True))
    assert part(soon, "worker, duration") > 2 * part(later, "worker, duration")
    assert part(soon, "trigger, waiting to send") == 0 < part(later, "trigger, waiting to send")


def test_x_ray_records_one_request_per_second_and_5_percent_more() -> None:
    """X-Ray records the first request of each second and 5% of the other requests."""
    thin = estimate(Workload(MILLION, has_traces=True))
    dense = estimate(Workload(1e10, together=1_000, per_request=100, has_traces=True))
    assert part(thin, "traces") == pytest.approx((2 + 0.0864) * 5)
    assert part(dense, "traces") / 1e10 * MILLION < 0.05


def test_without_tasks_a_deployment_costs_the_idle_price() -> None:
    """Without tasks, a deployment costs as much as an idle deployment, and each Region has different prices."""
    found = estimate(Workload(0))
    assert found.dollars == found.idle == pytest.approx(1.46, abs=0.005)
    months = {region: estimate(Workload(MILLION, region=region)).dollars for region in PRICES}
    assert len(set(months.values())) == len(PRICES) == 3


@pytest.mark.parametrize(
    ("field", "value"), [("tasks", -1), ("per_request", 101), ("precision", "nano"), ("region", "mars"), ("retries", 2)]
)
def test_an_impossible_workload_is_rejected_with_its_field(duetime: Run, field: str, value: object) -> None:
    """The model rejects an impossible workload and names its field, and the command exits with code 2."""
    with pytest.raises(WorkloadError, match=f"{field}: "):
        Workload(**{"tasks": 1, field: value})  # type: ignore[arg-type]  # wrong on purpose
    tasks = str(value) if field == "tasks" else "1"
    more = () if field == "tasks" else (f"--{field.replace('_', '-')}", str(value))
    result = duetime("cost", "estimate", "--tasks", tasks, *more)
    assert result.exit_code == 2
    assert field in result.stderr


def test_the_cost_command_prints_each_part_and_the_sum(duetime: Run) -> None:
    """The command prints the estimate as a table or as JSON, and needs no deployment."""
    arguments = ("cost", "estimate", "--tasks", "3000000", "--per-request", "100")
    shown = duetime(*arguments).stdout
    told = json.loads(duetime(*arguments, "--json").stdout)
    assert told["workload"]["per_request"] == 100
    assert told["dollars"] == pytest.approx(told["idle_dollars"] + sum(line["dollars"] for line in told["lines"]))
    assert f"{told['dollars']:,.2f}" in shown
    assert all(line["part"] in shown for line in told["lines"])
    assert "traces" not in {line["part"] for line in told["lines"]}


ESTIMATE = {
    "dollars": 0.0000046,
    "tasks": 720,
    "days": 30,
    "lines": [{"part": "table writes", "quantity": 4320, "unit": "units", "dollars": 0.0000046}],
    "left_out": ["the items of a map besides the first"],
    "region": "eu-west-1",
    "prices_as_of": "2026-11-21",
}


@pytest.mark.parametrize("what", ["tasks", "schedules"])
def test_a_creation_shows_its_estimate(duetime: Run, deployment: Deployment, what: str) -> None:
    """With `--estimate`, the estimate is printed part by part below the created task, or as the API's JSON."""
    created = listed() if what == "tasks" else {"name": "nightly", "state": "active", **SCHEDULE}
    arguments = (
        what,
        "create",
        *(("nightly", "report", "--cron", "0 1 * * *") if what == "schedules" else ("report",)),
    )
    for more in ((), ("--estimate",), ("--estimate", "--json")):
        answer = created if not more else {**created, "estimate": ESTIMATE}
        deployment.scripted.append(Answer(201, answer))
        shown = duetime(*arguments, *more).stdout
        assert deployment.received[-1].query.get("estimate") == (["1"] if more else None)
        if more == ("--estimate",):
            assert ["table", "writes", "4,320", "units", "0.00000460"] in [line.split() for line in shown.splitlines()]
            assert "720 tasks in 30 days" in shown
            assert "eu-west-1 as assumed on 2026-11-21" in " ".join(shown.split())
        elif more:
            assert json.loads(shown)["estimate"] == ESTIMATE
        else:
            assert "table writes" not in shown


@pytest.mark.parametrize("other", [("--wait",), ("--file", "-")])
def test_the_estimate_option_is_rejected_where_it_does_not_apply(
    duetime: Run, deployment: Deployment, other: tuple[str, ...]
) -> None:
    """If `--estimate` does not apply to the command line, it is refused and nothing is sent."""
    result = duetime("tasks", "create", "report", "--estimate", *other)
    assert result.exit_code == 2
    assert "--estimate" in result.stderr
    assert not deployment.received


def test_sparse_tasks_cost_at_most_one_delivery_each(duetime: Run) -> None:
    """Each sparse task costs at most one delivery, and concurrent tasks share a delivery for their changes."""
    one = estimate(Workload(1))
    assert part(one, "queues") == pytest.approx(4 * 0.4e-6)
    alone, together = (estimate(Workload(100, together=n, per_request=n)) for n in (1, 100))
    assert part(alone, "change events") == pytest.approx(100 * part(together, "change events"))
    assert part(alone, "summary") > 40 * part(together, "summary")
    told = json.loads(duetime("cost", "estimate", "--tasks", "1", "--pulled", "--extra-writes", "2", "--json").stdout)
    lines = {line["part"]: line["quantity"] for line in told["lines"]}
    assert (lines["table writes"], lines["API, requests"], lines["worker, requests"]) == (6, 3, 0)


def listed(**fields: object) -> dict[str, object]:
    """Return a task in the form that a list has."""
    times = dict.fromkeys(("due_at", "created_at"), "2026-11-21T10:00:00Z")
    plain = {"id": "01M7YNDJ1G001YV6ER3QGDA636", "type": "report", "state": "succeeded", "attempt": 1, **times}
    return {**plain, "cost_dollars": 0.000004, **fields}


RAN = [
    listed(),
    listed(type="mail", tags={"team": "dba"}, cost_dollars=0.000003),
    listed(attempt=3, schedule={"name": "nightly"}, tags={"team": "web"}, cost_dollars=0.00002),
    listed(state="scheduled", attempt=0, cost_dollars=None),
]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("type", [("report", 3, 4, 24), ("mail", 1, 1, 3)]),
        ("schedule", [("nightly", 1, 3, 20), (None, 3, 2, 7)]),
        ("tag:team", [("web", 1, 3, 20), (None, 2, 1, 4), ("dba", 1, 1, 3)]),
        ("state", [("succeeded", 3, 5, 27), ("scheduled", 1, 0, 0)]),
    ],
)
def test_costs_of_tasks_are_summed_by_key(
    duetime: Run, deployment: Deployment, by: str, expected: list[tuple[str | None, int, int, int]]
) -> None:
    """The costs of all pages are added up by the given key; tasks without the key form a group."""
    pages = [{"tasks": RAN[:2], "next_token": "more"}, {"tasks": RAN[2:], "next_token": None}]
    deployment.scripted += [Answer(200, page) for page in pages]
    found = json.loads(duetime("cost", "sum", "--by", by, "--due-after", "2026-11-01T00:00Z", "--json").stdout)
    assert [(each["name"], each["tasks"], each["attempts"], round(each["dollars"] * 1e6)) for each in found] == expected
    assert all(each.query["due_after"][0].startswith("2026-11-01") for each in deployment.received)


def test_sums_of_costs_are_printed_as_a_table(duetime: Run, deployment: Deployment) -> None:
    """The table has a row per group and a total; an unknown key is rejected before any request."""
    deployment.scripted.append(Answer(200, {"tasks": RAN, "next_token": None}))
    shown = duetime("cost", "sum").stdout
    assert ["report", "3", "4", "0.000024", "8.00"] in [line.split() for line in shown.splitlines()]
    assert "0.000027 dollars in all" in shown
    result = duetime("cost", "sum", "--by", "color")
    assert result.exit_code == 2
    assert "color" in result.stderr
    assert len(deployment.received) == 1
