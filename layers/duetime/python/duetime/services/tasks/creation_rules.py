"""Rules for accepting tasks: the target, the type and, for a topology, those of its nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.tasks.targets import TopologyTarget, definition_of, names_definitions
from duetime.domain.tasks.type_defaults import (
    TaskSpec,
)
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.creation import TaskChange
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.topologies import NewGraphReader
    from duetime.services.task_types import TypeDefaults


PAYLOAD = "payload"


class DefinitionReader(Protocol):
    """Creates runs of topology definitions."""

    def resolved(self, owner: str, spec: TaskSpec) -> TaskSpec:
        """Turn a task that names a definition into the task of a run, with a version's graph; leave others as they are.

        Raises:
            FieldInvalid: the definition or version does not exist, or the parameters do not fit.
        """
        ...

    def with_graphs(self, owner: str, payload: bytes) -> bytes:
        """The graph in a payload, including the graphs of definitions that its nodes name.

        Raises:
            FieldInvalid: a definition or version does not exist, its parameters do not fit, or the graph is too large.
        """
        ...


def payload_name(target: Target | None) -> str:
    """Name of a new task's payload if it is stored outside the record.

    For a run of a definition, it contains the version: if two processes create the same run while the definition
    changes, neither may overwrite the other's graph, as the record will name one of them.
    """
    ref = definition_of(target)
    return PAYLOAD if ref is None else f"{PAYLOAD}.{ref.version}"


@frozen
class CreationRules:
    """Accepts new tasks; for a topology, also the tasks of its nodes.

    Attributes:
        targets: targets that the settings allow.
        read_graph: parses a topology's payload.
        definitions: creates runs of topology definitions.
        types: gives tasks the defaults of their types.
    """

    targets: TargetRules
    read_graph: NewGraphReader
    definitions: Callable[[], DefinitionReader]
    types: TypeDefaults

    def resolved(self, owner: str, spec: TaskSpec, place: str = f"{PAYLOAD}.") -> TaskSpec:
        """Add the defaults of its type to a task, and the graphs of definitions if it names one, or its nodes do.

        Args:
            owner: owner of the task and of the definitions.
            spec: the task.
            place: location of its graph in the request.

        Raises:
            FieldInvalid: a definition or version does not exist, or its parameters do not fit.
            Unavailable: the store did not answer.
        """
        return self._with_definitions(owner, self.types.completed(owner, spec), place)

    def _with_definitions(self, owner: str, spec: TaskSpec, place: str = f"{PAYLOAD}.") -> TaskSpec:
        if definition_of(spec.target) is not None:
            return self.definitions().resolved(owner, spec)
        if not isinstance(spec.target, TopologyTarget) or not names_definitions(spec.payload):
            return spec
        try:
            return replace(spec, payload=self.definitions().with_graphs(owner, spec.payload))
        except FieldInvalid as refusal:
            raise FieldInvalid(f"{place}{refusal.field}", refusal.reason, refusal.code) from None

    def resolved_change(self, task: Task, wanted: TaskChange) -> TaskChange:
        """Add the graph to a change of a task that names another run of a definition.

        Raises:
            FieldInvalid: the run does not exist, or the graph is replaced and the definition is not.
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
        spec = self._with_definitions(task.owner, TaskSpec(task.type, target=target))
        return replace(wanted, payload=spec.payload, fields={**wanted.fields, "target": spec.target or target})

    def _with_graphs(self, owner: str, target: Target | None, wanted: TaskChange) -> TaskChange:
        """A change of a graph, including the graphs of definitions that its nodes name."""
        if wanted.payload is None:
            return wanted
        spec = self._with_definitions(owner, TaskSpec("", wanted.payload, target=target))
        return replace(wanted, payload=spec.payload)

    def accept(self, owner: str, spec: TaskSpec, graph: Graph | None = None) -> Target:
        """The target of a new task.

        Args:
            owner: owner of the task.
            spec: the task.
            graph: graph of a topology, if the request gave it in separate fields and not as a payload.

        Raises:
            FieldInvalid: its target is not allowed, or its type has no handler; also for each node.
        """
        target = self.targets.accept(owner, spec)
        if graph is not None:
            # If its nodes name definitions, the request did not contain the whole graph.
            self.accept_nodes(owner, self.read_graph(spec.payload, ()) if names_definitions(spec.payload) else graph)
        elif isinstance(target, TopologyTarget):
            self.graph_of(owner, spec.payload, target)
        return target

    def graph_of(self, owner: str, payload: bytes, target: Target) -> Graph:
        """The graph in the new payload of an owner's task with this target.

        Raises:
            FieldInvalid: the payload is no graph, or a node is invalid.
        """
        try:
            ref = definition_of(target)
            graph = self.read_graph(payload, () if ref is None else json.loads(ref.parameters))
            self.accept_nodes(owner, graph)
        except FieldInvalid as refusal:
            field = refusal.field if refusal.field == PAYLOAD else f"{PAYLOAD}.{refusal.field}"
            raise FieldInvalid(field, refusal.reason, refusal.code) from None
        return graph

    def accept_nodes(self, owner: str, graph: Graph) -> None:
        """Reject an owner's graph with an invalid node task.

        Raises:
            FieldInvalid: a node is invalid; the error names it.
        """
        for node in graph.nodes:
            try:
                self.targets.accept(owner, node.spec)
                if node.subgraph is not None:
                    self._accept_subgraph(owner, node.subgraph)
            except FieldInvalid as refusal:
                raise refusal.inside(f"nodes.{node.key}") from None

    def _accept_subgraph(self, owner: str, graph: Graph) -> None:
        try:
            self.accept_nodes(owner, graph)
        except FieldInvalid as refusal:
            raise refusal.inside(PAYLOAD) from None
