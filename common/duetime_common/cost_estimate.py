"""Estimates the monthly cost of a workload offline, by multiplying counted writes and requests by the price table.

Tests assert the exact counts, which are listed on the reference page "What a task costs". Function durations on AWS
have not been measured, so the constants below that say "Assumed" are assumptions.
"""

from __future__ import annotations

from dataclasses import field, replace
from math import ceil
from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen
from duetime_common.limits import MAX_BATCH
from duetime_common.prices import DEFAULT_REGION, MILLION, PRICES, WORKER_MB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from duetime_common.prices import Prices

MONTH_DAYS = 30
MINUTE_SECONDS = 60
MONTH_SECONDS = MONTH_DAYS * 24 * 3_600
TICKS = MONTH_SECONDS // MINUTE_SECONDS
BATCH = 10
"""Maximum number of messages per SQS request, and per batch of a worker."""
LONGEST_SECONDS, LEAST_MB, MOST_MB = 900, 128, 10_240
"""Limits of Lambda functions (Source: AWS Lambda quotas)."""
STREAM_SECONDS, WATCHED_STREAM_SECONDS = 30, 5
"""Default batching windows for task changes, in seconds. The second, shorter window applies with a console, event bus
or quota."""
LONGEST_WINDOW_SECONDS = 300
"""Longest batching window of a stream (Source: AWS Lambda API Reference, "CreateEventSourceMapping")."""
LISTED_FROM = 1_000
"""Lists by type, state and end are kept for owners with more than this number of tasks."""
LISTS, LIST_BLOCK = 2, 45
"""Number of lists that contain a plain task (by type and by end), and number of tasks in the same list and batch that
share a write unit."""
ALIGNED_HOLD, DIRECT_HOLD = 0.11, 0.56
"""Average seconds that a single worker holds a message with precision `normal`: first for messages from the trigger,
then for messages from the API."""
EARLY_HOLD = 1.5
"""Average seconds that a single worker holds a message with precision `exact`."""
FEWEST_ALIGNED, MOST_ALIGNED = 2, 100
"""Minimum and maximum number of messages per minute for which the trigger sends each message at its best moment."""
STEPS = 10
"""Sending moments per second."""


class WorkloadError(ValueError):
    """A workload is invalid. The error names the field."""


@frozen
class Workload:
    """The tasks of a month, and how they are created and run.

    Attributes:
        tasks: number of one-time tasks per month, spread evenly.
        seconds: how long an attempt occupies its worker, in seconds.
        together: how many tasks are due at the same moment.
        per_request: number of tasks that one API request creates (1 to 100); 0 if tasks are created without requests,
            for example by schedules.
        ahead: whether tasks are created more than four minutes before they are due; otherwise the API sends their
            messages.
        precision: `normal`, `exact` or `relaxed`.
        memory_mb: memory of the worker function, in MB.
        retries: fraction of tasks with one retry.
        keys: whether requests have an idempotency key.
        heartbeats: number of heartbeats per task.
        extra_writes: additional write units per task: four with a unique key, two with a lock.
        transitions: number of Step Functions state transitions per task, for topologies.
        pulled: whether pull workers run the tasks.
        stream_seconds: batching window for task changes in seconds (`broadcast_batch_seconds`, at least 1).
        has_lists: whether lists of tasks by state, type and end are kept (`task_lists` above 0).
        has_summary: whether tasks are counted (`summary_spread` above 0).
        has_traces: whether X-Ray tracing is on (`xray`).
        region: region of the price table.
    """

    tasks: float
    seconds: float = 0.0
    together: int = 1
    per_request: int = 1
    ahead: bool = True
    precision: str = "normal"
    memory_mb: int = WORKER_MB
    retries: float = 0.0
    keys: bool = False
    heartbeats: float = 0.0
    extra_writes: float = 0.0
    transitions: float = 0.0
    pulled: bool = False
    stream_seconds: int = STREAM_SECONDS
    has_summary: bool = True
    has_lists: bool = True
    has_traces: bool = False
    region: str = DEFAULT_REGION

    def __post_init__(self) -> None:
        """Reject invalid values.

        Raises:
            WorkloadError: a field is invalid; the error names the field.
        """
        checks = {
            "tasks": self.tasks >= 0,
            "seconds": 0 <= self.seconds <= LONGEST_SECONDS,
            "together": self.together >= 1,
            "per_request": 0 <= self.per_request <= MAX_BATCH,
            "precision": self.precision in ("normal", "exact", "relaxed"),
            "memory_mb": LEAST_MB <= self.memory_mb <= MOST_MB,
            "retries": 0 <= self.retries <= 1,
            "heartbeats": self.heartbeats >= 0,
            "extra_writes": self.extra_writes >= 0,
            "stream_seconds": 1 <= self.stream_seconds <= LONGEST_WINDOW_SECONDS,
            "transitions": self.transitions >= 0,
            "region": self.region in PRICES,
        }
        for name, is_right in checks.items():
            if not is_right:
                known = f"; the price table has {', '.join(PRICES)}" if name == "region" else ""
                raise WorkloadError(f"{name}: {getattr(self, name)!r} is not allowed{known}")

    @property
    def attempts(self) -> float:
        """Number of first attempts and retries."""
        return self.tasks * (1 + self.retries)

    @property
    def deliveries(self) -> float:
        """Number of message batches received by worker functions or pull workers."""
        return self.attempts / min(BATCH, self.together)

    @property
    def batches(self) -> float:
        """Number of invocations of the worker function."""
        return 0.0 if self.pulled else self.deliveries

    @property
    def creations(self) -> float:
        """Number of API requests that create tasks."""
        return self.tasks / self.per_request if self.per_request else 0.0

    @property
    def requests(self) -> float:
        """Number of API requests.

        A pull worker sends one request per lease, per heartbeat and per completed attempt.
        """
        by_pull_workers = self.deliveries + self.attempts + self.tasks * self.heartbeats if self.pulled else 0.0
        return self.creations + by_pull_workers

    @property
    def minute(self) -> float:
        """Number of tasks per minute."""
        return self.tasks / TICKS

    @property
    def is_aligned(self) -> bool:
        """Whether the trigger sends each message at its best moment."""
        return self.ahead and self.precision == "normal" and FEWEST_ALIGNED <= self.minute <= MOST_ALIGNED

    @property
    def hold(self) -> float:
        """Average seconds that a worker holds a batch."""
        if self.precision == "relaxed":
            return 0.0
        if self.precision == "exact":
            return EARLY_HOLD
        return ALIGNED_HOLD if self.is_aligned else DIRECT_HOLD

    @property
    def sends(self) -> float:
        """Number of requests that send messages."""
        if not self.ahead:
            return self.tasks / min(BATCH, max(1, self.per_request)) + self.tasks * self.retries
        fullest = min(max(self.minute, self.together), BATCH)
        moments = STEPS * (1 - (1 - 1 / STEPS) ** (self.minute / self.together)) if self.is_aligned else 0
        return max(self.tasks / fullest, moments * TICKS) + self.tasks * self.retries


