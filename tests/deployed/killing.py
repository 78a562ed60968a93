"""A test that kills workers, restarts AWS, stops ticks, and duplicates messages while tasks run: `make kill`."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.console import Console

from duetime.adapters.sqs import body_of
from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.ids import TaskId
from duetime.domain.limits import SHORTEST_WORKER_LEASE_SECONDS
from duetime.domain.tasks.task_options import Priority
from duetime.environment_variables import Variable
from duetime_client import Client
from duetime_common.limits import MAX_BATCH
from duetime_local import demo_receiver
from duetime_local.emulator.lambda_warm_up import warm_up
from duetime_local.terminal import Display
from tests.deployed.processes import processes_of
from tests.deployed.restarting import restartable
from tests.deployed.stopping import no_ticks
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client import Task
    from duetime_local.demo_receiver import Execution, Receiver
    from duetime_local.stack import Stack
    from tests.deployed.restarting import Restartable

LEASE_SECONDS = SHORTEST_WORKER_LEASE_SECONDS
DOUBLED = 0.1
"""The fraction of tasks whose message is sent twice."""
KILL, RESTART = "kill", "restart"
PATIENCE_SECONDS = 420
"""The longest wait. If a worker dies before it first changes a message's visibility, only a scan recovers the task."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults that the test causes in the stack.

    Attributes:
        tasks: the number of tasks, which are due within `seconds`; tasks beyond the trigger's look-ahead need its
            ticks.
        kills: how often half of the worker's processes are killed.
        restarts: how often the embedded AWS is stopped and started again, including all its workers.
        every: the average number of seconds between two kills.
        outage: the number of seconds from the start during which there are no ticks.
    """

    tasks: int = 30
    seconds: int = 20
    work_ms: int = 1_500
    kills: int = 4
    restarts: int = 0
    every: float = 2.0
    outage: int = 20
    seed: int = 0


@dataclass(slots=True)
class Came:
    """The result of a plan.

    Attributes:
        away: the number of seconds for which the embedded AWS was stopped, for each restart.
        recoveries: the number of seconds from a kill or a restart to the next start of each interrupted task.
    """

    ended: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    kills: int = 0
    away: list[float] = field(default_factory=list)
    doubled: int = 0
    again: int = 0
    overlaps: int = 0
    early: int = 0
    after_success: int = 0
    late: float = 0.0
    recoveries: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True, slots=True)
class Struck:
    """A task that ran during a kill or a restart."""

    what: str
    at: float
    task_id: str


def short_lease(over: Stack) -> str:
    """Set a lease for the worker function that is short enough for a test, and return the function's name."""
    functions = over.emulator.client("lambda")
    name = over.deployment.outputs["WorkerFunctionName"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    short = {**variables, Variable.LEASE_SECONDS.value: str(LEASE_SECONDS)}
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": short})
    return name


def worker_functions(over: Stack) -> list[str]:
    """The functions that must be warm when a stack is ready; the changed lease has ended the worker's processes."""
    return [over.deployment.outputs[f"{name}FunctionName"] for name in ("Worker", "Egress", "Topology")]


def killed(standing: Restartable, client: Client, counter: Receiver, plan: Plan) -> Came:
    """Create tasks, kill workers or restart AWS, and wait until all tasks have ended."""
    random_source = random.Random(plan.seed)  # noqa: S311 - the plan can be carried out again
    came = Came()
    worker = short_lease(standing.over)
    warm_up(standing.over.emulator, *worker_functions(standing.over))
    tasks = [_created(client, counter, plan, random_source) for _ in range(plan.tasks)]
    for task in tasks:
        if random_source.random() < DOUBLED:
            _double(standing.over, task)
            came.doubled += 1
    struck = _strike(standing, client, worker, plan, came, tasks)
    until(lambda: set(_states(client, tasks).values()) == {"succeeded"}, PATIENCE_SECONDS)
    ends = [client.tasks.get(task.id) for task in tasks]
    for task in ends:
        came.ended[task.state] += 1
        came.again += task.attempt > 1
    _count(came, ends, counter.executions)
    for one in struck:
        starts = (ran.started_at_ms / 1000 for ran in counter.executions if ran.task_id == one.task_id)
        if later := sorted(start - one.at for start in starts if start > one.at):
            came.recoveries[one.what].append(later[0])
    return came


def _created(client: Client, counter: Receiver, plan: Plan, random_source: random.Random) -> Task:
    due = datetime.now(UTC) + timedelta(seconds=3 + random_source.random() * plan.seconds)
    payload = {"job": "kill", "work_ms": plan.work_ms, "fail_times": 0, "report_url": counter.report_url}
    return client.tasks.create("ci.job", due_at=due, payload=payload, retry={"max_attempts": 50, "max_seconds": 2})


def _double(over: Stack, task: Task) -> None:
    """Send a task's message a second time, so that it arrives at about the task's due time."""
    due = int(task.due_at.timestamp() * 1000)
    message = Message(TaskId(task.id), 0, due, Priority.NORMAL, "local")
    delay = max(0, int(task.due_at.timestamp() - time.time()))
    over.emulator.client("sqs").send_message(
        QueueUrl=over.deployment.outputs["QueueUrlNormal"], MessageBody=body_of(message), DelaySeconds=delay
    )


def _strike(
    standing: Restartable, client: Client, worker: str, plan: Plan, came: Came, tasks: Sequence[Task]
) -> list[Struck]:
    """Kill workers while ticks are stopped, then restart AWS, and return the tasks that ran at these times."""
    random_source = random.Random(plan.seed + 1)  # noqa: S311 - same
    struck: list[Struck] = []
    over_at = time.monotonic() + plan.outage

    def strike(runs: list[str], until_: float) -> None:
        """Carry out kills and restarts until this time, each of them while a task runs."""
        while runs and time.monotonic() < until_:
            # The intervals vary, so that running tasks are interrupted at random moments.
            time.sleep(random_source.expovariate(1 / plan.every))
            states = _states(client, tasks)
            if all(state == "succeeded" for state in states.values()):
                return
            running = [task_id for task_id, state in states.items() if state == "running"]
            processes = processes_of(standing.over.emulator, worker)
            if not running or not processes:
                continue
            at, what = time.time(), runs.pop(0)
            if what == RESTART:
                came.away.append(standing.restart())
            else:
                came.kills += 1
                _kill(random_source.sample(processes, max(1, len(processes) // 2)))
            struck.extend(Struck(what, at, task_id) for task_id in running)

    kills = [KILL] * plan.kills
    with no_ticks(standing.over, plan.outage):
        strike(kills, over_at)
    strike([*kills, *[RESTART] * plan.restarts], over_at + PATIENCE_SECONDS)
    return struck


def _kill(processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _states(client: Client, tasks: Sequence[Task]) -> dict[str, str]:
    ids = [task.id for task in tasks]
    chunks = (ids[first : first + MAX_BATCH] for first in range(0, len(ids), MAX_BATCH))
    return {task.id: task.state for chunk in chunks for task in client.tasks.list(ids=chunk)}


def _count(came: Came, ends: Sequence[Task], executions: Sequence[Execution]) -> None:
    """Count the violations in the receiver's record of its calls."""
    for task in ends:
        mine = sorted((one for one in executions if one.task_id == task.id), key=lambda one: one.started_at_ms)
        came.early += any(one.started_at_ms < int(task.due_at.timestamp() * 1000) for one in mine)
        came.overlaps += any(former.ended_at_ms > later.started_at_ms for former, later in pairwise(mine))
        came.after_success += len([one for one in mine if one.succeeded]) > 1
        came.late = max(came.late, *(one.started_at_ms / 1000 - task.due_at.timestamp() for one in mine[:1]), 0.0)


def table(came: Came) -> Iterator[str]:
    """The lines of text that describe the result."""
    away = ", ".join(f"{seconds:.1f} s" for seconds in came.away) or "never"
    yield f"ended {dict(came.ended)}; kills {came.kills}, AWS away {away}, messages sent twice {came.doubled}"
    yield f"tasks that needed more than one attempt {came.again}, the latest first start {came.late:.1f} s"
    yield f"overlaps {came.overlaps}, early {came.early}, done twice before the outcome was stored {came.after_success}"
    for what, seconds in came.recoveries.items():
        lengths = sorted(one / LEASE_SECONDS for one in seconds)
        middle, most, last = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10], lengths[-1]
        yield (
            f"from a {what} to the next start, in leases of {LEASE_SECONDS} s: {len(lengths)} tasks,"
            f" median {middle:.1f}, 90% {most:.1f}, longest {last:.1f}"
        )


def main() -> int:
    """Run a plan on a separate stack, and return 1 if a guarantee was violated."""
    parser = argparse.ArgumentParser(prog="kill", description="Kill workers of a local stack during tasks, at random.")
    parser.add_argument("--tasks", type=int, default=120)
    parser.add_argument("--seconds", type=int, default=360, help="the period over which the tasks are due")
    parser.add_argument("--work-ms", type=int, default=5_000, help="the duration of each task")
    parser.add_argument("--kills", type=int, default=20, help="how often half of the worker's processes are killed")
    parser.add_argument("--restarts", type=int, default=1, help="how often the embedded AWS is restarted")
    parser.add_argument("--outage", type=int, default=300, help="the number of seconds without ticks")
    parser.add_argument("--every", type=float, default=12.0, help="the average number of seconds between two kills")
    parser.add_argument("--seed", type=int, default=0)
    plan = Plan(**vars(parser.parse_args()))
    with (
        restartable(Display(Console())) as standing,
        demo_receiver.receiving() as counter,
        Client(standing.over.ready.api_url) as client,
    ):
        came = killed(standing, client, counter, plan)
    print(*table(came), sep="\n")  # noqa: T201 - its report
    return int(came.ended != {"succeeded": plan.tasks} or came.overlaps + came.early > 0)


if __name__ == "__main__":
    sys.exit(main())
