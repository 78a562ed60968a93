"""Checks that each node of a topology starts after its parents have ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime_client.verification import findings as assertions
from duetime_client.verification.check import Check
from duetime_client.verification.session import millis
from duetime_client.verification.verification_plan import PROBE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.verification.findings import Finding
    from duetime_client.verification.session import Session

EDGES = (("top", "left"), ("top", "right"), ("left", "bottom"), ("right", "bottom"))
"""The dependencies of the topology, as pairs of parent and child."""


@dataclass
class DiamondTopology(Check):
    """A topology in the shape of a diamond."""

    name: str = "topology"
    _topology: str = ""
    _nodes: dict[str, str] = field(default_factory=dict)

    def start(self, session: Session) -> None:
        """Create the topology."""
        nodes = {
            key: {
                "type": PROBE,
                "payload": {"seconds": 0.2},
                "tags": session.tags,
                "depends_on": [parent for parent, child in EDGES if child == key],
            }
            for key in ("top", "left", "right", "bottom")
        }
        body = {"name": "verify-topology", "tags": session.tags, "nodes": nodes}
        made = session.client.topologies.create(body)
        self._topology = made.id
        session.follow(made.id, millis(made.due_at), self.name)

    def observe(self, session: Session) -> None:
        """Follow the tasks of the topology's nodes."""
        if len(self._nodes) < len(EDGES) and self._topology:
            topology = session.client.topologies.get(self._topology)
            for key, node in topology.nodes.items():
                if node.task_id:
                    self._nodes[key] = node.task_id
                    session.follow(node.task_id, millis(topology.created_at), "node")

    def findings(self, session: Session) -> Sequence[Finding]:
        """Report whether each node started after its parents had ended."""
        ran = {key: session.execution(session.followed[task_id]) for key, task_id in self._nodes.items()}
        if len(ran) < len(EDGES):
            return [assertions.judged("a topology runs in order", ["the topology did not run"], 1, "")]
        return [assertions.in_order(ran, EDGES)]
