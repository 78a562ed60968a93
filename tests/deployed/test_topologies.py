"""Tests of topologies on the deployed stack, with the real state machine, real queues, and real processes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.sqs import body_of
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import WAITS_AT_ONCE
from duetime.services.enqueue import message_for
from tests.adapters.clouds import EXECUTOR, SILENT
from tests.waiting import until

if TYPE_CHECKING:
    from duetime_client import Client
    from duetime_client.topologies import Topology
    from duetime_local.stack import Stack


def ended(client: Client, task_id: str) -> Topology:
    """Wait for the topology's end, and return the topology."""

    def look() -> Topology | None:
        found = client.topologies.get(task_id)
        return found if found.is_terminal else None

    found = until(look)
    assert found is not None, client.topologies.get(task_id).counts
    return found


def nap(*parents: str, seconds: float = 0.2) -> dict[str, Any]:
    """A node that sleeps."""
    return {"type": "sleep", "payload": {"seconds": seconds}, "depends_on": list(parents)}


def assert_in_order(client: Client, topology: Topology) -> None:
    """Assert that every node ran exactly once, and began only after its parents had ended."""
    assert topology.state == "succeeded", topology.error
    assert topology.counts == {"succeeded": len(topology.nodes)}
    ids = [str(node.task_id) for node in topology.nodes.values()]
    assert {task.id: task.attempt for task in client.tasks.list(ids=ids)} == dict.fromkeys(ids, 1)
    for key, node in topology.nodes.items():
        assert node.started_at is not None
        for parent in node.depends_on:
            *_, last = client.tasks.list_attempts(str(topology.nodes[parent].task_id))
            assert last.started_at is not None
            ended_at = last.started_at + timedelta(milliseconds=last.duration_ms or 0)
            assert node.started_at >= ended_at, f"{key} began before {parent} had ended"


DIAMOND = {"top": nap(), "left": nap("top"), "right": nap("top"), "bottom": nap("left", "right")}


def test_a_diamond_runs_from_top_to_bottom(client: Client) -> None:
    """The state machine plans a diamond of four nodes, each node starts after its parents, and all nodes succeed."""
    assert_in_order(client, ended(client, client.topologies.create({"nodes": DIAMOND}).id))


@pytest.mark.slow
def test_a_graph_of_several_executions_runs_in_order(client: Client) -> None:
    """If a graph has more nodes than one execution can wait for, a distributed map runs the nodes in order."""
    width, levels = 21, 2
    assert width * levels > WAITS_AT_ONCE
    nodes = {
        f"n{level}-{place}": nap(
            *(f"n{level - 1}-{(place + step) % width}" for step in (0, 3) if level), seconds=0.05 * (place % 3)
        )
        for level in range(levels)
        for place in range(width)
    }
    assert_in_order(client, ended(client, client.topologies.create({"nodes": nodes}).id))


@pytest.mark.slow
def test_an_execution_that_is_aborted_cancels_its_topology(client: Client, deployed: Stack) -> None:
    """A check of the topology detects that its execution was aborted, and cancels the nodes that have not started."""
    late = {**DIAMOND["top"], "delay_seconds": 3600}
    topology = client.topologies.create({"nodes": {**DIAMOND, "late": late}}).id
    machines, outputs = deployed.emulator.client("stepfunctions"), deployed.deployment.outputs
    execution = outputs["TopologyMachineArn"].replace(":stateMachine:", ":execution:") + f":{topology}-1"
    assert until(lambda: client.topologies.get(topology).nodes["top"].started_at)
    machines.stop_execution(executionArn=execution)
    tasks = DynamoTaskStore(deployed.emulator.client("dynamodb"), outputs["TableName"], EXECUTOR, SILENT)

    def is_cancelled_at_a_look() -> bool:
        """Send the message with which the trigger requests a check, and return whether node `late` is cancelled."""
        task = tasks.read(TaskId(topology))
        assert task is not None
        queue = outputs[f"QueueUrl{task.priority.capitalize()}"]
        deployed.emulator.client("sqs").send_message(QueueUrl=queue, MessageBody=body_of(message_for(task)))
        return client.topologies.get(topology).nodes["late"].state == "cancelled"

    assert until(is_cancelled_at_a_look)
    assert machines.describe_execution(executionArn=execution)["status"] == "ABORTED"
