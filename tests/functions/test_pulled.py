"""Tests of pulled tasks with the real adapters: their costs, exclusive leases, and messages on wrong queues."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
import pytest

from duetime import composition
from duetime.composition import Platform, composed
from duetime.composition.attempts import PullServices
from duetime.composition.core import CoreServices
from duetime.domain.tasks.attempt_results import Succeeded
from duetime.domain.tasks.pull_leases import LeaseRequest
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import SECOND
from duetime.environment_variables import Variable
from tests.adapters.clouds import Cloud
from tests.functions.meter import Meter
from tests.functions.stack import OWNER, Stack
from tests.functions.test_meter import PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.services.pull.lease import Leased
    from duetime_local.emulator import Emulator

TYPE = "pulled"


def settings_of(cloud: Cloud) -> dict[str, str]:
    """Settings for one pulled type with a separate queue."""
    url = cloud.sqs.create_queue(QueueName=f"pulled-{uuid4().hex[:8]}")["QueueUrl"]
    return {Variable.PULLED_QUEUES: json.dumps({TYPE: url}), Variable.PULLERS: json.dumps({TYPE: ["*"]})}


@pytest.fixture
def metered(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Stack, Meter]]:
    """The Lambda functions over the embedded engine, with a meter of all calls."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    session = boto3.Session()
    meter = Meter(session)
    cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
    stack = Stack(cloud, session, settings_of(cloud))
    meter.reset()
    yield stack, meter
    composition.use(None)


def lease(most: int = 10) -> list[Leased]:
    """Lease at most this many ready tasks."""
    return composed(PullServices).leases.lease(OWNER, LeaseRequest((TYPE,), most, 0, 30 * SECOND, "w1"))


def complete(leased: Leased) -> None:
    """Report the success of a leased task."""
    composed(PullServices).reports.finish(OWNER, leased.key, Succeeded(b'{"rows":3}'))


def test_a_pulled_task_costs_as_much_as_any_other_task(metered: tuple[Stack, Meter]) -> None:
    """A pulled task costs a record, a claim, an outcome and a place in the owner's list.

    The completion request reads the record to find the owner.
    """
    stack, meter = metered
    stack.create(TaskSpec(TYPE, payload=PAYLOAD))
    assert (meter.table_units, meter.index_units) == (1, 1)
    (leased,) = lease()
    assert (meter.table_units, meter.index_units, meter.requests["ReceiveMessage"]) == (2, 1, 1)
    assert meter.requests["ChangeMessageVisibilityBatch"] == 0
    meter.reset()
    complete(leased)
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 1)
    assert meter.requests == {"GetItem": 1, "UpdateItem": 1, "DeleteMessageBatch": 1}


def test_an_expiry_costs_a_pulled_task_one_unit(metered: tuple[Stack, Meter]) -> None:
    """A pulled task with an expiry costs one timer, after which a worker function ends the task if nobody leased it."""
    stack, meter = metered
    stack.create(TaskSpec(TYPE, payload=PAYLOAD, expires_seconds=600))
    assert (meter.table_units, meter.index_units) == (1 + 1, 1)
    (leased,) = lease()
    complete(leased)
    assert (meter.table_units, meter.index_units) == (3 + 1, 1)


def test_a_heartbeat_of_a_lease_costs_one_unit(metered: tuple[Stack, Meter]) -> None:
    """A heartbeat stores the lease and the progress in one write, and extends the message's visibility timeout."""
    stack, meter = metered
    stack.create(TaskSpec(TYPE, payload=PAYLOAD))
    (leased,) = lease()
    meter.reset()
    composed(PullServices).reports.heartbeat(OWNER, leased.key, None)
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 1)
    assert meter.requests["ChangeMessageVisibilityBatch"] == 1


def test_taking_over_a_lease_that_nobody_received_costs_two_units(metered: tuple[Stack, Meter]) -> None:
    """A claim that finds an expired lease without an attempt is refused, returns the record, and is repeated.

    The two claims cost two units and no read.
    """
    stack, meter = metered
    task = stack.create(TaskSpec(TYPE, payload=PAYLOAD))
    assert lease()
    stack.clock.at += 40 * SECOND
    composed(CoreServices).enqueuer.send_due([task])
    meter.reset()
    (leased,) = lease()
    assert (leased.task.attempt, leased.task.fence) == (1, 2)
    assert (meter.table_units, meter.index_units) == (2, 0)
    meter.reset()
    complete(leased)
    assert (meter.table_units, meter.index_units, meter.read_units) == (1, 0, 1)


def test_a_lease_request_that_finds_no_task_costs_no_unit(metered: tuple[Stack, Meter]) -> None:
    """A lease request that finds no task costs one SQS request, and neither reads nor writes the table."""
    _stack, meter = metered
    assert lease() == []
    assert meter.requests == {"ReceiveMessage": 1}


@pytest.mark.slow
def test_sixteen_workers_lease_each_task_once(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen workers that poll one queue at the same time lease each task exactly once, and no task is left."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    session = boto3.Session()
    cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
    stack = Stack(cloud, session, settings_of(cloud))
    # The test uses real time and random numbers, because sixteen threads share the composition.
    composition.use(Platform(environ={**os.environ, **stack.environ}))
    try:
        made = {stack.create(TaskSpec(TYPE)).id for _ in range(60)}
        taken: list[Any] = []

        def work() -> None:
            misses = 0
            while misses < 3:
                leases = lease(most=3)
                misses = 0 if leases else misses + 1
                taken.extend(leased.task.id for leased in leases)
                for leased in leases:
                    complete(leased)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert len(taken) == len(made)
        assert set(taken) == made
        states = {task.state for task in composed(CoreServices).stores.tasks.read_many(sorted(made)).values()}
        assert states == {State.SUCCEEDED}
    finally:
        composition.use(None)


def test_a_worker_function_leaves_a_pulled_task_to_pull_workers(stack: Stack) -> None:
    """If a process does not know the type's queue, a pulled task waits without an attempt, and is checked again."""
    known = settings_of(stack.cloud)
    stack.environ.update(known)
    task = stack.create(TaskSpec(TYPE))
    for name in known:
        del stack.environ[name]
    composition.use(composition.Platform(environ=stack.environ, clock=stack.clock, clients=composed().platform.clients))
    composed(CoreServices).enqueuer.send_due([task])
    assert stack.work(Priority.NORMAL) == []
    seen = stack.get(task)
    assert (seen.state, seen.attempt, seen.waiting_for) == (State.WAITING, 0, f"pull workers of {TYPE}")
    assert sum(stack.waiting(Priority.NORMAL).values()) == 1