API_MB, TRIGGER_MB, BROADCAST_MB = 512, 1_024, 512
TASK_WRITES = 4
"""Write units per task for its record, lease and outcome, and for the entry in the owner's list."""
RETRY_WRITES = 2
SUMMARY_WRITES, SUMMARY_CHANGE_WRITES, SUMMARY_READS = 4, 0.03, 1
"""Write units per stream delivery for the counts of one minute, write units per change for a mark (which later changes
in the same minute rewrite), and read units per stream delivery for the current counts."""
WATCHER_READS = 0.5
"""Read units per stream delivery for the list of watchers."""
SWITCH_READS = 0.5
"""Read units per batch for the switches, which a worker reads at most every five seconds."""
OWN_SECONDS = 0.04
"""Assumed worker time per batch for claims, outcomes and message visibility, in seconds."""
API_SECONDS, API_TASK_SECONDS = 0.013, 0.002
"""Assumed duration of the API function per request, and per task in the request, in seconds."""
BROADCAST_SECONDS = 0.1
"""Assumed duration of the broadcast function per stream delivery, in seconds."""
LOG_BYTES, LOG_TASK_BYTES = 320, 12
"""Bytes in the metrics line for a worker's invocation, and additional bytes per task. Other functions log nothing about
an ordinary task."""
ACCESS_LOG_BYTES = 400
"""Assumed number of bytes per request in the API's access log."""
IDLE_TICK_WRITES, IDLE_TICK_READS = 2, 57
"""Write and read units of an idle tick with 16 shards. The tick reads each shard once strongly and five times
eventually consistently, and the shard count once."""
IDLE_POLLS, POLLED_QUEUES = MONTH_SECONDS // 20 * 5, 4
"""Monthly requests to an empty queue that invokes a function (five concurrent 20-second polls), and number of these
queues."""
IDLE_SCHEDULES = TICKS + TICKS // 5
"""Scheduled invocations per month: the tick every minute, and the recount of the summary every five minutes."""

