"""A small discrete-event model of the same system, a task at a time: the cohort model is held against it in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import simpy

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any


def starts(due: Sequence[float], *, workers: int, batch: int, seconds: float, units: float = 0.0) -> list[float]:
    """When each task starts.

    Args:
        due: when each is due, in order.
        workers: that are there.
        batch: most tasks that one takes at once.
        seconds: that a batch takes.
        units: starts a second that the table allows; 0 if it allows any number.
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
