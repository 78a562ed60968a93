"""A cohort model of task starts, which represents workers, and the tasks due in a step, only by their numbers.

In every step, the number of tasks that start is limited by the numbers of due tasks, free workers and write units.
Differences between tasks, partitions and workers are not modeled, and every batch is full and takes the same time. The
model shows which resource is exhausted and when. It does not produce the small delays of a quiet system, which are
added from a measured distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from bench.scale import aws_limits
from duetime.domain.operating_parameters import CLAIM_LEAD
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Series = NDArray[np.float64]

BATCH = 10
RUN_WRITES = 2
"""Write units for a claim and an outcome, which are written to the partition of the task's minute and shard."""
CLAIM_SECONDS = 0.002
"""Assumed seconds for each claim when a worker with less than a third of a vCPU claims a batch's tasks one after
another."""
_QUANTILES = 400


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment's capacity, which depends on its settings, quotas and previous load.

    Attributes:
        shards: number of shards per minute, each of which is a partition.
        table_writes: initial write units a second, which are twice the previous peak or the warm throughput.
        table_quota: the table's maximum write units a second.
        mapping_start, mapping_growth, mapping_most: the event source mapping's initial concurrent batches, their growth
            a second, and their maximum.
        warm: number of workers that exist at the start.
        concurrency: maximum concurrent workers, as limited by the account's quota or the queue's setting.
        batch_seconds: seconds that a worker is busy with a batch whose tasks are due.
        cold_start: seconds until a new worker starts.
        headroom: seconds before the due time at which messages are meant to arrive.
    """

    shards: int = 16
    table_writes: float = aws_limits.NEW_TABLE_WRITES
    table_quota: float = aws_limits.TABLE_QUOTA
    mapping_start: float = aws_limits.MAPPING_START
    mapping_growth: float = aws_limits.MAPPING_GROWTH
    mapping_most: float = aws_limits.MAPPING_MOST
    warm: float = 0.0
    concurrency: float = aws_limits.ACCOUNT_QUOTA
    batch_seconds: float = 0.1
    cold_start: float = 1.0
    headroom: float = 0.15


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a simulation, step by step.

    Attributes:
        step: duration of a step, in seconds.
        due, started: numbers of due and of started tasks in each step, with a column for each class.
        table_limited: seconds during which workers waited for write units.
        workers: maximum concurrent workers.
        headroom: the deployment's `headroom`.
    """

    step: float
    due: Series
    started: Series
    table_limited: float
    workers: float
    headroom: float

    def waits(self, of: int = 0) -> Series:
        """Return evenly spaced quantiles of the seconds that a class's tasks waited for workers and write units."""
        due, started = np.cumsum(self.due[:, of]), np.cumsum(self.started[:, of])
        places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES * min(due[-1], started[-1])
        return np.maximum(0.0, (_crossings(started, places) - _crossings(due, places)) * self.step)

    def lateness(self, percent: float, of: int = 0) -> float:
        """Return a percentile of the lateness in seconds, which includes the delivery of messages."""
        shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        spread = log(aws_limits.TRANSPORT_P99 / aws_limits.TRANSPORT_MEDIAN) / NormalDist().inv_cdf(0.99)
        transport = [
            aws_limits.TRANSPORT_MEDIAN * np.exp(spread * NormalDist().inv_cdf(float(each))) for each in shares
        ]
        beyond = np.maximum(0.0, np.array(transport) - self.headroom)
        claims = np.maximum(0.0, np.arange(1, BATCH + 1) * CLAIM_SECONDS - CLAIM_LEAD / SECOND)
        late = np.add.outer(np.add.outer(self.waits(of), beyond), claims)
        return float(np.percentile(late, percent))

    @property
    def left(self) -> float:
        """The number of tasks that have not started when the simulation ends."""
        return float(self.due.sum() - self.started.sum())


def _crossings(cumulative: Series, places: Series) -> Series:
    """Return the fractional step numbers at which a running sum reaches given values."""
    index = np.searchsorted(cumulative, places)
    before = np.where(index > 0, cumulative[index - 1], 0.0)
    return index + (places - before) / (cumulative[index] - before)


