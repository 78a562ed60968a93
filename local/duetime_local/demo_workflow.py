"""Runs a recorded real workflow as a topology, and checks the executions against the workflow's dependencies."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from duetime_local import demo_receiver
from duetime_local.demo_report import SUCCEEDED, GraphFigures
from duetime_local.project import example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from duetime_client import Client
    from duetime_client.topologies import Topology
    from duetime_local.demo_receiver import Execution, Receiver

MONTAGE = "topologies/montage.json"
PATIENCE_SECONDS = 600.0
LOOK_SECONDS = 0.5
ONE_IS_HTTP_OF = 3
LONGEST_OVER_HTTP = 1.0
"""The maximum duration, in seconds, of a node that calls an endpoint; a longer call would hold up the other calls in
its batch."""
SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow's graph, with each node's parents and duration in seconds."""

    name: str
    parents: Mapping[str, Sequence[str]]
    seconds: Mapping[str, float]

    @classmethod
    def read(cls) -> Workflow:
        """Read the demo's workflow."""
        document = json.loads(example(MONTAGE).read_text(encoding="utf-8"))
        nodes: dict[str, dict[str, Any]] = document["nodes"]
        return cls(
            document["name"],
            {key: node.get("depends_on", []) for key, node in nodes.items()},
            {key: node["payload"]["seconds"] for key, node in nodes.items()},
        )

    @property
    def edges(self) -> int:
        """The number of dependencies."""
        return sum(map(len, self.parents.values()))

    @property
    def shortest_seconds(self) -> float:
        """The duration of the longest chain of dependencies, in seconds; no run can be shorter."""
        ends: dict[str, float] = {}
        for key in TopologicalSorter(self.parents).static_order():
            ends[key] = self.seconds[key] + max((ends[parent] for parent in self.parents[key]), default=0.0)
        return max(ends.values())

    def body(self, counter: Receiver) -> dict[str, Any]:
        """The body of the request that creates the topology, whose nodes have the recorded durations.

        Some short nodes call an HTTP endpoint; all other nodes run a Python handler.
        """
        return {
            "name": self.name,
            "nodes": {key: self._node(key, place, counter) for place, key in enumerate(self.parents)},
        }

    def _node(self, key: str, place: int, counter: Receiver) -> dict[str, Any]:
        seconds = self.seconds[key]
        node: dict[str, Any] = {
            "type": "ci.job",
            "payload": {"job": key, "work_ms": round(seconds * SECOND_MS), "report_url": counter.report_url},
            "depends_on": self.parents[key],
            "expected_seconds": seconds,
        }
        if place % ONE_IS_HTTP_OF == 0 and seconds <= LONGEST_OVER_HTTP:
            node["target"] = {"kind": "http", "url": counter.run_url}
        return node


def run(client: Client, show: Callable[[Topology], None], patience_seconds: float = PATIENCE_SECONDS) -> GraphFigures:
    """Run the workflow, show its progress, and count the executions that the receiver has recorded."""
    workflow = Workflow.read()
    with demo_receiver.receiving() as counter:
        began_ms = time.time_ns() // 1_000_000
        give_up = time.monotonic() + patience_seconds
        task_id = client.topologies.create(workflow.body(counter)).id
        while True:
            topology = client.topologies.get(task_id)
            show(topology)
            if topology.is_terminal or time.monotonic() > give_up:
                break
            time.sleep(LOOK_SECONDS)
        tasks = {node.task_id: key for key, node in topology.nodes.items() if node.task_id}
        return count(workflow, tasks, counter.executions, began_ms, succeeded=topology.state == SUCCEEDED)


def count(
    workflow: Workflow, tasks: Mapping[str, str], executions: Iterable[Execution], began_ms: int, *, succeeded: bool
) -> GraphFigures:
    """Compare a workflow with its executions, and return the results.

    Args:
        workflow: the workflow with its dependencies.
        tasks: each task's node key, by task id.
        executions: the executions that the receiver has recorded.
        began_ms: when the topology was created.
        succeeded: whether the API reports that the topology succeeded.
    """
    ran: dict[str, list[Execution]] = defaultdict(list)
    # The set removes duplicates, because a report can arrive twice.
    for one in set(executions):
        if one.task_id in tasks:
            ran[tasks[one.task_id]].append(one)
    starts = {key: min(one.started_at_ms for one in seen) for key, seen in ran.items()}
    ends = {key: max(one.ended_at_ms for one in seen) for key, seen in ran.items()}
    never_ms = max(ends.values(), default=began_ms) + 1
    return GraphFigures(
        name=workflow.name,
        nodes=len(workflow.parents),
        edges=workflow.edges,
        ran=sum(len(seen) == 1 and seen[0].succeeded for seen in ran.values()),
        before_parents=sum(
            starts[key] < ends.get(parent, never_ms) for key in starts for parent in workflow.parents[key]
        ),
        succeeded=succeeded,
        seconds=(max(ends.values(), default=began_ms) - began_ms) / SECOND_MS,
        shortest_seconds=workflow.shortest_seconds,
    )
