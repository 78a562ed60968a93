"""Calculates the cost of sparse traffic from the price table; tasks are created one by one, and each is due alone.

The unmodified functions run in virtual time: an AWS call takes 1 to 8 ms in each direction, and CPU time is zero, so
durations consist only of waiting. All calls, invocations and function seconds are counted; those that the account makes
without tasks are subtracted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.times import MINUTE, SECOND, Millis, to_iso
from duetime.environment_variables import Variable
from duetime_cdk.environments import SIZES, FunctionName
from duetime_common.cost_estimate import (
    FULL_BATCHES,
    MONTH_SECONDS,
    RELAXED_TRAFFIC,
    SWITCH_READS,
    THIN_TRAFFIC,
    estimate,
    idle_month,
    watched_month,
)
from duetime_common.prices import DEFAULT_REGION, MILLION, PRICES
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

GAP: Millis = MONTH_SECONDS * SECOND // MILLION
"""Interval between the due times of a million tasks that are spread evenly over a month, in milliseconds."""
_AHEAD = 8 * MINUTE
"""Time from the first creation to the first due time, which is longer than the look-ahead, so that the trigger sends
all tasks."""
_PATHS = ("api", "trigger", "worker")


class MeteredAccount(Tasks):
    """An account that counts calls and invocations.

    Attributes:
        requests: number of calls by function and operation.
        invocations, spent: number of invocations and their total milliseconds, by function.
    """

    def __init__(self, precision: Precision) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.invocations: Counter[str] = Counter()
        self.spent: Counter[str] = Counter()
        super().__init__()
        self.environ[Variable.PRECISION] = precision
        self.before_call = self._count_call

    def _count_call(self, call: Call) -> None:
        self.requests[call.machine.function, call.operation] += 1

    def _run(self, machine: Any, invocation: Any, context: Any) -> None:  # noqa: ANN401 - as in the base class
        began = self.now
        try:
            super()._run(machine, invocation, context)
        finally:
            self.invocations[invocation.function] += 1
            self.spent[invocation.function] += self.now - began


@dataclass(frozen=True)
class Usage:
    """The average usage of one task.

    Attributes:
        requests: number of SQS requests, including the poller's.
        invocations: number of invocations of the API function and the worker.
        gigabyte_seconds: GB-seconds by function.
        lateness: each task's lateness in milliseconds, in ascending order.
    """

    requests: float
    invocations: float
    gigabyte_seconds: dict[str, float]
    lateness: list[Millis]


def usage(precision: Precision, count: int = 150) -> Usage:
    """Run a number of sparse tasks, and return the usage per task."""
    busy = _metered(precision, count)
    idle = _metered(precision, 0, busy.duration)
    spent = busy.spent - idle.spent
    sends = sum(busy.requests[name, "send_message_batch"] for name in _PATHS)
    visibility = busy.requests["worker", "change_message_visibility_batch"]
    # The poller makes two requests for each batch, because it receives and deletes the batch.
    polls = 2 * busy.invocations["worker"]
    return Usage(
        requests=(sends + visibility + polls) / count,
        invocations=(busy.invocations["api"] + busy.invocations["worker"]) / count,
        gigabyte_seconds={
            name: spent[name] / SECOND / count * SIZES[FunctionName(name)].memory_mb / 1024 for name in _PATHS
        },
        lateness=sorted(busy.lateness),
    )


@dataclass(frozen=True)
class _Counted:
    """What an account used."""

    duration: Millis
    spent: Counter[str]
    requests: Counter[tuple[str, str]]
    invocations: Counter[str]
    lateness: list[Millis]


def _metered(precision: Precision, count: int, duration: Millis | None = None) -> _Counted:
    """Return what an account used for a number of tasks or, without tasks, in a given duration."""
    chance = Random(7)  # noqa: S311 - repeatable on purpose
    with MeteredAccount(precision) as account:
        began = account.now
        first = began + _AHEAD
        dues = [first + number * GAP + chance.randrange(SECOND) for number in range(count)]
        made = [account.create(due_at=to_iso(due)) for due in dues]
        account.run(duration or first + count * GAP + MINUTE - account.now)
        started = {each.task_id: each.at for each in account.effects}
        lateness = [started[task_id] - due for task_id, due in zip(made, dues, strict=True)]
        return _Counted(account.now - began, account.spent, account.requests, account.invocations, lateness)


def dollars_per_million(used: Usage, writes: float, reads: float, *, region: str = DEFAULT_REGION) -> dict[str, float]:
    """Return the dollars per million sparse tasks, by part.

    Args:
        used: usage of one task.
        writes: a task's write units, including those for indexes.
        reads: a task's read units, including those for indexes.
        region: a Region in the price table.
    """
    prices = PRICES[region]
    parts = {
        "table": writes * prices.write_unit + reads * prices.read_unit,
        "queues": used.requests * prices.queue_request,
        "API gateway": prices.api_request,
        "invocations": used.invocations * prices.function_request,
        **{f"{name}'s time": time * prices.gigabyte_second for name, time in used.gigabyte_seconds.items()},
    }
    return {part: each * MILLION for part, each in parts.items()}


def counted(writes: float) -> dict[str, float]:
    """Return the figures for `results.json`, in dollars.

    The figures are the costs of a million sparse tasks at two precisions (without notifications, counts and logs, and
    in the default deployment), of a million tasks in full batches, and of a month without tasks.

    Args:
        writes: the counted write units of a task.
    """
    thin = {
        precision: round(sum(dollars_per_million(usage(precision), writes, SWITCH_READS).values()), 2)
        for precision in (Precision.NORMAL, Precision.RELAXED)
    }
    return {
        "dollars_per_million_thin": thin[Precision.NORMAL],
        "dollars_per_million_thin_relaxed": thin[Precision.RELAXED],
        "dollars_per_million_default_thin": round(estimate(THIN_TRAFFIC).per_million, 2),
        "dollars_per_million_default_thin_relaxed": round(estimate(RELAXED_TRAFFIC).per_million, 2),
        "dollars_per_million_default_full": round(estimate(FULL_BATCHES).per_million, 2),
        "dollars_idle_month": round(idle_month(PRICES[DEFAULT_REGION]), 2),
        "dollars_idle_month_prod": round(idle_month(PRICES[DEFAULT_REGION]) + watched_month(), 2),
    }
