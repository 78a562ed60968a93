"""Measures the lateness of tasks on a local stack, for tasks due at random times and for a burst of simultaneous tasks.

python -m bench.lateness [TASKS]

The measured value is each task's `lateness_ms`, from its due time to the start of its first attempt. Some uncounted
tasks first warm up the stack. In the same run, the burst is compared with the delivery of the same number of messages
to a function that does nothing, and to a function that makes two bare writes per message (see `bench.bare_delivery`).
Run this benchmark on an idle machine, once with 1,000 and once with 5,000 tasks; the figures are saved in
`results.json`.
"""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING

from rich.console import Console

from bench import bare_delivery, results
from duetime_client import Client, NewTask, Task
from duetime_local import stack
from duetime_local.terminal import Display

if TYPE_CHECKING:
    from collections.abc import Sequence

SPREAD_TASKS, SPREAD_SECONDS = 300, 30
BURST_TASKS = 1_000
KEPT_SIZES = (BURST_TASKS, 5_000)
"""The burst sizes for which the figures are saved; for other sizes, the figures are only printed."""
AHEAD_SECONDS = 15
"""Seconds from the creation to the first due time, per thousand tasks, which is enough for a slow machine."""
WARM_TASKS = 20
_TYPE = "duetime.probe"
_PAGE, _PAUSE, _UNDISTURBED, _PATIENCE = 100, 0.5, 10.0, 300.0
_SEED = 7


def main(burst_tasks: int = BURST_TASKS) -> None:
    """Measure the lateness of tasks due at random times and in a burst, then print and save the figures."""
    with stack.running(Display(Console(quiet=True)), port=0) as running, Client(running.ready.api_url) as client:
        _lateness(client, [timedelta()] * WARM_TASKS)
        spread = _lateness(client, spread_offsets(SPREAD_TASKS, SPREAD_SECONDS))
        burst = _lateness(client, [timedelta()] * burst_tasks)
        worker = running.deployment.outputs["WorkerFunctionName"]
        empty, writing = (
            bare_delivery.latenesses(running.emulator, worker, name, burst_tasks)
            for name in (bare_delivery.EMPTY, bare_delivery.WRITING)
        )
    figures = figures_of(spread, burst, empty, writing)
    if burst_tasks in KEPT_SIZES:
        results.keep(Path(__file__).parent, figures)
    Console().print_json(data=figures)


def figures_of(
    spread: Sequence[int], burst: Sequence[int], empty: Sequence[int], writing: Sequence[int]
) -> dict[str, float]:
    """Return the figures for `results.json`. For bursts of unusual sizes, the keys include the size.

    Args:
        spread: lateness, in milliseconds, of tasks due at random times.
        burst: lateness of tasks due in the same millisecond.
        empty: delivery times, in milliseconds, to a function that does nothing.
        writing: delivery times, in milliseconds, to a function that makes two bare writes per message.
    """
    alone, together, bare, written = (
        quantiles(values, n=100, method="inclusive") for values in (spread, burst, empty, writing)
    )
    size = "" if len(burst) == BURST_TASKS else f"{len(burst)}_"
    return {
        "lateness_p50_ms": round(alone[49], 1),
        "lateness_p99_ms": round(alone[98], 1),
        f"lateness_burst_{size}p50_s": round(together[49] / 1_000, 2),
        f"lateness_burst_{size}p99_s": round(together[98] / 1_000, 2),
        f"lateness_burst_{size}vs_empty_function": round(together[98] / bare[98], 2),
        f"lateness_burst_{size}vs_two_writes": round(together[98] / written[98], 2),
    }


def spread_offsets(tasks: int, seconds: float) -> list[timedelta]:
    """Return random but reproducible offsets, in whole milliseconds, within a number of seconds."""
    chance = random.Random(_SEED)  # noqa: S311 - due times, not secrets
    return [timedelta(milliseconds=round(1_000 * seconds * chance.random())) for _ in range(tasks)]


def run_tasks(client: Client, offsets: Sequence[timedelta], ahead_seconds: float = AHEAD_SECONDS) -> list[Task]:
    """Create tasks that are due at offsets from a common time, and wait until all tasks have run.

    Args:
        client: a client of the stack.
        offsets: whole milliseconds.
        ahead_seconds: seconds from now to the common time.

    Returns:
        The tasks, in the order of the offsets. A task that does not end within minutes is returned as it was created.

    Raises:
        TimeoutError: the common time came before all tasks were created.
    """
    now = datetime.now(UTC)
    first = now.replace(microsecond=now.microsecond // 1_000 * 1_000) + timedelta(seconds=ahead_seconds)
    created = client.tasks.create_batch(NewTask(type=_TYPE, due_at=first + offset) for offset in offsets)
    if datetime.now(UTC) > first:
        raise TimeoutError(f"{len(offsets)} tasks take longer to create than {ahead_seconds} s")
    tasks = {task.id: task for task in created if isinstance(task, Task)}
    open_ids = set(tasks)
    # The tasks are not polled while they start, because polling would take CPU time from them.
    time.sleep((first - datetime.now(UTC) + max(offsets)).total_seconds() + _UNDISTURBED)
    end = time.monotonic() + _PATIENCE
    while open_ids and time.monotonic() < end:
        time.sleep(_PAUSE)
        for task in client.tasks.list(ids=sorted(open_ids)[:_PAGE]):
            if task.is_terminal:
                open_ids.discard(task.id)
                tasks[task.id] = task
    return list(tasks.values())


def _lateness(client: Client, offsets: Sequence[timedelta]) -> list[int]:
    """Run tasks that are due at these offsets, and return their lateness in milliseconds.

    Raises:
        TimeoutError: some tasks have not ended in time.
    """
    ahead = AHEAD_SECONDS * max(1, len(offsets) / BURST_TASKS)
    late = [task.lateness_ms for task in run_tasks(client, offsets, ahead) if task.is_terminal]
    known = [each for each in late if each is not None]
    if len(known) < len(offsets):
        raise TimeoutError(f"{len(offsets) - len(known)} of {len(offsets)} tasks have not ended")
    return known


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else BURST_TASKS)