ALARM_METRICS, IDLE_METRICS = 28, 1
"""Number of metrics for the alarms of `prod`, and number of metrics that an idle trigger writes."""
ALARM_METRIC_DOLLARS, METRIC_DOLLARS, SECRET_DOLLARS = 0.10, 0.30, 0.40
"""Assumed monthly prices of an alarm metric, another metric and a secret in all Regions (Source: CloudWatch and Secrets
Manager price lists, not compared)."""
IDLE_LOG_DOLLARS = 0.01
"""Monthly cost of an idle trigger's log lines, in dollars."""
STREAM_BATCH = 500
"""Maximum number of changes per stream delivery."""
_CHANGES = 3
"""Number of changes per task: created, started and ended."""
_MANY = 100
"""Quantities of at least this size are shown without a fraction."""


@frozen
class CostLine:
    """One line of the estimate.

    Attributes:
        part: the billed item.
        quantity: the billed quantity.
        unit: unit of the quantity.
        dollars: cost of this quantity.
        note: additional explanation.
    """

    part: str
    quantity: float
    unit: str
    dollars: float
    note: str = ""

    @property
    def use(self) -> str:
        """The quantity with its unit, as text."""
        number = f"{self.quantity:,.0f}" if self.quantity >= _MANY else f"{self.quantity:.3g}"
        return f"{number} {self.unit}{self.note and ', '}{self.note}"


@frozen
class CostEstimate:
    """Monthly cost of a workload.

    Attributes:
        lines: cost of the tasks, by billed item.
        idle: cost of the deployment without any task, excluding CloudWatch alarms, metrics and dashboard.
    """

    workload: Workload
    lines: list[CostLine] = field(default_factory=list)
    idle: float = 0.0

    @property
    def dollars(self) -> float:
        """Cost per month including the idle deployment, in dollars."""
        return self.idle + sum(line.dollars for line in self.lines)

    @property
    def per_million(self) -> float:
        """Cost per million tasks without the idle deployment, in dollars."""
        return sum(line.dollars for line in self.lines) / (self.workload.tasks or 1) * MILLION


THIN_TRAFFIC = Workload(MILLION)
"""A million tasks per month in the default deployment. One request creates each task, minutes before the task's own due
time."""
RELAXED_TRAFFIC = replace(THIN_TRAFFIC, precision="relaxed")
"""`THIN_TRAFFIC` with precision `relaxed`."""
FULL_BATCHES = Workload(MILLION, together=1_000, per_request=100)
"""A million tasks per month. Each request creates a hundred tasks, and a thousand tasks are due at the same moment."""


def estimate(workload: Workload) -> CostEstimate:
    """Estimates the monthly cost of a workload at its region's prices."""
    return CostEstimate(workload, lines_of([workload]), idle_month(PRICES[workload.region]))


def lines_of(workloads: Iterable[Workload]) -> list[CostLine]:
    """The combined cost of several workloads by billed item, without the idle deployment."""
    found: dict[str, CostLine] = {}
    for workload in workloads:
        prices = PRICES[workload.region]
        for line in (*_core(workload, prices), *_observability(workload, prices)):
            before = found.get(line.part)
            found[line.part] = line if before is None else _together(before, line)
    return list(found.values())


def _together(one: CostLine, other: CostLine) -> CostLine:
    note = one.note if one.note == other.note else ""
    return CostLine(one.part, one.quantity + other.quantity, one.unit, one.dollars + other.dollars, note)


def idle_month(prices: Prices) -> float:
    """Monthly cost of ticks, polls of empty queues and schedules without any task.

    Durations and CloudWatch are excluded.
    """
    ticks = TICKS * (IDLE_TICK_WRITES * prices.write_unit + IDLE_TICK_READS * prices.read_unit)
    polls = POLLED_QUEUES * IDLE_POLLS * prices.queue_request
    return ticks + polls + IDLE_SCHEDULES * (prices.scheduler_invocation + prices.function_request)


def watched_month() -> float:
    """Monthly cost of alarms, metrics, logs and the signing secret in the idle environment `prod`."""
    return ALARM_METRICS * ALARM_METRIC_DOLLARS + IDLE_METRICS * METRIC_DOLLARS + IDLE_LOG_DOLLARS + SECRET_DOLLARS


