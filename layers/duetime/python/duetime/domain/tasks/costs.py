"""Estimates the costs of tasks and their attempts, at assumed prices and for a worker without other work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.targets import PullTarget
from duetime.domain.times import SECOND
from duetime_common.prices import DEFAULT_REGION, PRICES, WORKER_MB

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime_common.prices import Prices

ASSUMED = PRICES[DEFAULT_REGION]
"""Prices that are used, in every region, for the costs in API responses about tasks."""
ATTEMPT_WRITE_UNITS = 2
"""Write units of an attempt's claim and end. Heartbeats, `prepare` and deferrals also take one unit each, but are not
counted."""
CREATION_WRITE_UNITS = 2
"""Write units of a task's record and its owner index entry; `docs/reference/costs.md` lists additional writes."""
WORKER_GIGABYTES = WORKER_MB / 1024
_DECIMALS = 12


def dollars_of(took: Millis, prices: Prices = ASSUMED) -> float:
    """Maximum cost of an attempt that took this long, in milliseconds.

    The cost is lower if other tasks shared the worker.
    """
    time = took / SECOND * WORKER_GIGABYTES * prices.gigabyte_second
    return round(ATTEMPT_WRITE_UNITS * prices.write_unit + time, _DECIMALS)


def worker_time(line: AttemptRecord, task: Task) -> Millis:
    """How long an attempt occupied a worker function, not counting work in a pull worker or an AWS job."""
    runs_elsewhere = isinstance(task.target, PullTarget) or is_job(task.target)
    return 0 if runs_elsewhere else min(line.took, task.timeout_seconds * SECOND)


def cost_of(task: Task, prices: Prices = ASSUMED) -> float:
    """Cost of a task so far, for its creation and for the ended attempts in its record."""
    ended = (line for line in task.attempt_history if line.outcome is not AttemptOutcome.LOST)
    attempts = sum(dollars_of(worker_time(line, task), prices) for line in ended)
    return round(CREATION_WRITE_UNITS * prices.write_unit + attempts, _DECIMALS)


def total_of(costs: Iterable[float]) -> float:
    """The sum of costs, without the rounding errors of binary fractions."""
    return round(sum(costs), _DECIMALS)
