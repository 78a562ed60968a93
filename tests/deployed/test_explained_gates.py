"""Tests of the explanations of a task's waits, gate by gate, on the deployed stack."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from duetime.domain.explanations.gate import GateName, GateState
from duetime.domain.times import MINUTE
from duetime.environment_variables import Variable
from duetime_client import Client
from duetime_client.errors import ApiError
from duetime_testing.simulation.gateway import event_of as request_of
from tests.deployed.shifted import ShiftedClock, event_of, function_at
from tests.deployed.test_path import TYPE, undelivered
from tests.functions.receivers import receiving
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from duetime_client import HttpTarget, NewTask, Task
    from duetime_local.stack import Stack
    from tests.functions.receivers import Receiver

OWNER = "gates"
LONG = 3600
NOT_MADE: Mapping[GateName, str] = {
    GateName.DISPATCH: "it needs a start within a second of the due time, which a busy machine cannot promise",
    GateName.WORKER: "a worker returns a task for which it has no time left only after most of its 15 minutes",
    GateName.TARGET: "the embedded SQS never throttles requests",
    GateName.TOPOLOGY: "the embedded Step Functions starts every execution",
    GateName.OTHER: "no code of this version gives a reason without a gate of its own",
    GateName.ORDER: "a test of this gate would take an hour; it is tested in virtual time",
    GateName.GROUP: "as for an ordered key, a test would take an hour; the gate is tested in virtual time",
    GateName.UNIQUE_KEY: "only previews of tasks that are not created have this gate",
    GateName.QUOTA: "only previews of tasks that are not created have this gate",
    GateName.NOT_RECORDED: "records of this version contain the reason for all waits except those of lost retries",
}
"""The gates that cannot be created here.

`tests/scenarios/test_task_explanations.py` covers all gates in virtual time.
"""


@dataclass
class World:
    """The deployed stack, a separate owner, and an endpoint for the owner's tasks.

    Attributes:
        ahead_ms: how many milliseconds after the current time the task is explained.
    """

    stack: Stack
    client: Client
    endpoint: Receiver
    opened: ExitStack
    ahead_ms: int = 0
    created: list[str] = field(default_factory=list)

    def target(self, name: str, status: int = 200) -> HttpTarget:
        """An endpoint that responds with this status."""
        self.endpoint.answers["PUT", f"/{name}?action=run"] = (status, b"")
        return {"kind": "http", "url": f"{self.endpoint.url}/{name}"}

    def create(self, type_: str = TYPE, **fields: Any) -> Task:  # noqa: ANN401 - any fields of a task
        """Create a task that is cancelled at the end of the test."""
        task = self.client.tasks.create(type_, **fields)
        self.cancel_later(task.id)
        return task

    def cancel_later(self, task_id: str) -> None:
        """Cancel a task at the end of the test, unless the task has ended."""

        def cancel() -> None:
            with suppress(ApiError):
                self.client.tasks.cancel(task_id)

        self.opened.callback(cancel)

    def accepted(self, **fields: Any) -> Task:  # noqa: ANN401 - same
        """A task whose target has accepted the work and continues to work."""
        task = self.create(target=self.target("accepted", 202), **fields)
        assert until(lambda: self.client.tasks.get(task.id).awaiting_notification)
        return task

    def explained(self, task_id: str) -> dict[str, Any]:
        """Explain a task at the shifted time, and check that the durations of the gates add up to the total."""
        path = f"/v1/tasks/{task_id}/explain"
        headers = {"x-duetime-owner": OWNER}
        with function_at(self.stack, "api", ShiftedClock(self.ahead_ms)) as api:
            answer = api(request_of("GET", path, None, headers, "", None, is_base64=False))
        body: dict[str, Any] = json.loads(answer["body"])
        if answer["statusCode"] == 404:
            # A node has an identifier even before it has a task.
            return {"gates": []}
        assert sum(gate["duration_ms"] or 0 for gate in body["gates"]) == body["total_ms"]
        return body


Case: TypeAlias = "Callable[[World], str]"


def due(world: World) -> str:
    """The task is due in an hour."""
    return world.create(delay_seconds=LONG).id


def creation(world: World) -> str:
    """The task was created an hour after its due time."""
    return world.create(due_at=datetime.now(UTC) - timedelta(hours=1), target=world.target("late")).id


def paused(world: World) -> str:
    """A user has paused the task."""
    task = world.create(delay_seconds=LONG)
    world.client.tasks.pause(task.id)
    return task.id


def trigger(world: World) -> str:
    """Twenty minutes have passed without a tick."""
    world.ahead_ms = 21 * MINUTE
    return world.create(delay_seconds=20 * 60).id


def queue(world: World) -> str:
    """No pull worker requests tasks of the task's type."""
    return world.create("pulled", target={"kind": "pull"}).id


