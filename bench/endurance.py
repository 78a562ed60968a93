"""Measures, over fakes of AWS, a worker process's memory growth over many tasks and the trigger's cost per schedule.

python -m bench.endurance [SCHEDULES] [--minutes N]

A worker process runs tasks for some minutes. The process's memory at the end is compared with its memory after the
first ten thousand tasks; the table, the queues and the clock's list of sleeps are emptied repeatedly. Then schedules
run every minute, and the calls, write units, messages and CPU time of the trigger's ticks are measured. The measured
CPU time includes the fakes' time instead of the SDK's.
"""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from rich.console import Console

from bench import results
from bench.growth import faked
from bench.stored_tasks import SUCCEEDING, register_handlers
from duetime.composition import composed
from duetime.composition.schedules import ScheduleServices
from duetime.composition.tasks import TaskServices
from duetime.domain.schedules.definition import ScheduleSpec, Written
from duetime.domain.tasks.creation import Order
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime_common.prices import DEFAULT_REGION, PRICES
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from duetime_testing.fakes.tables import Table

SCHEDULES, MINUTES = 10_000, 10.0
MEASURED = 100_000
"""Number of schedules to which the cost is extrapolated; all figures of a tick are proportional to the number of
schedules."""
_TICKS = 3
_MINUTES_A_MONTH = 43_200
_BATCH, _KEPT, _WARM = 10, 1_000, 10_000
_MEGABYTE = 1 << 20


def main() -> None:
    """Measure the worker's memory and the schedules, print the figures, and save them."""
    parser = ArgumentParser(prog="python -m bench.endurance", description=__doc__)
    parser.add_argument("schedules", nargs="?", type=int, default=SCHEDULES, help="number of minutely schedules")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="minutes for which the worker runs tasks")
    asked = parser.parse_args()
    # The functions print a line of metrics for each invocation, and these lines must not stay in memory.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        figures = worker_memory(asked.minutes) | schedules(asked.schedules)
    Console().print_json(data=figures)
    results.keep(Path(__file__).parent, figures)


def schedules(number: int) -> dict[str, float]:
    """Measure a tick's usage per minutely schedule, and calculate the dollars per month for `MEASURED` schedules."""
    stack, _, meter = faked()
    register_handlers()
    creator = composed(ScheduleServices).creator
    for each in range(number):
        creator.create(OWNER, ScheduleSpec(Written(rate="1 minute"), TaskSpec(SUCCEEDING), f"s{each}"))
    calls: Counter[str] = Counter()
    heard = meter.session.heard

    def count(operation: str, request: Any) -> None:  # noqa: ANN401 - any request
        calls[operation] += 1
        heard(operation, request)

    meter.session.heard = count
    _tick(stack)
    meter.reset()
    calls.clear()
    began = time.process_time()
    for _ in range(_TICKS):
        _tick(stack)
    each = number * _TICKS
    prices = PRICES[DEFAULT_REGION]
    # Each new record also needs a write to the index of its owner's tasks.
    units = meter.table_units / each + 1
    sends = calls["send_message_batch"] / each
    cpu = (time.process_time() - began) / each * 1_000
    dollars = units * prices.write_unit + meter.read_units / each * prices.read_unit + sends * prices.queue_request
    return {
        "schedules_measured": number,
        "schedule_tick_calls": round(meter.total_requests / each, 2),
        "schedule_tick_write_units": round(units, 2),
        "schedule_tick_cpu_ms": round(cpu, 2),
        "dollars_month_100k_minutely_schedules_trigger": round(dollars * MEASURED * _MINUTES_A_MONTH),
    }


def _tick(stack: Stack) -> None:
    stack.clock.at += MINUTE
    stack.call("trigger", {})


def worker_memory(minutes: float) -> dict[str, float]:
    """Measure how much a worker process's memory grows, in megabytes, after its first ten thousand tasks."""
    stack, _, meter = faked()
    register_handlers()
    process, table = psutil.Process(), meter.table
    done, warm, end = 0, 0, time.monotonic() + minutes * 60
    orders = [Order(TaskSpec(SUCCEEDING, b'{"n":1}'))] * _BATCH
    while done < 2 * _WARM or time.monotonic() < end:
        stack.clock.at += SECOND
        composed(TaskServices).batch_creator.create_many(OWNER, orders)
        kept = stack.work(Priority.NORMAL)
        assert not kept, kept  # noqa: S101 - a task that the worker could not run is not counted
        done += _BATCH
        if done % _KEPT == 0:
            _empty(table)
            stack.clock.slept.clear()
        if done == _WARM:
            warm = process.memory_info().rss
    grown = (process.memory_info().rss - warm) / _MEGABYTE
    return {
        "worker_tasks": done,
        "worker_memory_mb": round(warm / _MEGABYTE),
        "worker_memory_growth_mb": round(grown, 1),
    }


def _empty(table: Table) -> None:
    """Remove all tasks from the table, so that only the worker's memory can grow."""
    for partition in [each for each in table.partitions if each[0].isdigit()]:
        del table.partitions[partition]
        table.earlier.pop(partition, None)
    for index in table.indexes.values():
        index.entries.clear()
        index.log.clear()


if __name__ == "__main__":
    main()
