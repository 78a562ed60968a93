"""What a workload costs a month, estimated without AWS: counted writes and requests, times the price table.

What is counted exactly is asserted by tests (the reference page "What a task costs" lists them). How long functions run
on AWS has not been measured: the constants below that say so are assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from duetime_client.prices import PRICES
from duetime_client.workload import MONTH_SECONDS, TICKS, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.prices import Prices

API_MB, TRIGGER_MB, BROADCAST_MB = 512, 1_024, 512
TASK_WRITES = 4
"""Record, lease, outcome, and the place in the owner's list."""
RETRY_WRITES = 2
SWITCH_READS = 0.5
"""Of a batch: a worker reads the switches every five seconds at most."""
OWN_SECONDS = 0.04
"""Assumed: of a worker, for its claim, its outcome and the visibility of its messages."""
API_SECONDS, API_TASK_SECONDS = 0.013, 0.002
"""Assumed: of the API's function, for a request, and for each task in it."""
BROADCAST_SECONDS = 0.1
"""Assumed: for a delivery of the table's stream."""
LOG_BYTES = 450
"""Of an invocation: one line of metrics, as long as that of a worker."""
IDLE_TICK_WRITES, IDLE_TICK_READS = 2, 64
IDLE_POLLS, POLLED_QUEUES = MONTH_SECONDS // 20 * 5, 4
"""Requests to an empty queue that invokes a function: five polls of 20 seconds side by side."""
IDLE_SCHEDULES = TICKS + TICKS // 5
"""The tick, and the recount of the summary every five minutes."""


@dataclass(frozen=True, slots=True)
class CostLine:
    """A part of the bill.

    Attributes:
        part: what is paid for.
        use: how much of it, in words.
        dollars: a month.
    """

    part: str
    use: str
    dollars: float


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a workload costs a month.

    Attributes:
        lines: what its tasks cost, part by part.
        idle: what the deployment costs without any task, without CloudWatch's alarms, metrics and dashboard.
    """

    workload: Workload
    lines: list[CostLine] = field(default_factory=list)
    idle: float = 0.0

    @property
    def dollars(self) -> float:
        """A month, the idle deployment included."""
        return self.idle + sum(line.dollars for line in self.lines)

    @property
    def per_million(self) -> float:
        """A million of its tasks, without the idle deployment."""
        return sum(line.dollars for line in self.lines) / (self.workload.tasks or 1) * 1_000_000


def estimate(workload: Workload) -> CostEstimate:
    """What a workload costs a month, by the prices of its region."""
    prices = PRICES[workload.region]
    lines = [*_core(workload, prices), *_observability(workload, prices)]
    return CostEstimate(workload, lines, idle_month(prices))


def idle_month(prices: Prices) -> float:
    """A month without any task: ticks, polls of empty queues, schedules. Durations and CloudWatch are left out."""
    ticks = TICKS * (IDLE_TICK_WRITES * prices.write_unit + IDLE_TICK_READS * prices.read_unit)
    polls = POLLED_QUEUES * IDLE_POLLS * prices.queue_request
    return ticks + polls + IDLE_SCHEDULES * (prices.scheduler_invocation + prices.function_request)


def _core(workload: Workload, prices: Prices) -> Iterator[CostLine]:
    """What it takes to accept, send and run the tasks."""
    w = workload
    writes = w.tasks * (TASK_WRITES + RETRY_WRITES * w.retries + w.keys + w.heartbeats)
    yield CostLine("table writes", f"{writes:,.0f} units", writes * prices.write_unit)
    reads = SWITCH_READS * w.batches
    yield CostLine("table reads", f"{reads:,.0f} units", reads * prices.read_unit)
    messages = w.sends + 3 * w.batches
    yield CostLine("queues", f"{messages:,.0f} requests", messages * prices.queue_request)
    yield CostLine("worker, requests", f"{w.batches:,.0f}", w.batches * prices.function_request)
    time = w.batches * (w.hold + OWN_SECONDS + w.seconds) * w.memory_mb / 1_024
    used = f"{time:,.0f} GB-seconds, {w.hold:g} s of each batch held"
    yield CostLine("worker, duration", used, time * prices.gigabyte_second)
    waits = TICKS * _tick_wait(w) * TRIGGER_MB / 1_024
    yield CostLine("trigger, waiting to send", f"{waits:,.0f} GB-seconds", waits * prices.gigabyte_second)
    api = w.requests * (prices.api_request + prices.function_request)
    yield CostLine("API, requests", f"{w.requests:,.0f}", api)
    busy = (w.requests * API_SECONDS + w.tasks * API_TASK_SECONDS * (w.requests > 0)) * API_MB / 1_024
    yield CostLine("API, duration", f"{busy:,.0f} GB-seconds", busy * prices.gigabyte_second)


def _tick_wait(workload: Workload) -> float:
    """Seconds that a tick waits for the best moments, on average: until the last but one of so many even chances."""
    if not workload.is_aligned:
        return 0.0
    moments = workload.minute / workload.together
    return max(0.5, (moments - 1) / (moments + 1)) if workload.together > 1 else (moments - 1) / (moments + 1)


def _observability(workload: Workload, prices: Prices) -> Iterator[CostLine]:
    """What it takes to count, log and trace them."""
    deliveries = _deliveries(workload) if workload.has_summary else 0.0
    if workload.has_summary:
        units = 4 * deliveries
        time = deliveries * BROADCAST_SECONDS * BROADCAST_MB / 1_024
        dollars = units * prices.write_unit + deliveries * prices.function_request + time * prices.gigabyte_second
        yield CostLine("summary", f"{deliveries:,.0f} deliveries, {units:,.0f} units", dollars)
    invocations = workload.requests + workload.batches + deliveries
    gigabytes = invocations * LOG_BYTES / 1e9
    yield CostLine("logs and metrics' lines", f"{gigabytes:,.2f} GB", gigabytes * prices.log_gigabyte)
    if workload.has_traces:
        # X-Ray takes the first of each second, and a twentieth of the others (Source: AWS X-Ray Developer Guide).
        traces = sum(_sampled(each) for each in (workload.requests, workload.batches, deliveries))
        yield CostLine("traces", f"{traces:,.0f} recorded", traces * prices.trace)


def _sampled(invocations: float) -> float:
    first = min(invocations, MONTH_SECONDS)
    return first + 0.05 * (invocations - first)


def _deliveries(workload: Workload) -> float:
    """Deliveries of the table's stream: a change alone, or those of a second together; of one shard."""
    alone = workload.tasks * (2 if workload.seconds < 1 else 3)
    full = ceil(workload.tasks * 3 / 500)
    return max(min(alone, 2 * MONTH_SECONDS), full)