def retry(world: World) -> str:
    """The task's first attempt has failed."""
    policy = {"max_attempts": 5, "initial_seconds": 600}
    return world.create(target=world.target("failing", 500), retry=policy).id


def run(world: World) -> str:
    """The task's handler runs for several seconds."""
    return world.create(TYPE, payload={"job": "gate", "work_ms": 15_000, "fail_times": 0}).id


def recovery(world: World) -> str:
    """The lease of the task's worker has not been renewed for an hour."""
    task_id = run(world)
    assert until(lambda: world.client.tasks.get(task_id).state == "running")
    world.ahead_ms = 60 * MINUTE
    return task_id


def notification(world: World) -> str:
    """The task's target has accepted the work."""
    return world.accepted().id


def lock(world: World) -> str:
    """Another task holds the task's lock."""
    world.accepted(lock={"key": "gate"})
    return world.create(target=world.target("locked"), lock={"key": "gate"}).id


def rate(world: World) -> str:
    """Another task has used the only start per hour that the rate allows."""
    hourly = {"key": "gate", "limit": 1, "per_seconds": 3_600}
    first = world.create(target=world.target("first"), rate=hourly)
    assert until(lambda: world.client.tasks.get(first.id).state == "succeeded")
    second = world.create(target=world.target("second"), rate=hourly)
    assert until(lambda: world.client.tasks.get(second.id).waiting_for)
    return second.id


def switch(world: World) -> str:
    """The task's type is stopped, which every worker knows after five seconds."""
    world.client.switches.put("type", "stopped", stopped=True, reason="a bad release")
    world.opened.callback(world.client.switches.delete, "type", "stopped")
    return world.create("stopped", target=world.target("stopped"), delay_seconds=8).id


def concurrency_limit(world: World) -> str:
    """Only one task of the type may run, and another task of the type is running."""
    world.client.switches.put("type", "limited", max_concurrent=1, reason="a small database")
    world.opened.callback(world.client.switches.delete, "type", "limited")
    first = world.create("limited", target=world.target("accepted", 202), delay_seconds=8)
    assert until(lambda: world.client.tasks.get(first.id).awaiting_notification)
    return world.create("limited", target=world.target("limited")).id


def circuit(world: World) -> str:
    """All calls to the host of the task's target have failed."""
    policy = {"max_attempts": 100, "initial_seconds": 1, "max_seconds": 1}
    tasks = [world.create(target=world.target("down", 503), retry=policy).id for _ in range(8)]

    def held() -> str:
        waits = {each: world.client.tasks.get(each).waiting_for for each in tasks}
        return next((each for each, wait in waits.items() if wait is not None and wait.reason == "circuit"), "")

    return until(held)


def parents(world: World) -> str:
    """The task's parent node has not ended."""
    nodes = {
        "first": {"type": TYPE, "target": world.target("accepted", 202)},
        "second": {"type": TYPE, "target": world.target("second"), "depends_on": ["first"]},
    }
    topology = world.client.topologies.create({"nodes": nodes})
    world.cancel_later(topology.id)

    def second() -> str:
        return str(world.client.topologies.get(topology.id).nodes["second"].task_id or "")

    return until(second)


def schedule(world: World) -> str:
    """The task's schedule was paused after the run was placed."""
    name = "gate-paused"
    world.client.schedules.create(name, rate="1 minute", task={"type": TYPE, "target": world.target("paused")})
    world.opened.callback(world.client.schedules.delete, name)

    def placed() -> str:
        runs = list(world.client.schedules.list_runs(name))
        return next((each.task_id for each in runs if each.state == "scheduled" and each.task_id), "")

    found = until(placed)
    world.client.schedules.pause(name, "a release")
    return found


def overlap(world: World) -> str:
    """The previous run of the schedule has not ended."""
    name = "gate-overlap"
    task: NewTask = {"type": TYPE, "target": world.target("accepted", 202)}
    world.client.schedules.create(name, cron="0 0 1 1 *", overlap="buffer_one", task=task)
    world.opened.callback(world.client.schedules.delete, name)
    first = world.client.schedules.run(name)
    world.cancel_later(first.id)
    assert until(lambda: world.client.tasks.get(first.id).awaiting_notification)
    second = world.client.schedules.run(name)
    world.cancel_later(second.id)
    return second.id