@dataclass(slots=True)
class _Workers:
    """A deployment's existing and busy workers."""

    deployment: Deployment
    step: float
    steps: int
    there: float = field(init=False)
    ordered: float = field(init=False)
    arriving: Series = field(init=False)
    ending: Series = field(init=False)
    busy: float = 0.0
    began: float | None = None

    def __post_init__(self) -> None:
        """Start with the warm workers."""
        self.there = self.ordered = self.deployment.warm
        self.arriving, self.ending = np.zeros(self.steps + 1), np.zeros(self.steps + 1)

    def free(self, at: int) -> float:
        """Return the number of free workers in a step."""
        self.there += self.arriving[at]
        self.busy -= self.ending[at]
        return max(0.0, min(self.there, self._polled(at)) - self.busy)

    def order(self, at: int, batches: float) -> None:
        """Start workers, at Lambda's scaling rate, for batches without a worker."""
        deployment = self.deployment
        if batches <= 0:
            return
        self.began = at * self.step if self.began is None else self.began
        allowed = deployment.warm + aws_limits.FUNCTION_GROWTH * (10 + at * self.step - self.began)
        most = min(allowed, deployment.concurrency, self._polled(at))
        more = max(0.0, min(batches, most - self.ordered))
        self.ordered += more
        self.arriving[self._after(at, deployment.cold_start)] += more

    def work(self, at: int, batches: float) -> None:
        """Make one worker per batch busy for the duration of a batch."""
        self.busy += batches
        self.ending[self._after(at, self.deployment.batch_seconds)] += batches

    def _polled(self, at: int) -> float:
        """Return the number of concurrent batches that the event source mapping can deliver in a step."""
        deployment = self.deployment
        since = at * self.step - self.began if self.began is not None else 0.0
        return min(deployment.mapping_start + deployment.mapping_growth * since, deployment.mapping_most)

    def _after(self, at: int, seconds: float) -> int:
        return min(self.steps, at + max(1, round(seconds / self.step)))


def simulate(deployment: Deployment, due: Series, step: float, *, down: tuple[float, float] = (0.0, 0.0)) -> Run:
    """Simulate when due tasks start.

    Args:
        deployment: the deployment that runs the tasks.
        due: number of tasks due in each step, with a column for each class. Classes, such as owners, share workers
            fairly.
        step: duration of a step, in seconds.
        down: start and end of an outage, in seconds.
    """
    steps = len(due)
    waiting, started = np.zeros(due.shape[1]), np.zeros_like(due)
    workers, most, limited = _Workers(deployment, step, steps), 0.0, 0.0
    capacity, peak_at = min(deployment.table_writes, deployment.table_quota), 0.0
    rate = saved = min(capacity, aws_limits.PARTITION_WRITES * deployment.shards)
    for at in range(steps):
        waiting += due[at]
        free = workers.free(at)
        if down[0] <= at * step < down[1]:
            continue
        if at * step - peak_at >= aws_limits.TABLE_DOUBLES_IN:
            capacity, peak_at = min(2 * capacity, deployment.table_quota), at * step
            rate = min(capacity, aws_limits.PARTITION_WRITES * deployment.shards)
        # Unused capacity is saved for one second; DynamoDB saves it for longer, but without a guarantee.
        units = saved = min(rate, saved + rate * step)
        wanted = min(float(waiting.sum()), free * BATCH)
        if wanted * RUN_WRITES > units * (1 + 1e-9):
            limited += step
        started[at] = _shared(waiting, min(wanted, units / RUN_WRITES))
        waiting -= started[at]
        saved -= float(started[at].sum()) * RUN_WRITES
        workers.work(at, float(started[at].sum()) / BATCH)
        workers.order(at, float(waiting.sum()) / BATCH)
        most = max(most, workers.busy)
    return Run(step, due, started, limited, most, deployment.headroom)


def _shared(waiting: Series, number: float) -> Series:
    """Return the number of tasks of each class that start, in equal shares limited by the class's waiting tasks."""
    shares = np.zeros_like(waiting)
    for place, each in enumerate(order := np.argsort(waiting)):
        shares[each] = min(waiting[each], (number - shares.sum()) / (len(order) - place))
    return shares
