"""Tests of events on the deployed stack, from the table's stream through the bus and a user's rule to a queue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime_client import Client
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.stack import Stack

pytestmark = pytest.mark.deployed


@pytest.fixture
def subscribed(deployed: Stack) -> Iterator[str]:
    """A user's queue to which a user's rule sends the events of ended tasks."""
    events, sqs, name = deployed.emulator.client("events"), deployed.emulator.client("sqs"), f"ended-{uuid4().hex}"
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name=name, EventPattern=json.dumps({"detail-type": ["duetime.task.ended.v1"]}))
    events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": arn}])
    yield url
    events.remove_targets(Rule=name, Ids=["queue"])
    events.delete_rule(Name=name)
    sqs.delete_queue(QueueUrl=url)


def test_the_event_of_a_tasks_end_reaches_a_queue_through_a_rule(deployed: Stack, subscribed: str) -> None:
    """The event about a task's end reaches a queue through a rule, and has the task, its owner, and its outcome."""
    sqs, found = deployed.emulator.client("sqs"), {}
    with Client(deployed.ready.api_url, owner="listener") as client:
        task = client.tasks.create("ci.job", delay_seconds=3600)
        client.tasks.cancel(task.id)

    def has_come() -> bool:
        for message in sqs.receive_message(QueueUrl=subscribed, MaxNumberOfMessages=10).get("Messages", []):
            event: dict[str, Any] = json.loads(message["Body"])
            found[event["detail"]["task_id"]] = event
        return task.id in found

    assert until(has_come)
    event = found[task.id]
    assert (event["source"], event["detail-type"]) == ("duetime", "duetime.task.ended.v1")
    assert (event["detail"]["owner"], event["detail"]["state"]) == ("listener", "cancelled")
