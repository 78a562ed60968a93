from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from duetime.environment_variables import Variable
from duetime_common.cost_estimate import (
    ALARM_METRICS,
    API_MB,
    BROADCAST_MB,
    STREAM_BATCH,
    TRIGGER_MB,
    Workload,
    idle_month,
    watched_month,
)
from duetime_common.prices import DEFAULT_REGION, PRICES
from infra.environments import environment_named
from tests.infra.conftest import CLOUD
from tests.infra.synthesis import Synthesis

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_cdk.layers.build import Layers

DOCS = Path(__file__).parents[2] / "docs"
MINUTES = 30 * 24 * 60
_WATCHED = ("alarms", "metrics", "logs", "a secret, which signs callbacks")
POLLS_A_MINUTE = 15
"""How often Lambda polls an empty queue: five pollers wait for 20 seconds each. The page has the sources."""


def rows() -> dict[str, str]:
    """Return the usage and price of each part in the page's table for an idle deployment."""
    section = (
        (DOCS / "reference/costs.md").read_text("utf-8").partition("## An idle deployment")[2].partition("\n## ")[0]
    )
    cells = [line.split("|") for line in section.splitlines() if line.startswith("| ")]
    return {part.strip(): f"{use.strip()} = {price.strip()}" for _, part, use, price, *_ in cells}


def spaced(number: int) -> str:
    """Return a number as the page writes it."""
    return f"{number:,}"


def test_the_idle_bill_counts_the_resources_of_a_deployment(synthesis_of: Callable[[str], Synthesis]) -> None:
    """The page has the numbers in `prod`'s template: polled queues, schedules, alarms, their metrics, and secrets."""
    template = synthesis_of("prod")
    mappings = template.properties("AWS::Lambda::EventSourceMapping").values()
    polled = sum("StartingPosition" not in mapping for mapping in mappings)
    alarms = template.properties("AWS::CloudWatch::Alarm").values()
    metrics = sum(sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1 for alarm in alarms)
    rates = [each["ScheduleExpression"] for each in template.properties("AWS::Scheduler::Schedule").values()]
    invocations = sum(MINUTES // int(re.findall(r"\d+", rate)[0]) for rate in rates)
    bill = rows()
    polls = MINUTES * POLLS_A_MINUTE
    assert bill["polling of empty queues"].startswith(f"{polled} queues, {spaced(polls)} requests each")
    assert bill["polling of empty queues"].endswith(f"= {polled * polls * 0.40e-6:.2f}")
    assert bill["EventBridge Scheduler"].startswith(f"{len(rates)} schedules, {spaced(invocations)} invocations")
    assert bill["alarms"].startswith(f"{metrics} metrics of {len(alarms)} alarms at $0.10")
    assert bill["alarms"].endswith(f"= {metrics * 0.10:.2f}")
    assert not template.of_type("AWS::CloudWatch::CompositeAlarm")
    assert metrics == ALARM_METRICS
    assert len(template.of_type("AWS::SecretsManager::Secret")) == 1


def test_the_cost_of_monitoring_is_the_sum_of_its_rows() -> None:
    """The estimator's cost of monitoring is the sum of the page's rows for alarms, metrics, logs and the secret."""
    bill = rows()
    watched = [float(bill[part].rpartition("= ")[2]) for part in _WATCHED]
    assert round(sum(watched), 2) == round(watched_month(), 2)


def test_the_cost_estimate_uses_the_idle_total_of_the_page() -> None:
    """The idle total is the sum of the rows, and the estimator and the page about planning use it."""
    bill = rows()
    total = re.findall(r"\*\*([\d.]+)\*\*", bill["total, without Lambda's duration"])[0]
    before = list(bill.values())[1 : list(bill).index("total, without Lambda's duration")]
    assert round(sum(float(row.rpartition("= ")[2]) for row in before if "---" not in row), 2) == float(total)
    assert f"{idle_month(PRICES[DEFAULT_REGION]):.2f}" == total
    assert f"| idle | 0 | {total} |" in (DOCS / "how-to/plan-capacity-and-cost.md").read_text("utf-8")


@pytest.mark.parametrize("name", CLOUD)
def test_an_estimate_assumes_the_default_settings_of_a_deployment(
    synthesis_of: Callable[[str], Synthesis], name: str
) -> None:
    """The estimate's stream window, summary, traces, precision and memory match each cloud environment's template."""
    template, assumed = synthesis_of(name), Workload(1)
    (stream,) = (
        each
        for each in template.properties("AWS::Lambda::EventSourceMapping").values()
        if "ParallelizationFactor" in each
    )
    functions = template.functions()
    (machine,) = template.properties("AWS::StepFunctions::StateMachine").values()
    variables = functions["api"]["Environment"]["Variables"]
    assert stream["MaximumBatchingWindowInSeconds"] == assumed.stream_seconds
    assert stream["BatchSize"] == STREAM_BATCH
    assert (variables[Variable.SUMMARY_SPREAD.value] != "0") == assumed.has_summary
    assert (variables[Variable.TASK_LISTS.value] != "0") == assumed.has_lists
    assert variables[Variable.PRECISION.value] == assumed.precision
    modes = {each.get("TracingConfig", {}).get("Mode", "PassThrough") for each in functions.values()}
    assert modes == {"Active" if assumed.has_traces else "PassThrough"}
    assert machine["TracingConfiguration"]["Enabled"] == assumed.has_traces
    sizes = {"worker": assumed.memory_mb, "api": API_MB, "trigger": TRIGGER_MB, "broadcast": BROADCAST_MB}
    assert {function: functions[function]["MemorySize"] for function in sizes} == sizes


def test_the_tracing_setting_applies_to_all_functions_and_the_state_machine(layers: Layers, tmp_path: Path) -> None:
    """With `xray`, each function and the topologies' state machine are traced."""
    traced = Synthesis(replace(environment_named("dev"), xray=True), layers, tmp_path)
    assert {each["TracingConfig"]["Mode"] for each in traced.functions().values()} == {"Active"}
    (machine,) = traced.properties("AWS::StepFunctions::StateMachine").values()
    assert machine["TracingConfiguration"] == {"Enabled": True}