def handlers(world: World) -> str:
    """The task's worker cannot import the handlers' package."""
    sqs = world.stack.emulator.client("sqs")
    with undelivered(world.stack, "QueueUrlLow") as arn:
        task = world.create(TYPE, priority="low")

        def received() -> Any:  # noqa: ANN401 - a message, as boto3 has it
            url = world.stack.deployment.outputs["QueueUrlLow"]
            found = sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"], VisibilityTimeout=60
            )
            return next((each for each in found.get("Messages", []) if task.id in each["Body"]), None)

        message = until(received)
        with function_at(world.stack, "worker", ShiftedClock(0), {Variable.HANDLERS: "absent_handlers"}) as worker:
            worker(event_of(message, arn))
    return task.id


def follow_up(world: World) -> str:
    """The cleanup of the task's target takes several seconds."""
    world.endpoint.seconds = 4
    target = {**world.target("cleans"), "phases": ["clean"]}
    world.endpoint.answers["PUT", "/cleans?action=clean"] = (200, b"")
    task = world.create(target=target)
    assert until(lambda: world.client.tasks.get(task.id).state == "succeeded")
    return task.id


def ended(world: World) -> str:
    """The task failed before a user retried it."""
    task = world.create(target=world.target("once", 500), retry={"max_attempts": 1})
    assert until(lambda: world.client.tasks.get(task.id).finished_at)
    world.target("once")
    world.client.tasks.retry(task.id)
    return task.id


def approval(world: World) -> str:
    """Nobody has decided about the task yet."""
    return world.client.tasks.create("sign-off", target={"kind": "approval"}).id


def event(world: World) -> str:
    """The signal for which the task waits has not been sent."""
    return world.client.tasks.create("payment", target={"kind": "wait_for_event", "event": "order.paid"}).id


WAITING, AHEAD, PASSED = GateState.WAITING, GateState.AHEAD, GateState.PASSED
CASES: Mapping[GateName, tuple[Case, GateState]] = {
    GateName.CREATION: (creation, PASSED),
    GateName.DUE: (due, WAITING),
    GateName.PARENTS: (parents, WAITING),
    GateName.PAUSED: (paused, WAITING),
    GateName.TRIGGER: (trigger, WAITING),
    GateName.QUEUE: (queue, WAITING),
    GateName.SCHEDULE: (schedule, AHEAD),
    GateName.OVERLAP: (overlap, WAITING),
    GateName.SWITCH: (switch, WAITING),
    GateName.HANDLERS: (handlers, WAITING),
    GateName.LOCK: (lock, WAITING),
    GateName.RATE: (rate, WAITING),
    GateName.APPROVAL: (approval, WAITING),
    GateName.EVENT: (event, WAITING),
    GateName.CONCURRENCY_LIMIT: (concurrency_limit, WAITING),
    GateName.CIRCUIT: (circuit, WAITING),
    GateName.RETRY: (retry, WAITING),
    GateName.RUN: (run, WAITING),
    GateName.NOTIFICATION: (notification, WAITING),
    GateName.RECOVERY: (recovery, WAITING),
    GateName.FOLLOW_UP: (follow_up, WAITING),
    GateName.ENDED: (ended, PASSED),
}


@contextmanager
def world_of(stack: Stack) -> Iterator[World]:
    """The deployed stack, and a separate endpoint and client for one case."""
    with receiving() as endpoint, Client(stack.ready.api_url, owner=OWNER) as client, ExitStack() as opened:
        yield World(stack, client, endpoint, opened)


@pytest.mark.slow
@pytest.mark.parametrize("gate", CASES)
def test_a_gate_is_explained(deployed: Stack, gate: GateName) -> None:
    """The explanation has the gate in the expected state, and the durations of the gates add up to the total."""
    case, state = CASES[gate]
    with world_of(deployed) as world:
        task_id = case(world)
        assert task_id

        def found() -> dict[str, Any] | None:
            gates = world.explained(task_id)["gates"]
            return next((each for each in gates if (each["name"], each["state"]) == (gate, state)), None)

        seen = until(found, seconds=60)
        assert seen, world.explained(task_id)
        assert seen["text"]


def test_each_gate_has_a_case_or_a_reason_for_having_none() -> None:
    """Each gate, including new gates, has either a case or a reason why it cannot be tested here."""
    assert set(CASES) | set(NOT_MADE) == set(GateName)
    assert not set(CASES) & set(NOT_MADE)
