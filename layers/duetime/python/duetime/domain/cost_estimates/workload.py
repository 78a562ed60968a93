"""The workload of a month, from which costs are estimated."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.domain.limits import MAX_BATCH
from duetime.domain.prices import DEFAULT_REGION, PRICES, WORKER_MB

MONTH_DAYS = 30
MINUTE_SECONDS = 60
MONTH_SECONDS = MONTH_DAYS * 24 * 3_600
TICKS = MONTH_SECONDS // MINUTE_SECONDS
BATCH = 10
"""Maximum messages per SQS request and per batch of a worker."""
LONGEST_SECONDS, LEAST_MB, MOST_MB = 900, 128, 10_240
"""Limits of Lambda functions (Source: AWS Lambda quotas)."""
STREAM_SECONDS = 5
"""Default time for which a deployment batches changes of tasks, in seconds."""
LONGEST_WINDOW_SECONDS = 300
"""Longest batching window of a stream (Source: AWS Lambda API Reference, "CreateEventSourceMapping")."""
ALIGNED_HOLD, DIRECT_HOLD = 0.20, 0.65
"""Average seconds that a lone worker holds a message of precision `normal`: sent by the trigger, or by the API."""
EARLY_HOLD = 1.5
"""The same of precision `exact`."""
FEWEST_ALIGNED, MOST_ALIGNED = 2, 100
"""Number of messages per minute for which the trigger sends each at its best moment."""
STEPS = 10
"""Sending moments per second."""


class WorkloadError(ValueError):
    """A workload is invalid; names the field."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The tasks of a month.

    Attributes:
        tasks: one-time tasks a month, spread evenly.
        seconds: how long an attempt occupies its worker, in seconds.
        together: how many tasks are due at the same moment.
        per_request: tasks that one API request creates (1 to 100); 0 if they are created without requests, as by
            schedules.
        ahead: whether they are created more than four minutes before they are due; otherwise the API sends them.
        precision: `normal`, `exact` or `relaxed`.
        memory_mb: memory of the worker.
        retries: fraction of tasks with one retry.
        keys: whether requests have an idempotency key.
        heartbeats: number per task.
        extra_writes: additional write units per task: four with a unique key, two with a lock.
        transitions: Step Functions state transitions per task, for topologies.
        pulled: whether pull workers run them.
        stream_seconds: batching window for changes of tasks (`broadcast_batch_seconds`, at least 1).
        has_summary: whether tasks are counted (`summary_spread` above 0).
        has_traces: whether X-Ray tracing is on (`xray`).
        region: of the price table.
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
    has_traces: bool = False
    region: str = DEFAULT_REGION

    def __post_init__(self) -> None:
        """Reject invalid values.

        Raises:
            WorkloadError: names the field.
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
        """First attempts and retries."""
        return self.tasks * (1 + self.retries)

    @property
    def deliveries(self) -> float:
        """Batches of messages received by worker functions, or by pull workers."""
        return self.attempts / min(BATCH, self.together)

    @property
    def batches(self) -> float:
        """Invocations of the worker function."""
        return 0.0 if self.pulled else self.deliveries

    @property
    def creations(self) -> float:
        """Requests to the API that create tasks."""
        return self.tasks / self.per_request if self.per_request else 0.0

    @property
    def requests(self) -> float:
        """All requests to the API: a pull worker sends one to lease, one for each heartbeat and one to complete."""
        by_pull_workers = self.deliveries + self.attempts + self.tasks * self.heartbeats if self.pulled else 0.0
        return self.creations + by_pull_workers

    @property
    def minute(self) -> float:
        """Tasks per minute."""
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
