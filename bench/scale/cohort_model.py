"""A cohort model: tasks that are due in the same step are one number, and so are the workers that run them.

Every step, as many tasks start as there are due ones, free workers and write units. What is not modelled: differences
between tasks, between partitions and between workers; every batch is full and takes the same time. So it says nothing
of a quiet system's small delays, which are added from a measured distribution, and much about what is exhausted, and
when.
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
"""Write units of a claim and an outcome, in the partition of the task's minute."""
CLAIM_SECONDS = 0.002
"""Assumed: for each claim of a batch, one after the other, of a worker with less than a third of a processor."""
_QUANTILES = 400


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the settings, the quotas and the past of a deployment allow.

    Attributes:
        shards: of a minute: a partition each.
        table_writes: units a second that the table takes at first: twice its previous peak, or its warm throughput.
        table_quota: units a second of the table, at most.
        mapping_start, mapping_growth, mapping_most: batches at once of the event source mapping, and growth a second.
        warm: workers that are there at first.
        concurrency: workers at once, at most: quota of the account, or cap of the queue.
        batch_seconds: how long a worker is busy with a batch once it is due, in seconds.
        cold_start: seconds until a new worker begins.
        headroom: seconds that messages arrive early.
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
    """What happened, step by step.

    Attributes:
        step: seconds.
        due, started: tasks in each step, a column for each class of them.
        table_limited: seconds in which workers waited for write units.
        workers: the most at once.
        headroom: of the deployment.
    """

    step: float
    due: Series
    started: Series
    table_limited: float
    workers: float
    headroom: float

    def waits(self, of: int = 0) -> Series:
        """Seconds that tasks of a class waited for workers and units: evenly spaced quantiles."""
        due, started = np.cumsum(self.due[:, of]), np.cumsum(self.started[:, of])
        places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES * min(due[-1], started[-1])
        return np.maximum(0.0, (_crossings(started, places) - _crossings(due, places)) * self.step)

    def lateness(self, percent: float, of: int = 0) -> float:
        """A percentile of how late tasks start, in seconds, with the time that messages take to a worker."""
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
        """Tasks that have not started at the end."""
        return float(self.due.sum() - self.started.sum())


def _crossings(cumulative: Series, places: Series) -> Series:
    """In which step, and how far into it, a running sum reaches some values."""
    index = np.searchsorted(cumulative, places)
    before = np.where(index > 0, cumulative[index - 1], 0.0)
    return index + (places - before) / (cumulative[index] - before)


@dataclass(slots=True)
class _Workers:
    """The workers of a deployment: which there are, and which are busy."""

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
        """Begin with the warm ones."""
        self.there = self.ordered = self.deployment.warm
        self.arriving, self.ending = np.zeros(self.steps + 1), np.zeros(self.steps + 1)

    def free(self, at: int) -> float:
        """How many are free in a step."""
        self.there += self.arriving[at]
        self.busy -= self.ending[at]
        return max(0.0, min(self.there, self._polled(at)) - self.busy)

    def order(self, at: int, batches: float) -> None:
        """Have workers made for batches that find none, as fast as Lambda makes them."""
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
        """Be busy with batches for as long as they take."""
        self.busy += batches
        self.ending[self._after(at, self.deployment.batch_seconds)] += batches

    def _polled(self, at: int) -> float:
        """How many batches the event source mapping hands out at once."""
        deployment = self.deployment
        since = at * self.step - self.began if self.began is not None else 0.0
        return min(deployment.mapping_start + deployment.mapping_growth * since, deployment.mapping_most)

    def _after(self, at: int, seconds: float) -> int:
        return min(self.steps, at + max(1, round(seconds / self.step)))


def simulate(deployment: Deployment, due: Series, step: float, *, down: tuple[float, float] = (0.0, 0.0)) -> Run:
    """Run the tasks that are due.

    Args:
        deployment: what there is to run them.
        due: tasks that are due in each step; a column for each class, which share workers fairly (as owners do).
        step: seconds of a step.
        down: from when to when nothing starts, in seconds.
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
        # What a second did not use the next may: DynamoDB saves up more than that, which nobody may rely on.
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
    """How many of each class start: as many of each, as far as it has them."""
    shares = np.zeros_like(waiting)
    for place, each in enumerate(order := np.argsort(waiting)):
        shares[each] = min(waiting[each], (number - shares.sum()) / (len(order) - place))
    return shares
