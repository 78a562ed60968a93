"""Calculates figures from metrics: service levels, and the cost of a million tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import ON_TIME
from duetime.domain.tasks.costs import ASSUMED
from duetime.domain.times import SECOND
from duetime_cdk.metric_sources import Source, api, everywhere, function_metric, queue, table

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment

QUEUES = ("high", "normal", "low")
MESSAGE_REQUESTS = 0.4
"""SQS requests per message, if each message is sent, received, hidden and deleted in full batches of ten."""
ON_TIME_RANK = f"PR(:{ON_TIME})"
"""The percentage of lateness values that count as on time (Source: Amazon CloudWatch User Guide, "CloudWatch statistics
definitions"; alarms also allow this statistic: Amazon CloudWatch API Reference, "PutMetricAlarm",
ExtendedStatistic)."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A figure calculated from metrics.

    Attributes:
        label: the figure's name in the panel.
        formula: CloudWatch's metric math over the names of `sources`.
        sources: each metric by its name in the formula.
    """

    label: str
    formula: str
    sources: dict[str, Source]


def on_time() -> Expression:
    """The share of attempts that started on time, in percent."""
    sources = {
        f"{short}{number}": source
        for short, statistic in (("p", ON_TIME_RANK), ("n", "SampleCount"))
        for number, source in enumerate(everywhere("lateness", statistic))
    }
    formula = "(FILL(p0, 0) * FILL(n0, 0) + FILL(p1, 0) * FILL(n1, 0)) / (FILL(n0, 0) + FILL(n1, 0))"
    return Expression(f"started within {ON_TIME // SECOND} s", formula, sources)


def accepted() -> Expression:
    """The share of requests without a server error, in percent."""
    sources = {"f": api("5xx", "Sum", "server errors"), "n": api("Count", "Sum", "requests")}
    return Expression("accepted", "100 * (1 - FILL(f, 0) / n)", sources)


def dollars_per_million(environment: Environment) -> Expression:
    """The current cost of a million tasks, at the prices in `docs/reference/costs.md`."""
    indexes = ["", *(index.name for index in schema.INDEXES)]
    writes = {f"w{n}": table("ConsumedWriteCapacityUnits", "Sum", "writes", each) for n, each in enumerate(indexes)}
    reads = {f"r{n}": table("ConsumedReadCapacityUnits", "Sum", "reads", each) for n, each in enumerate(indexes)}
    messages = {f"q{n}": queue(each, "NumberOfMessagesSent", "Sum", "messages") for n, each in enumerate(QUEUES)}
    deployed = environment.functions
    durations = {f"d{n}": function_metric(name, "Duration", "Sum") for n, name in enumerate(deployed)}
    starts = {f"i{n}": function_metric(name, "Invocations", "Sum") for n, name in enumerate(deployed)}
    ends = ("tasks_succeeded", "tasks_failed", "tasks_cancelled", "tasks_rolled_back")
    tasks = {f"t{n}": each for n, each in enumerate(source for name in ends for source in everywhere(name, "Sum"))}
    gigabytes = {f"d{n}": environment.size_of(name).memory_mb / 1024 for n, name in enumerate(deployed)}
    time = " + ".join(f"FILL({name}, 0) * {size:g}" for name, size in gigabytes.items())
    cost = (
        f"({_total(writes)}) * {ASSUMED.write_unit:.10f} + ({_total(reads)}) * {ASSUMED.read_unit:.10f}"
        f" + ({_total(messages)}) * {MESSAGE_REQUESTS * ASSUMED.queue_request:.10f}"
        f" + ({_total(starts)}) * {ASSUMED.function_request:.10f}"
        f" + ({time}) * {ASSUMED.gigabyte_second / SECOND:.14f}"
    )
    sources = {**writes, **reads, **messages, **durations, **starts, **tasks}
    return Expression("dollars per million tasks", f"1000000 * ({cost}) / ({_total(tasks)})", sources)


def _total(sources: dict[str, Source]) -> str:
    return " + ".join(f"FILL({name}, 0)" for name in sources)
