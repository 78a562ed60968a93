"""Defines the protocol between the comparison and a scheduler's program.

A program reads a `Plan` from its standard input. It writes JSON lines to its standard output: a `Progress` repeatedly
while tasks start, and an `Outcome` for each case. This module also runs in the schedulers' environment, so it does not
import duetime.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

START_FILE = "COMPARISON_START_FILE"
"""The environment variable that contains the path of the file in which tasks record their starts."""
_WARM_TASKS, _WARM_AHEAD_SECONDS, _WARM_PATIENCE_SECONDS = 5, 10.0, 60.0
_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The input for every scheduler's program.

    Attributes:
        cases: each case's due times, in milliseconds from a common first due time.
        ahead_seconds: seconds from the creation of a case's tasks to the first due time.
        patience_seconds: number of seconds after a case's last due time at which a task that has not started counts as
            lost.
    """

    cases: Mapping[str, Sequence[int]]
    ahead_seconds: float
    patience_seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """The number of a case's tasks that have started."""

    case: str
    started: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """When the tasks of a case were due, and when they started.

    Attributes:
        case: name of the case.
        due_ms: due times, in milliseconds since 1970.
        started_ms: each task's first start time, in the same order and rounded down to a millisecond; `None` for a lost
            task.
        processor_seconds: CPU seconds of the scheduler's and its storage's processes, counted from the creation of the
            tasks.
    """

    case: str
    due_ms: Sequence[int]
    started_ms: Sequence[int | None]
    processor_seconds: float


class CreatedTooLate(RuntimeError):
    """Some tasks were due before all tasks had been created, so the lateness would include creation time."""

    def __init__(self, case: str) -> None:
        super().__init__(f"{case}: the first tasks were due before the last were created")


class WorkerNotReady(RuntimeError):
    """Some warm-up tasks have not run in time."""

    def __init__(self, started: int) -> None:
        super().__init__(f"{started} of {_WARM_TASKS} tasks that warm it up have run")


def note(number: int) -> None:
    """Record the start of a task, which is its only work."""
    started_ms = time.time_ns() // 1_000_000
    # A short line is appended with a single write, so lines from concurrent processes do not mix.
    with Path(os.environ[START_FILE]).open("ab", buffering=0) as file:
        file.write(b"%d %d\n" % (number, started_ms))


def read_plan() -> Plan:
    """Read the plan sent by the comparison."""
    return Plan(**json.load(sys.stdin))


def send(message: Progress | Outcome) -> None:
    """Send a message to the comparison."""
    print(json.dumps(asdict(message)), flush=True)


def received(line: str) -> Progress | Outcome:
    """Parse a message from a scheduler's program."""
    fields = json.loads(line)
    return Outcome(**fields) if "due_ms" in fields else Progress(**fields)


def processor_seconds() -> float:
    """Return the CPU seconds of this process and all of its descendants, including processes that have ended."""
    this = psutil.Process()
    total = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            # The process has ended, so its CPU time is now part of its parent's time for ended children.
            continue
    return total


def measure(create: Callable[[Sequence[tuple[int, datetime]]], None]) -> None:
    """Run the plan's cases, and send their outcomes.

    Args:
        create: creates tasks, each of which calls `note` with its number at its due time.

    Raises:
        CreatedTooLate: the first due time came before all tasks were created.
        WorkerNotReady: the warm-up tasks have not run within a minute.
    """
    plan = read_plan()
    warm = _outcome(
        "warm up", [0] * _WARM_TASKS, 0, Plan(plan.cases, _WARM_AHEAD_SECONDS, _WARM_PATIENCE_SECONDS), create
    )
    if None in warm.started_ms:
        raise WorkerNotReady(_WARM_TASKS - warm.started_ms.count(None))
    first = _WARM_TASKS
    for case, offsets in plan.cases.items():
        send(_outcome(case, offsets, first, plan, create))
        first += len(offsets)


def _outcome(
    case: str,
    offsets: Sequence[int],
    first_number: int,
    plan: Plan,
    create: Callable[[Sequence[tuple[int, datetime]]], None],
) -> Outcome:
    before = processor_seconds()
    first_ms = time.time_ns() // 1_000_000 + round(1_000 * plan.ahead_seconds)
    due_ms = [first_ms + offset for offset in offsets]
    numbers = range(first_number, first_number + len(offsets))
    create([(number, datetime.fromtimestamp(due / 1_000, UTC)) for number, due in zip(numbers, due_ms, strict=True)])
    if time.time_ns() // 1_000_000 >= first_ms:
        raise CreatedTooLate(case)
    end = max(due_ms) / 1_000 + plan.patience_seconds
    while True:
        starts = _starts()
        started = [starts.get(number) for number in numbers]
        send(Progress(case, len(started) - started.count(None)))
        if None not in started or time.time() > end:
            return Outcome(case, due_ms, started, round(processor_seconds() - before, 2))
        time.sleep(_PAUSE)


def _starts() -> dict[int, int]:
    starts: dict[int, int] = {}
    path = Path(os.environ[START_FILE])
    for line in path.read_text().splitlines() if path.exists() else ():
        number, started_ms = map(int, line.split())
        starts.setdefault(number, started_ms)
    return starts
