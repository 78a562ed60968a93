"""Workers killed in mid-task at random, ticks that stop, messages that come twice: what becomes of the tasks.

python -m tests.deployed.killing --tasks 120 --seconds 90 --outage 300
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console

from duetime.adapters.sqs.messages import body_of
from duetime.domain.dispatch import Message
from duetime.domain.ids import TaskId
from duetime.domain.task import Priority
from duetime.settings import Variable
from duetime_client import Client
from duetime_client.client import MAX_BATCH
from local import receiver, stack
from local.display import Display
from local.emulator.workers import processes_of
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client import Task
    from local.receiver import Execution, Receiver
    from local.stack import Stack

LEASE_SECONDS = 6
DOUBLED = 0.1
"""So many of the messages are sent twice."""
PATIENCE_SECONDS = 420
"""A worker that dies between receiving and its first change of visibility is made good by a patrol only."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done to the stack.

    Attributes:
        tasks: how many, due over `seconds`.
        kills: how often half of the processes of the worker are killed.
        every: seconds between two kills, on the average.
        outage: seconds without ticks, from the start on.
    """

    tasks: int = 30
    seconds: int = 20
    work_ms: int = 1_500
    kills: int = 4
    every: float = 2.0
    outage: int = 20
    seed: int = 0


@dataclass(slots=True)
class Came:
    """What came of it.

    Attributes:
        recoveries: seconds from a kill to the next start of a task that it struck.
    """

    ended: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    kills: int = 0
    doubled: int = 0
    again: int = 0
    overlaps: int = 0
    early: int = 0
    after_success: int = 0
    recoveries: list[float] = field(default_factory=list)


@contextmanager
def short_lease(over: Stack) -> Iterator[str]:
    """The worker function's name, with a lease that can be waited for."""
    functions = over.emulator.client("lambda")
    name = over.deployment.outputs["WorkerFunctionName"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    short = {**variables, Variable.LEASE_SECONDS.value: str(LEASE_SECONDS)}
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": short})
    try:
        yield name
    finally:
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


def killed(over: Stack, client: Client, counter: Receiver, plan: Plan) -> Came:
    """Create tasks, strike, and wait until all have ended."""
    chance = random.Random(plan.seed)  # noqa: S311 - the plan can be carried out again
    came = Came()
    with short_lease(over) as worker:
        tasks = [_created(client, counter, plan, chance) for _ in range(plan.tasks)]
        for task in tasks:
            if chance.random() < DOUBLED:
                _double(over, task)
                came.doubled += 1
        struck = _strike(over, client, worker, plan, chance, tasks)
        until(lambda: set(_states(client, tasks).values()) == {"succeeded"}, PATIENCE_SECONDS)
        ends = [client.get_task(task.id) for task in tasks]
    came.kills = len({at for at, _ in struck})
    for task in ends:
        came.ended[task.state] += 1
        came.again += task.attempt > 1
    _count(came, ends, counter.executions)
    by_task = {
        task.id: sorted(one.started_at_ms for one in counter.executions if one.task_id == task.id) for task in ends
    }
    for at, task_id in struck:
        later = [start for start in by_task[task_id] if start > at * 1000]
        if later:
            came.recoveries.append(later[0] / 1000 - at)
    return came


def _created(client: Client, counter: Receiver, plan: Plan, chance: random.Random) -> Task:
    due = datetime.now(UTC) + timedelta(seconds=3 + chance.random() * plan.seconds)
    payload = {"job": "kill", "work_ms": plan.work_ms, "fail_times": 0, "report_url": counter.report_url}
    return client.create_task("ci.job", at=due, payload=payload, retry={"max_attempts": 50, "max_seconds": 2})


def _double(over: Stack, task: Task) -> None:
    """Send a task's message a second time, to come at about its due time."""
    due = int(task.due_at.timestamp() * 1000)
    message = Message(TaskId(task.id), 0, due, Priority.NORMAL, "local")
    delay = max(0, int(task.due_at.timestamp() - time.time()))
    over.emulator.client("sqs").send_message(
        QueueUrl=over.deployment.outputs["QueueUrlNormal"], MessageBody=body_of(message), DelaySeconds=delay
    )


def _strike(
    over: Stack, client: Client, worker: str, plan: Plan, chance: random.Random, tasks: Sequence[Task]
) -> list[tuple[float, str]]:
    """Kill workers while tasks become due; when, and which tasks ran then."""
    struck: list[tuple[float, str]] = []
    kills = 0
    with _no_ticks(over, plan.outage):
        while kills < plan.kills:
            # Never at a fixed pace: a random moment of whatever runs.
            time.sleep(chance.expovariate(1 / plan.every))
            states = _states(client, tasks)
            if all(state == "succeeded" for state in states.values()):
                break
            running = [task_id for task_id, state in states.items() if state == "running"]
            processes = processes_of(over.emulator, worker)
            if not running or not processes:
                continue
            at = time.time()
            for process in chance.sample(processes, max(1, len(processes) // 2)):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            kills += 1
            struck += [(at, task_id) for task_id in running]
    return struck


def _states(client: Client, tasks: Sequence[Task]) -> dict[str, str]:
    ids = [task.id for task in tasks]
    chunks = (ids[first : first + MAX_BATCH] for first in range(0, len(ids), MAX_BATCH))
    return {task.id: task.state for chunk in chunks for task in client.list_tasks(ids=chunk)}


@contextmanager
def _no_ticks(over: Stack, seconds: int) -> Iterator[None]:
    """Stop the trigger's clock, at least for so long."""
    # The emulator's client is typed for the services that others call.
    scheduler: Any = cast("Any", over.emulator).client("scheduler")
    started = time.monotonic()
    schedules = [
        scheduler.get_schedule(Name=one["Name"], GroupName=one["GroupName"])
        for one in scheduler.list_schedules()["Schedules"]
    ]
    kept = ("Name", "GroupName", "ScheduleExpression", "FlexibleTimeWindow", "Target")
    fields = [{name: one[name] for name in kept} for one in schedules]
    for one in fields:
        scheduler.update_schedule(**one, State="DISABLED")
    try:
        yield
        time.sleep(max(0.0, started + seconds - time.monotonic()))
    finally:
        for one in fields:
            scheduler.update_schedule(**one, State="ENABLED")


def _count(came: Came, ends: Sequence[Task], executions: Sequence[Execution]) -> None:
    """Look for what must not be, in the receiver's own record."""
    for task in ends:
        mine = sorted((one for one in executions if one.task_id == task.id), key=lambda one: one.started_at_ms)
        came.early += any(one.started_at_ms < int(task.due_at.timestamp() * 1000) for one in mine)
        came.overlaps += any(former.ended_at_ms > later.started_at_ms for former, later in pairwise(mine))
        came.after_success += len([one for one in mine if one.succeeded]) > 1


def table(came: Came) -> Iterator[str]:
    """What came of it, in lines."""
    yield f"ended {dict(came.ended)}; kills {came.kills}, messages sent twice {came.doubled}"
    yield f"tasks that needed more than one attempt {came.again}"
    yield f"overlaps {came.overlaps}, early {came.early}, done twice before the outcome was stored {came.after_success}"
    if lengths := sorted(seconds / LEASE_SECONDS for seconds in came.recoveries):
        middle, last = lengths[len(lengths) // 2], lengths[-1]
        yield f"from a kill to the next start, in leases of {LEASE_SECONDS} s: median {middle:.1f}, longest {last:.1f}"


def main() -> int:
    """Carry out a plan on a stack of its own; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="kill", description="Kill workers of a local stack in mid-task, at random.")
    parser.add_argument("--tasks", type=int, default=120)
    parser.add_argument("--seconds", type=int, default=90, help="over which the tasks are due")
    parser.add_argument("--kills", type=int, default=20, help="how often half of the worker's processes are killed")
    parser.add_argument("--outage", type=int, default=300, help="seconds without ticks")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    plan = Plan(tasks=asked.tasks, seconds=asked.seconds, kills=asked.kills, outage=asked.outage, seed=asked.seed)
    with (
        stack.running(Display(Console()), port=0) as over,
        receiver.receiving() as counter,
        Client(over.ready.api_url) as client,
    ):
        came = killed(over, client, counter, plan)
    print(*table(came), sep="\n")  # noqa: T201 - its report
    return int(came.ended != {"succeeded": plan.tasks} or came.overlaps + came.early > 0)


if __name__ == "__main__":
    sys.exit(main())
