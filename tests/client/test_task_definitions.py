"""Tests task types with a payload class, for callers and for pull workers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, assert_type

import pytest
from pydantic import BaseModel, Field

from duetime.handlers import REGISTRY, handler
from duetime.handlers import Context as HandlerContext
from duetime_client import (
    ApiError,
    AsyncClient,
    Client,
    PayloadInvalid,
    ResultInvalid,
    Task,
    TaskType,
    TimeWithoutZone,
)
from duetime_client.typed_tasks import AsyncTypedTasks, NoTaskType, TypedTasks
from duetime_client.worker import AttemptCancelled, Context, LeaseLost, Worker
from duetime_client.worker_functions import TaskFunction
from tests.client.deployment import NOW

if TYPE_CHECKING:
    from tests.client.deployment import Deployment


class Charge(BaseModel):
    """A payload as a pydantic model."""

    id: int
    amount: int = Field(gt=0)


@dataclass(frozen=True)
class Move:
    """A payload as a dataclass."""

    to: str
    on: datetime


CHARGE = TaskType("charge", Charge)


def test_tasks_of_a_type_are_created_with_its_payload(client: Client, deployment: Deployment) -> None:
    """Tasks are created for now, a time or a delay, with other task fields and with an idempotency key."""
    charges = assert_type(client.tasks.of(CHARGE), TypedTasks[Charge])
    assert_type(charges.create(Charge(id=7, amount=5), tags={"team": "dba"}, idempotency_key="k"), Task)
    charges.at(NOW, Charge(id=8, amount=5))
    charges.delay(60, Charge(id=9, amount=5), priority="high")
    first, second, third = (received.document for received in deployment.received)
    assert first == {"type": "charge", "payload": {"id": 7, "amount": 5}, "tags": {"team": "dba"}}
    assert second == {"type": "charge", "payload": {"id": 8, "amount": 5}, "due_at": NOW.isoformat()}
    assert third == {"type": "charge", "payload": {"id": 9, "amount": 5}, "delay_seconds": 60, "priority": "high"}
    assert deployment.received[0].headers["Idempotency-Key"] == "k"
    assert all(received.headers["Idempotency-Key"] for received in deployment.received)


def test_a_payload_of_another_type_is_rejected_before_it_is_sent(client: Client, deployment: Deployment) -> None:
    """The error for a wrong payload names the field but not its value; a time without a time zone is refused, too."""
    with pytest.raises(PayloadInvalid, match="amount") as caught:
        client.tasks.of(CHARGE).create(Charge.model_construct(id=7, amount=-512))
    assert "-512" not in str(caught.value)
    with pytest.raises(PayloadInvalid):
        client.tasks.of(CHARGE).delay(1, Move("here", NOW))  # type: ignore[arg-type]  # the error that is tested
    with pytest.raises(TimeWithoutZone):
        client.tasks.of(CHARGE).at(NOW.replace(tzinfo=None), Charge(id=7, amount=5))
    assert deployment.received == []


def test_the_error_for_a_class_without_handler_suggests_a_fix(client: Client) -> None:
    """A wrong declaration raises an error that says what to write, not an `AttributeError` at the first creation."""

    class Transfer:
        def run(self, context: HandlerContext, payload: object) -> None: ...

    with pytest.raises(
        NoTaskType, match=r"^Transfer has no task type: write tasks\.of\(TaskType\(type, PayloadClass\)"
    ):
        client.tasks.of(Transfer)
    with pytest.raises(NoTaskType, match=r"write tasks\.of\(TaskType\('charge'\)\)"):
        client.tasks.of("charge")  # type: ignore[call-overload]  # the error that is tested


def test_many_tasks_of_a_type_are_created_at_once(client: Client, deployment: Deployment) -> None:
    """Each task has a separate payload and the shared fields; if any payload is invalid, no task is created."""
    charges = client.tasks.of(CHARGE)
    found = charges.create_batch(
        (Charge(id=number, amount=5) for number in range(120)), due_at=NOW, tags={"team": "dba"}, idempotency_key="k"
    )
    assert_type(found, list[Task | ApiError])
    assert len(found) == 120
    first, second = deployment.received
    assert [request.headers["Idempotency-Key"] for request in (first, second)] == ["k-0", "k-100"]
    assert first.document["tasks"][7] == {
        "type": "charge",
        "payload": {"id": 7, "amount": 5},
        "due_at": NOW.isoformat(),
        "tags": {"team": "dba"},
    }
    deployment.received.clear()
    with pytest.raises(PayloadInvalid, match="amount"):
        charges.create_batch([Charge(id=1, amount=5), Charge.model_construct(id=2, amount=-5)])
    assert deployment.received == []


def test_a_result_is_read_as_a_value_of_a_class(client: Client, deployment: Deployment) -> None:
    """The result is read as a pydantic model or dataclass; an error names invalid fields but not their values."""
    task = client.tasks.create("charge")
    deployment.tasks[task.id] |= {"state": "succeeded", "result": {"id": 7, "amount": 512}}
    found = client.tasks.get(task.id)
    assert assert_type(found.result_as(Charge), Charge) == Charge(id=7, amount=512)
    with pytest.raises(ResultInvalid, match=r"succeeded\) is not a valid Move: to: ") as caught:
        found.result_as(Move)
    assert "512" not in str(caught.value)


def test_the_asynchronous_client_creates_tasks_of_a_type(deployment: Deployment) -> None:
    """The asynchronous client has the same methods as coroutines."""

    async def use() -> Task:
        async with AsyncClient(deployment.url) as client:
            moves = assert_type(client.tasks.of(TaskType("move", Move)), AsyncTypedTasks[Move])
            return assert_type(await moves.delay(5, Move("here", NOW)), Task)

    assert asyncio.run(use()).type == "move"
    assert deployment.received[0].document["payload"] == {"to": "here", "on": "2026-11-21T12:00:00Z"}


def test_tasks_are_created_with_a_registered_handler_function(client: Client, deployment: Deployment) -> None:
    """A program that imports the handlers' package can create tasks with the handler function."""

    @handler("charged in a test", payload=Charge)
    def charge(_context: HandlerContext, payload: Charge) -> int:
        return payload.amount

    del REGISTRY["charged in a test"]
    assert_type(client.tasks.of(charge), TypedTasks[Charge])
    client.tasks.of(charge).create(Charge(id=7, amount=5))
    assert deployment.received[0].document == {"type": "charged in a test", "payload": {"id": 7, "amount": 5}}


