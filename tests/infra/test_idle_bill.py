from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from duetime_client.cost_estimate import idle_month
from duetime_client.prices import DEFAULT_REGION, PRICES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.synthesis import Synthesis

DOCS = Path(__file__).parents[2] / "docs"
MINUTES = 30 * 24 * 60
POLLS_A_MINUTE = 15
"""Of Lambda on one empty queue: five at once, of 20 seconds. The page has the sources."""


def rows() -> dict[str, str]:
    """The table of an idle deployment: the parts, and what they use."""
    section = (
        (DOCS / "reference/costs.md").read_text("utf-8").partition("## An idle deployment")[2].partition("\n## ")[0]
    )
    cells = [line.split("|") for line in section.splitlines() if line.startswith("| ")]
    return {part.strip(): f"{use.strip()} = {price.strip()}" for _, part, use, price, *_ in cells}


def spaced(number: int) -> str:
    """A number as the page writes it."""
    return f"{number:,}".replace(",", " ")


def test_the_idle_bill_counts_what_a_deployment_has(synthesis_of: Callable[[str], Synthesis]) -> None:
    """Queues that Lambda polls, schedules, alarms and what they watch, secrets: as many as `prod`'s template has."""
    template = synthesis_of("prod")
    mappings = template.properties("AWS::Lambda::EventSourceMapping").values()
    polled = sum("StartingPosition" not in mapping for mapping in mappings)
    alarms = template.properties("AWS::CloudWatch::Alarm").values()
    metrics = sum(sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1 for alarm in alarms)
    composite = len(template.of_type("AWS::CloudWatch::CompositeAlarm"))
    rates = [each["ScheduleExpression"] for each in template.properties("AWS::Scheduler::Schedule").values()]
    invocations = sum(MINUTES // int(re.findall(r"\d+", rate)[0]) for rate in rates)
    bill = rows()
    polls = MINUTES * POLLS_A_MINUTE
    assert bill["polling of empty queues"].startswith(f"{polled} queues, {spaced(polls)} requests each")
    assert bill["polling of empty queues"].endswith(f"= {polled * polls * 0.40e-6:.2f}")
    assert bill["EventBridge Scheduler"].startswith(f"{len(rates)} schedules, {spaced(invocations)} invocations")
    assert bill["alarms"].startswith(f"{metrics} metrics of {len(alarms)} alarms at $0.10, {composite} composite")
    assert bill["alarms"].endswith(f"= {metrics * 0.10 + composite * 0.50:.2f}")
    assert len(template.of_type("AWS::SecretsManager::Secret")) == 1


def test_the_plan_of_costs_takes_the_idle_bill_from_its_table() -> None:
    """Its total is the sum of the rows above it, what `cost estimate` adds, and what the examples begin with."""
    bill = rows()
    total = re.findall(r"\*\*([\d.]+)\*\*", bill["total, without Lambda's duration"])[0]
    before = list(bill.values())[1 : list(bill).index("total, without Lambda's duration")]
    assert round(sum(float(row.rpartition("= ")[2]) for row in before if "---" not in row), 2) == float(total)
    assert f"{idle_month(PRICES[DEFAULT_REGION]):.2f}" == total
    assert f"IDLE = {total} " in (DOCS / "how-to/plan-capacity-and-cost.md").read_text("utf-8")
