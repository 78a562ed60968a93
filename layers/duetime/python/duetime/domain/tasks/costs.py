"""What tasks and their attempts cost, estimated: by assumed prices, for a worker that does nothing else meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.targets import PullTarget
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Prices:
    """What a cloud asks for what an attempt uses.

    Attributes:
        write_unit: dollars for one write unit of the table.
        gigabyte_second: dollars for a second of a worker with one gigabyte of memory.
        as_of: the day they are of.
        source: where they come from.
    """

    write_unit: float
    gigabyte_second: float
    as_of: str
    source: str


ASSUMED = Prices(
    write_unit=0.625 / 1_000_000,
    gigabyte_second=0.0000133334,
    as_of="2026-11-21",
    source="AWS public on-demand list prices for us-east-1 (DynamoDB; Lambda on arm64), as assumed: check yours",
)
"""Free tiers, savings plans and taxes are left out."""
ATTEMPT_WRITE_UNITS = 2
"""Its claim and its end; heartbeats, a `prepare` and a deferral are one each, and are not counted."""
CREATION_WRITE_UNITS = 2
"""The record of a task and its place in the owner index; `docs/reference/costs.md` counts what extras add."""
WORKER_GIGABYTES = 0.5
"""Memory of a worker: the cloud gives it as much, unless its settings say otherwise."""
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
