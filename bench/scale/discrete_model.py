"""A small discrete-event model, which simulates each task; tests compare the cohort model with this model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import simpy

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any


def starts(due: Sequence[float], *, workers: int, batch: int, seconds: float, units: float = 0.0) -> list[float]:
    """Return the start time of each task.

    Args:
        due: due times in ascending order.
        workers: number of workers.
        batch: maximum number of tasks per batch.
        seconds: duration of a batch.
        units: number of task starts that the table allows per second; 0 means no limit.
    """
    environment = simpy.Environment()
    queue = simpy.Store(environment)
    table = simpy.Resource(environment, capacity=1)
    started = [0.0] * len(due)

    def bring() -> Generator[Any, Any, None]:
        for number, at in enumerate(due):
            yield environment.timeout(at - environment.now)
            yield queue.put(number)

    def work() -> Generator[Any, Any, None]:
        while True:
            numbers = [(yield queue.get())]
            while queue.items and len(numbers) < batch:
                numbers.append((yield queue.get()))
            for number in numbers:
                if units:
                    with table.request() as turn:
                        yield turn
                        yield environment.timeout(1 / units)
                started[number] = environment.now
            yield environment.timeout(seconds)

    environment.process(bring())
    for _ in range(workers):
        environment.process(work())
    environment.run(until=max(due) + 10_000)
    return started
