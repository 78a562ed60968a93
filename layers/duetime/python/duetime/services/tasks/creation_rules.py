"""What a task must be to be accepted: its target, its type and, of a topology, those of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.targets import TopologyTarget

if TYPE_CHECKING:
    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.topologies import GraphReader


PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class CreationRules:
    """Accepts tasks that are asked for now; of a topology, the tasks of its nodes too.

    Attributes:
        targets: what the settings let tasks call.
        read_graph: makes a graph of a topology's payload.
    """

    targets: TargetRules
    read_graph: GraphReader

    def accept(self, spec: TaskSpec, graph: Graph | None = None) -> Target:
        """What a task calls that is asked for now.

        Args:
            spec: the task.
            graph: a topology's, if its user gave it as fields of its own, not as a payload.

        Raises:
            FieldInvalid: its target may not be called, or no handler is known for its type; so for each node.
        """
        target = self.targets.accept(spec)
        if graph is not None:
            self._accept_nodes(graph)
        elif isinstance(target, TopologyTarget):
            self.graph_of(spec.payload)
        return target

    def graph_of(self, payload: bytes) -> Graph:
        """The graph of a payload that becomes a topology's.

        Raises:
            FieldInvalid: it is none, or one of its nodes cannot be accepted.
        """
        try:
            graph = self.read_graph(payload)
            self._accept_nodes(graph)
        except FieldInvalid as refusal:
            field = refusal.field if refusal.field == PAYLOAD else f"{PAYLOAD}.{refusal.field}"
            raise FieldInvalid(field, refusal.reason, refusal.code) from None
        return graph

    def _accept_nodes(self, graph: Graph) -> None:
        for node in graph.nodes:
            try:
                self.targets.accept(node.spec)
            except FieldInvalid as refusal:
                raise refusal.inside(f"nodes.{node.key}") from None