def test_without_a_class_any_json_is_a_payload(client: Client, deployment: Deployment) -> None:
    """Without a payload class, any JSON is sent unchanged."""
    client.tasks.of(TaskType[object]("report")).create(["a", 1])
    assert deployment.received[0].document == {"type": "report", "payload": ["a", 1]}


def test_a_pull_worker_function_receives_its_payload_class() -> None:
    """A worker's function gets an instance of the payload class and can return an object, and tests can call it."""
    worker = Worker()

    @worker.task("move", payload=Move)
    def move(_context: Context, payload: Move) -> Move:
        return payload

    assert_type(move, TaskFunction[Move, Move])
    document = {"to": "here", "on": "2026-11-21T12:00:00Z"}
    assert move(Context.for_test(), Move("here", NOW)) == Move("here", NOW)
    assert move.run(Context.for_test(), document) == document
    with pytest.raises(PayloadInvalid, match="to: "):
        move.run(Context.for_test(), {"on": "2026-11-21T12:00:00Z"})
    assert worker.types == ("move",)


def test_a_pull_worker_function_can_be_a_coroutine() -> None:
    """A handler that is a coroutine runs to its end, and its exceptions are raised."""
    worker = Worker()

    @worker.task("report")
    async def report(context: Context, payload: int) -> int:
        await asyncio.sleep(0)
        context.stop_if_requested()
        return payload * context.attempt

    assert report.run(Context.for_test(attempt=3), 5) == 15
    with pytest.raises(AttemptCancelled):
        report.run(Context.for_test(requested_action="cancel"), 5)
    with pytest.raises(LeaseLost):
        report.run(Context.for_test(is_lost=True), 5)
