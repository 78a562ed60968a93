"""What a task must be to be accepted: its target, its type and, of a topology, those of its nodes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.tasks.targets import TopologyTarget, definition_of, names_definitions
from duetime.domain.tasks.task_spec import TaskSpec

if TYPE_CHECKING:
    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.creation import TaskChange
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.topologies import NewGraphReader


PAYLOAD = "payload"


class DefinitionReader(Protocol):
    """Makes runs of topology definitions."""

    def resolved(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """A task that names a definition as the task of a run, with the graph of a version; any other as it is.

        Raises:
            FieldInvalid: there is no such definition or version, or the parameters do not fit.
        """
        ...

    def with_graphs(self, owner: str, payload: bytes) -> bytes:
        """The graph in a payload, with those of the definitions that its nodes name.

        Raises:
            FieldInvalid: there is no such definition or version, or the parameters do not fit; or it is too large.
        """
        ...


def payload_name(target: Target | None) -> str:
    """What the payload of a new task is called where it lies outside of its record.

    Of a run of a definition, the version is a part of it: of two processes that create the same run while the
    definition changes, neither may overwrite the graph of the other's, one of which the record will name.
    """
    ref = definition_of(target)
    return PAYLOAD if ref is None else f"{PAYLOAD}.{ref.version}"


@dataclass(frozen=True, slots=True)
class CreationRules:
    """Accepts tasks that are asked for now; of a topology, the tasks of its nodes too.

    Attributes:
        targets: what the settings let tasks call.
        read_graph: makes a graph of a topology's payload.
        definitions: makes runs of topology definitions.
    """

    targets: TargetRules
    read_graph: NewGraphReader
    definitions: DefinitionReader

    def resolved(self, owner: str, spec: TaskSpec, place: str = f"{PAYLOAD}.") -> TaskSpec:
        """A task with the graphs of the definitions that it names: it, or its nodes.

        Args:
            owner: of the definitions.
            spec: the task.
            place: of its graph, in the request.

        Raises:
            FieldInvalid: there is no such definition or version, or the parameters do not fit.
        """
        if definition_of(spec.target) is not None:
            return self.definitions.resolved(owner, spec)
        if not isinstance(spec.target, TopologyTarget) or not names_definitions(spec.payload):
            return spec
        try:
            return replace(spec, payload=self.definitions.with_graphs(owner, spec.payload))
        except FieldInvalid as refusal:
            raise FieldInvalid(f"{place}{refusal.field}", refusal.reason, refusal.code) from None

    def resolved_change(self, task: Task, wanted: TaskChange) -> TaskChange:
        """A change of a task, with the graph of the definition that it names, if it names another run of one.

        Raises:
            FieldInvalid: there is no such run; or the graph is to be replaced, and the definition is not.
        """
        target = wanted.fields.get("target", task.target)
        if definition_of(target) is None:
            return self._with_graphs(task.owner, target, wanted)
        if wanted.payload is not None:
            if "target" not in wanted.fields:
                raise FieldInvalid(PAYLOAD, "is the graph of a definition: change `target`", FaultCode.CONFLICT)
            return wanted
        if target == task.target:
            return wanted
        spec = self.resolved(task.owner, TaskSpec(task.type, target=target))
        return replace(wanted, payload=spec.payload, fields={**wanted.fields, "target": spec.target or target})

    def _with_graphs(self, owner: str, target: Target | None, wanted: TaskChange) -> TaskChange:
        """A change that gives a graph, with those of the definitions that its nodes name."""
        if wanted.payload is None:
            return wanted
        spec = self.resolved(owner, TaskSpec("", wanted.payload, target=target))
        return replace(wanted, payload=spec.payload)

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
            # Of one whose nodes name definitions, the request did not have all.
            self.accept_nodes(self.read_graph(spec.payload, ()) if names_definitions(spec.payload) else graph)
        elif isinstance(target, TopologyTarget):
            self.graph_of(spec.payload, target)
        return target

    def graph_of(self, payload: bytes, target: Target) -> Graph:
        """The graph of a payload that becomes that of a task with this target.

        Raises:
            FieldInvalid: it is none, or one of its nodes cannot be accepted.
        """
        try:
            ref = definition_of(target)
            graph = self.read_graph(payload, () if ref is None else json.loads(ref.parameters))
            self.accept_nodes(graph)
        except FieldInvalid as refusal:
            field = refusal.field if refusal.field == PAYLOAD else f"{PAYLOAD}.{refusal.field}"
            raise FieldInvalid(field, refusal.reason, refusal.code) from None
        return graph

    def accept_nodes(self, graph: Graph) -> None:
        """Reject a graph of which a node's task cannot be accepted.

        Raises:
            FieldInvalid: names the node.
        """
        for node in graph.nodes:
            try:
                self.targets.accept(node.spec)
                if node.subgraph is not None:
                    self._accept_subgraph(node.subgraph)
            except FieldInvalid as refusal:
                raise refusal.inside(f"nodes.{node.key}") from None

    def _accept_subgraph(self, graph: Graph) -> None:
        try:
            self.accept_nodes(graph)
        except FieldInvalid as refusal:
            raise refusal.inside(PAYLOAD) from None
