"""Defines and simulates the cases of `docs/scale.md`, each with its load, deployment and conclusion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bench.scale import aws_limits
from bench.scale.cohort_model import BATCH, RUN_WRITES, Deployment, simulate
from bench.scale.fair_queue_model import Key, waits
from duetime.domain.dispatch.cursors import GROUP_SIZE
from duetime.domain.operating_parameters import OWNER_SPREAD
from duetime_cdk.environments import MOST_READY_POLLERS, POLLER_INVOCATIONS
from duetime_common.cost_estimate import Workload, estimate
from duetime_common.prices import MILLION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bench.scale.cohort_model import Run, Series

DAY = 24 * 3_600
LARGE = Deployment(
    shards=512,
    table_writes=500_000,
    table_quota=500_000,
    mapping_start=10_000,
    mapping_growth=aws_limits.PROVISIONED_GROWTH,
    mapping_most=aws_limits.PROVISIONED_MOST,
    warm=10_000,
    concurrency=20_000,
)
"""A deployment for ten billion tasks a day, with raised quotas, provisioned pollers and a warm table."""
SETTINGS = Deployment(shards=64, table_writes=40_000, mapping_start=1_000, mapping_most=1_000, warm=1_000)
"""A deployment that has been busy for a while, without provisioned pollers or raised quotas, at the largest
`concurrency`."""
LONG = replace(SETTINGS, batch_seconds=1.0)
"""The same deployment for tasks that take a second, of which 10,000 start each second."""
HOLD = 0.65
"""Average seconds that a worker holds a full batch until it is due, in addition to the batch's duration."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case and its result.

    Attributes:
        name: description.
        p50, p99, slowest: lateness of tasks, in seconds.
        throttled: seconds during which workers waited for write units.
        workers: maximum concurrent workers.
        dollars: cost of the tasks.
        says: the conclusion from the result.
    """

    name: str
    p50: float
    p99: float
    slowest: float
    throttled: float
    workers: float
    dollars: float
    says: str


def cases() -> Iterator[Case]:
    """Yield all cases, in the order in which the page shows them."""
    yield steady()
    yield burst()
    yield cold_morning()
    yield throttled_table()
    yield from owner_flood()
    yield region_loss()


def steady() -> Case:
    """Simulate a steady load of 120,000 tasks a second for a minute."""
    deployment = replace(LARGE, batch_seconds=HOLD + 0.1)
    run = simulate(deployment, _even(120_000, 60, 0.01), 0.01)
    return _case(
        "120,000 a second, steadily", run, "10 billion a day, with the quotas and settings of the last row above"
    )


def burst() -> Case:
    """Simulate a million tasks of 0.1 s that are due in the same second."""
    due = np.zeros((3_000, 1))
    due[:100] = 10_000
    ready = MOST_READY_POLLERS * POLLER_INVOCATIONS
    run = simulate(replace(LARGE, warm=ready, mapping_start=ready), due, 0.01)
    says = f"{MOST_READY_POLLERS} pollers, {ready:,} warm workers, a table warmed up to 500,000 units"
    return _case("a million due in one second", run, says)


def cold_morning() -> Case:
    """Simulate ten thousand tasks due at once after idle hours, with default quotas and nothing warmed up."""
    due = np.zeros((6_000, 1))
    due[0] = 10_000
    run = simulate(replace(Deployment(), concurrency=185), due, 0.02)
    return _case("a cold morning: 10,000 due at once, in `prod`", run, "the mapping grows by 5 batches a second")


def throttled_table() -> Case:
    """Simulate 2,500 tasks a second for an hour on a new table that accepts 4,000 write units a second."""
    deployment = replace(LONG, table_writes=aws_limits.NEW_TABLE_WRITES)
    due = np.vstack([_even(2_500, 3_600, 1.0), np.zeros((3_600, 1))])
    run = simulate(deployment, due, 1.0)
    return _case(
        "a new table: 2,500 tasks of 1 s a second, for an hour",
        run,
        "warm the table up before; it doubles in half an hour",
    )


def owner_flood() -> Iterator[Case]:
    """Simulate an owner that creates as many immediate tasks as its list accepts, with fair and with unfair queues.

    Meanwhile, other owners create 500 tasks a second.
    """
    accepted = OWNER_SPREAD * aws_limits.PARTITION_WRITES
    deployment = replace(LONG, batch_seconds=4.0, table_writes=100_000, table_quota=100_000)
    flood = np.vstack([_even(accepted, 60, 0.02), np.zeros((6_000, 1))])
    others = _even(500, 180, 0.02)
    fair = simulate(deployment, np.hstack([others, flood]), 0.02)
    yield _case(
        "one owner's flood of tasks of 4 s, for the others",
        fair,
        f"its list takes {accepted:,} a second; fair queues do the rest",
    )
    shared = simulate(deployment, others + flood, 0.02)
    yield _case("the same, if queues were not fair", shared, "everybody waits as long as the flood")


def region_loss() -> Case:
    """Simulate an hour's outage of a Region at 3,000 tasks a second, and the backlog afterwards."""
    run = simulate(LONG, _even(3_000, 3 * 3_600, 1.0), 1.0, down=(0, 3_600))
    return _case(
        "a Region's loss for an hour, at 3,000 tasks of 1 s a second",
        run,
        "nothing is lost; the backlog runs at 10,000 a second",
    )


