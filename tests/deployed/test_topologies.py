"""Topologies on the deployed stack: the real state machine, real queues, real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.waiting import until

if TYPE_CHECKING:
    from duetime_client import Client
    from duetime_client.topology import Topology

PATIENCE = 60.0


def ended(client: Client, task_id: str) -> Topology:
    """The topology, once its outcome is known."""

    def look() -> Topology | None:
        found = client.get_topology(task_id)
        return found if found.is_terminal else None

    found = until(look, PATIENCE)
    assert found is not None, client.get_topology(task_id).counts
    return found


def nap(*parents: str, seconds: float = 0.2) -> dict[str, Any]:
    """A node that sleeps."""
    return {"type": "sleep", "payload": {"seconds": seconds}, "depends_on": list(parents)}


def test_a_diamond_runs_from_top_to_bottom(client: Client) -> None:
    """The state machine plans it, each node starts after its parents have ended, and the topology succeeds."""
    nodes = {"top": nap(), "left": nap("top"), "right": nap("top"), "bottom": nap("left", "right")}
    topology = ended(client, client.create_topology({"nodes": nodes}).id)
    assert topology.state == "succeeded", topology.error
    assert topology.counts == {"succeeded": 4}
    for node in topology.nodes.values():
        for parent in node.depends_on:
            before = topology.nodes[parent].finished_at
            assert node.started_at is not None
            assert before is not None
            assert client.get_task(str(node.task_id)).attempt == 1
