"""Defines and measures the operations of `bench.growth`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from bench.large_topology import running_topology
from bench.stored_tasks import FAILED_TASKS, RARE, REPORT, SUCCEEDING, TEAMS
from duetime.composition import composed
from duetime.composition.tasks import TopologyServices
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE
from tests.functions.api.gateway import Gateway
from tests.functions.stack import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime.domain.ids import TaskId
    from tests.functions.stack import Stack

PASSES = 5
"""Number of measured trigger passes, each of which reads one minute."""
_NODES = 100
_SCHEDULE = "hourly"


class CallMeter(Protocol):
    """A meter that counts AWS calls, read units and write units."""

    table_units: float
    index_units: float

    @property
    def read_units(self) -> float:
        """The read units of the table and its indexes."""
        ...

    @property
    def total_requests(self) -> int:
        """The number of AWS calls."""
        ...

    def reset(self) -> None:
        """Reset the counters."""


@dataclass(slots=True)
class Used:
    """An operation's maximum usage over its repetitions.

    Attributes:
        calls: number of AWS calls.
        cpu: CPU seconds of this process in the fastest repetition.
    """

    calls: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    cpu: float = field(default=float("inf"))


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation to measure.

    Attributes:
        name: the name under which users know the operation.
        run: runs the operation once, with the result of `prepare`.
        prepare: sets up the operation's preconditions and is not measured.
        repeats: number of measured runs.
        rehearsed: whether an unmeasured run precedes the measured runs.
    """

    name: str
    run: Callable[[Any], object]
    prepare: Callable[[], object] = lambda: None
    repeats: int = 10
    rehearsed: bool = True


def operations_on(stack: Stack, waiting: Sequence[TaskId]) -> Iterator[Operation]:
    """Yield the operations on a filled table, in an order in which no operation affects a later one.

    Args:
        stack: the functions that use the table.
        waiting: the owner's tasks that have not started.
    """
    minutes = count(stack.clock.now() + MINUTE, MINUTE)

    def pass_a_minute() -> None:
        stack.clock.at = next(minutes)

    # The trigger runs first, while its scans find only the stored tasks. Each pass reads another minute's tasks, so no
    # pass is rehearsed.
    trigger = Operation("trigger pass", lambda _: stack.call("trigger", {}), pass_a_minute, PASSES, rehearsed=False)
    yield trigger
    yield from _reading(waiting[0])
    yield from _writing(stack)


def _reading(waiting: TaskId) -> Iterator[Operation]:
    yield Operation("get", _sent("GET", f"tasks/{waiting}"))
    yield Operation("explain", _sent("GET", f"tasks/{waiting}/explain"))
    yield Operation("summary", _sent("GET", "summary"))
    yield Operation("list, 100", _sent("GET", "tasks", query="limit=100"), repeats=3)
    yield Operation(f"list, {FAILED_TASKS} failed", _sent("GET", "tasks", query="state=failed&limit=100"), repeats=5)
    filtered = f"type={REPORT}&tag=team:{TEAMS[0]}&limit=20"
    yield Operation("list, type and tag", _sent("GET", "tasks", query=filtered), repeats=3)
    few = f"tag={':'.join(RARE)}&limit=100"
    yield Operation("list, a tag of few", _sent("GET", "tasks", query=few), repeats=2, rehearsed=False)
    yield Operation("preview", _sent("POST", "schedules/preview", {"cron": "0 * * * *", "count": 100}))


def _writing(stack: Stack) -> Iterator[Operation]:
    numbers = count(1)

    def work(_prepared: object) -> None:
        kept = stack.work(Priority.NORMAL)
        assert not kept, kept  # noqa: S101 - a task that the worker could not run is not measured

    _sent("POST", "schedules", {"name": _SCHEDULE, "cron": "0 * * * *", "task": {"type": SUCCEEDING}})(None)
    yield Operation("occurrences", _sent("GET", f"schedules/{_SCHEDULE}/occurrences", query="limit=100"))
    yield Operation("create", _sent("POST", "tasks", {"type": SUCCEEDING, "priority": "high", "payload": {"n": 1}}))
    yield Operation("claim and finish", work, lambda: stack.create(TaskSpec(SUCCEEDING, b'{"n":1}')))
    yield Operation(
        f"plan, {_NODES} nodes",
        lambda topology: composed(TopologyServices).state_machine_steps.plan(topology, fence=1),
        lambda: running_topology(_NODES, OWNER, next(numbers)),
        repeats=2,
    )


def _sent(method: str, path: str, body: object = None, query: str = "") -> Callable[[object], None]:
    """Return a function that sends a request to the API."""
    api = Gateway(headers={"X-Duetime-Owner": OWNER})

    def run(_prepared: object) -> None:
        answer = api.send(method, f"/v1/{path}", body, query=query)
        assert answer.status in {200, 201}, answer.text  # noqa: S101 - what was refused is not measured

    return run


def measured(operation: Operation, meter: CallMeter) -> Used:
    """Run an operation several times, and return its usage."""
    used = Used()
    for repeat in range(-operation.rehearsed, operation.repeats):
        prepared = operation.prepare()
        meter.reset()
        began = time.process_time()
        operation.run(prepared)
        cpu = time.process_time() - began
        if repeat >= 0:
            used.calls = max(used.calls, meter.total_requests)
            used.read_units = max(used.read_units, meter.read_units)
            used.write_units = max(used.write_units, meter.table_units + meter.index_units)
            used.cpu = min(used.cpu, cpu)
    return used