def _core(workload: Workload, prices: Prices) -> Iterator[CostLine]:
    """The cost of accepting, sending and running the tasks."""
    w = workload
    writes = w.tasks * (TASK_WRITES + RETRY_WRITES * w.retries + w.keys + w.heartbeats + w.extra_writes)
    yield CostLine("table writes", writes, "units", writes * prices.write_unit)
    reads = SWITCH_READS * w.batches + w.attempts * w.pulled
    yield CostLine("table reads", reads, "units", reads * prices.read_unit)
    # Each delivery is received and deleted. A worker function also extends each delivery's visibility once, and a pull
    # worker extends a leased message's visibility with each heartbeat.
    hidden = w.tasks * w.heartbeats if w.pulled else w.batches
    messages = w.sends + 2 * w.deliveries + hidden
    yield CostLine("queues", messages, "requests", messages * prices.queue_request)
    yield CostLine("worker, requests", w.batches, "requests", w.batches * prices.function_request)
    time = w.batches * (w.hold + OWN_SECONDS + w.seconds) * w.memory_mb / 1_024
    held = f"{w.hold:g} s of each batch held"
    yield CostLine("worker, duration", time, "GB-seconds", time * prices.gigabyte_second, held)
    waits = TICKS * _tick_wait(w) * TRIGGER_MB / 1_024
    yield CostLine("trigger, waiting to send", waits, "GB-seconds", waits * prices.gigabyte_second)
    api = w.requests * (prices.api_request + prices.function_request)
    yield CostLine("API, requests", w.requests, "requests", api)
    busy = (w.requests * API_SECONDS + w.tasks * API_TASK_SECONDS * (w.requests > 0)) * API_MB / 1_024
    yield CostLine("API, duration", busy, "GB-seconds", busy * prices.gigabyte_second)
    if w.transitions:
        moves = w.tasks * w.transitions
        yield CostLine("Step Functions", moves, "state transitions", moves * prices.state_transition)


def _tick_wait(workload: Workload) -> float:
    """Average seconds that a tick waits for best moments.

    The tick waits until the second-to-last of evenly distributed moments.
    """
    if not workload.is_aligned:
        return 0.0
    moments = workload.minute / workload.together
    return max(0.5, (moments - 1) / (moments + 1)) if workload.together > 1 else (moments - 1) / (moments + 1)


def _observability(workload: Workload, prices: Prices) -> Iterator[CostLine]:
    """The cost of publishing, counting, logging and tracing the tasks' changes."""
    deliveries = _stream_deliveries(workload)
    time = deliveries * BROADCAST_SECONDS * BROADCAST_MB / 1_024
    published = (
        deliveries * (prices.function_request + WATCHER_READS * prices.read_unit) + time * prices.gigabyte_second
    )
    yield CostLine("change events", deliveries, "deliveries of the table's stream", published)
    if workload.has_summary:
        # A delivery that spans several seconds occasionally contains changes from two minutes.
        minutes = 1 + (workload.stream_seconds / MINUTE_SECONDS if deliveries < _alone(workload) else 0)
        units = SUMMARY_WRITES * minutes * deliveries + SUMMARY_CHANGE_WRITES * _CHANGES * workload.tasks
        counted = units * prices.write_unit + SUMMARY_READS * minutes * deliveries * prices.read_unit
        yield CostLine("summary", units, "units", counted)
    if workload.has_lists and workload.tasks > LISTED_FROM:
        yield _lists(workload, prices)
    written = workload.batches * LOG_BYTES + workload.attempts * LOG_TASK_BYTES
    gigabytes = (written + workload.requests * ACCESS_LOG_BYTES) / 1e9
    yield CostLine("logs and metrics' lines", gigabytes, "GB", gigabytes * prices.log_gigabyte)
    if workload.has_traces:
        # X-Ray samples the first request of each second, and 5 % of the other requests (Source: AWS X-Ray Developer
        # Guide).
        traces = sum(_sampled(each) for each in (workload.requests, workload.batches, deliveries))
        yield CostLine("traces", traces, "recorded", traces * prices.trace)


def _lists(workload: Workload, prices: Prices) -> CostLine:
    """Cost of one owner's lists: shared items, entries for tasks that outlast a batch, and one read of each task."""
    batches = min(workload.tasks / workload.together, MONTH_SECONDS / workload.stream_seconds)
    shared = max(batches, workload.tasks / LIST_BLOCK)
    runs_longer = workload.seconds >= workload.stream_seconds
    units = LISTS * shared + (2 * workload.tasks if runs_longer else 0)
    read = (workload.tasks + _stream_deliveries(workload)) / 2
    return CostLine("lists", units, "units", units * prices.write_unit + read * prices.read_unit)


def _sampled(invocations: float) -> float:
    first = min(invocations, MONTH_SECONDS)
    return first + 0.05 * (invocations - first)


def _stream_deliveries(workload: Workload) -> float:
    """Number of deliveries from a stream with one shard, which delivers once per change or once per batching window."""
    full = ceil(workload.tasks * _CHANGES / STREAM_BATCH)
    return max(min(_alone(workload), MONTH_SECONDS / workload.stream_seconds), full)


def _alone(workload: Workload) -> float:
    """The number of deliveries if tasks that are created or run at different times never share a delivery."""
    runs = workload.tasks / workload.together
    return (workload.creations or runs) + runs * (1 if workload.seconds < workload.stream_seconds else 2)
