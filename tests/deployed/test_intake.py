"""Tests that events on the bus become tasks that run, through the deployed rule, queue, and functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.waiting import until

if TYPE_CHECKING:
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef

    from duetime_client import Client
    from duetime_local.stack import Stack


@pytest.mark.slow
def test_an_event_on_the_bus_becomes_a_task_that_runs(deployed: Stack, client: Client) -> None:
    """An event with the right detail type becomes a task that runs.

    An event with another type does not become a task.
    """
    name = f"event-{uuid4().hex}"
    entry: PutEventsRequestEntryTypeDef = {
        "Source": "com.example.orders",
        "DetailType": "duetime task",
        "Detail": json.dumps({"type": "echo", "payload": {"n": 1}, "name": name}),
    }
    other: PutEventsRequestEntryTypeDef = {**entry, "DetailType": "something else"}
    answer = deployed.emulator.client("events").put_events(Entries=[entry, other])
    assert answer["FailedEntryCount"] == 0

    assert until(lambda: [task.state for task in client.tasks.list(name=name)] == ["succeeded"])


def test_an_invalid_message_is_moved_to_the_queue_of_rejects(deployed: Stack) -> None:
    """An invalid message on the intake queue is moved to the queue of rejects, with the reason."""
    sqs, outputs = deployed.emulator.client("sqs"), deployed.deployment.outputs
    body = json.dumps({"type": "echo", "mark": uuid4().hex})
    sqs.send_message(QueueUrl=outputs["IntakeQueueUrl"], MessageBody=body)

    def reasons() -> list[str]:
        messages = sqs.receive_message(
            QueueUrl=outputs["IntakeRejectsQueueUrl"],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=0,
        ).get("Messages", [])
        return [each["MessageAttributes"]["reason"]["StringValue"] for each in messages if each["Body"] == body]

    assert until(lambda: reasons() == ["mark: is not a known field"])
