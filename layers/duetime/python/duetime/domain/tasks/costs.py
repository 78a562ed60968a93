"""What tasks and their attempts cost, estimated: by assumed prices, for a worker that does nothing else meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.prices import DEFAULT_REGION, PRICES, WORKER_MB
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.targets import PullTarget
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.prices import Prices
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

ASSUMED = PRICES[DEFAULT_REGION]
"""What a task says of its own cost is by these prices, in whichever region it runs."""
ATTEMPT_WRITE_UNITS = 2
"""Its claim and its end; heartbeats, a `prepare` and a deferral are one each, and are not counted."""
CREATION_WRITE_UNITS = 2
"""The record of a task and its place in the owner index; `docs/reference/costs.md` counts what extras add."""
WORKER_GIGABYTES = WORKER_MB / 1024
_DECIMALS = 12


def dollars_of(took: Millis, prices: Prices = ASSUMED) -> float:
    """What one attempt of so many milliseconds costs at the most: other tasks of its batch share its worker."""
    time = took / SECOND * WORKER_GIGABYTES * prices.gigabyte_second
    return round(ATTEMPT_WRITE_UNITS * prices.write_unit + time, _DECIMALS)


def worker_time(line: AttemptRecord, task: Task) -> Millis:
    """How long an attempt kept a worker function busy: not after its target accepted, nor while a pull worker ran."""
    runs_elsewhere = isinstance(task.target, PullTarget) or is_job(task.target)
    return 0 if runs_elsewhere else min(line.took, task.timeout_seconds * SECOND)


def cost_of(task: Task, prices: Prices = ASSUMED) -> float:
    """What a task has cost so far: its creation, and the attempts in its record that have ended."""
    ended = (line for line in task.attempt_history if line.outcome is not AttemptOutcome.LOST)
    attempts = sum(dollars_of(worker_time(line, task), prices) for line in ended)
    return round(CREATION_WRITE_UNITS * prices.write_unit + attempts, _DECIMALS)
