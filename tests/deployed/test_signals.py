"""Tests of tasks that wait for an event on the deployed stack, and are woken by the API or by an event and its rule."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.waiting import until

if TYPE_CHECKING:
    from duetime_client import Client, EventTarget
    from duetime_local.stack import Stack


def waiting(client: Client, key: str) -> str:
    """Create a task that waits for the event with this key, and return the task's identifier."""
    target: EventTarget = {"kind": "wait_for_event", "event": "order.paid", "key": key}
    task = client.tasks.create("payment", target=target)
    assert until(lambda: client.tasks.get(task.id).state == "waiting")
    return task.id


def test_a_signal_ends_a_task_that_waits_for_it(client: Client) -> None:
    """A signal that the client sends ends the waiting task, whose result is the signal's payload."""
    key = uuid4().hex
    task_id = waiting(client, key)
    assert client.signals.send("order.paid", key, {"amount": 17}).woken == 1
    assert until(lambda: client.tasks.get(task_id).state == "succeeded")
    assert client.tasks.get(task_id).result == {"amount": 17}


@pytest.mark.slow
def test_an_event_ends_a_task_that_waits_for_it(deployed: Stack, client: Client) -> None:
    """An event on the intake queue ends a waiting task, because an intake rule makes the event a signal."""
    key, source = uuid4().hex, f"com.example.{uuid4().hex}"
    signal = {"name": "order.paid", "fields": {"key": "detail.order", "payload": "detail"}}
    client.intake_rules.put("paid", {"pattern": {"source": [source]}, "signal": signal, "owner": "local"})
    task_id = waiting(client, key)

    def is_ended() -> bool:
        """Send a new event in each call, because an intake process may not know the rule yet."""
        event = {"id": uuid4().hex, "source": source, "time": datetime.now(UTC).isoformat(), "detail": {"order": key}}
        body = json.dumps({**event, "detail-type": "OrderPaid"})
        queue = deployed.deployment.outputs["IntakeQueueUrl"]
        deployed.emulator.client("sqs").send_message(QueueUrl=queue, MessageBody=body)
        return client.tasks.get(task_id).state == "succeeded"

    assert until(is_ended)
    assert client.tasks.get(task_id).result == {"order": key}
    client.intake_rules.delete("paid")