SMALL = tuple(Key(f"small-{number}", 10, 40.0, "the 100 keys of 10") for number in range(100))
"""A hundred keys of ten tasks each, which become due while the large keys have a backlog."""
FAIR_WORKERS, FAIR_SECONDS = 100, 0.5
"""The default `concurrency` of a priority, and the average duration of a task in seconds."""


def fair_cases() -> Iterator[tuple[str, dict[str, NDArray[np.float64]]]]:
    """Simulate 100,000 tasks of half a second of some large keys, due at once, beside a hundred keys of ten tasks."""
    large = Key("large", 100_000, 0.0, "the key of 100,000")
    keyless = [replace(key, key=None) for key in (large, *SMALL)]
    ten = [Key(f"large-{number}", 10_000, 0.0, "the keys of 10,000") for number in range(10)]
    shared = [Key(f"large-{weight}", 50_000, 0.0, f"the key of weight {weight}", weight) for weight in (1, 3)]
    for name, keys in (
        ("without `fair_key`", keyless),
        ("with `fair_key`", [large, *SMALL]),
        ("the large key has weight 5", [replace(large, weight=5), *SMALL]),
        ("two large keys of 50,000, with weights 1 and 3", [*shared, *SMALL]),
        ("ten large keys of 10,000", [*ten, *SMALL]),
    ):
        yield name, waits(keys, workers=FAIR_WORKERS, seconds=FAIR_SECONDS)


def _even(rate: float, seconds: float, step: float) -> Series:
    return np.full((round(seconds / step), 1), rate * step)


def _case(name: str, run: Run, says: str) -> Case:
    tasks = float(run.due.sum())
    dollars = estimate(_full_batches(tasks)).per_million * tasks / MILLION
    p50, p99, slowest = (run.lateness(each) for each in (50, 99, 100))
    return Case(name, p50, p99, slowest, run.table_limited, run.workers, dollars, says)


def _full_batches(tasks: float) -> Workload:
    return Workload(tasks, together=BATCH, per_request=100)


@dataclass(frozen=True, slots=True)
class Step:
    """A deployment for a number of tasks a day.

    Attributes:
        tasks: number of tasks per day.
        bill: dollars a month by the price table, for a default deployment and including the idle cost.
        workers: number of concurrent workers, for tasks of 0.1 s.
        writes: write units per second of the table.
        shards: number of shards needed.
        raises: quotas and settings to raise.
    """

    tasks: float
    bill: float
    workers: float
    writes: float
    shards: int
    raises: str


_BILLION = (
    "Lambda: 2,000 concurrent executions. DynamoDB: 60,000 units for the table. `shards` 64, `concurrency` 1,000 for"
    " the priority"
)
_TEN_BILLION = (
    "Lambda: 20,000. DynamoDB: 500,000 units, warmed up. `shards` 512; thirty owners or more;"
    " `provisioned_pollers` 200 to 900 for the priority"
)
_SIZES = (
    (10, 1, 1, "nothing"),
    (10_000, 1, 1, "nothing"),
    (1_000_000, 1, 1, "nothing"),
    (100_000_000, 10, 100, "nothing, if they arrive evenly"),
    (1_000_000_000, 10, 100, _BILLION),
    (10_000_000_000, 10, 100, _TEN_BILLION),
)
"""For each size: tasks a day, tasks due at the same moment, tasks per request, and quotas and settings to raise."""


def steps() -> Iterator[Step]:
    """Yield the deployments for ten tasks to ten billion tasks a day."""
    for tasks, together, per_request, raises in _SIZES:
        rate = tasks / DAY
        bill = estimate(Workload(tasks * 30, together=together, per_request=per_request)).dollars
        writes = rate * (RUN_WRITES + 1)
        shards = max(16, 1 << max(0, int(np.ceil(np.log2(max(1.0, 1.3 * writes / aws_limits.PARTITION_WRITES))))))
        yield Step(tasks, bill, rate / min(BATCH, together) * (HOLD + 0.1), writes, shards, raises)


def trigger_groups(shards: int) -> int:
    """Return the number of concurrent trigger invocations for a number of shards."""
    return -(-shards // GROUP_SIZE)
