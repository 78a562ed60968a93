"""Graphs of definitions in place of their names: in the graph of a run, each sub-topology has a graph of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_GRAPH_BYTES, MAX_NODES, MAX_TOPOLOGY_LEVELS
from duetime.domain.topologies.node_placeholders import compact_json
from duetime.domain.topologies.validation import TOO_MANY_LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.topologies.definitions import Definition

DEFINITION = "target.definition"
"""Where a task names a definition."""


class NestedDefinitions:
    """Replaces the definitions that the nodes of one graph name, each by the same version wherever it is named."""

    def __init__(self, find: Callable[[str, int | None], Definition]) -> None:
        """Replace none yet.

        Args:
            find: reads a version of a definition, or the latest; raises `FieldInvalid` with `name` or `version`.
        """
        self._find = find
        self._known: dict[tuple[str, int | None], Definition] = {}
        self._bytes = 0
        self._nodes = 0

    def replaced_in(self, payload: bytes) -> bytes:
        """A graph with those of the definitions that it names.

        Raises:
            FieldInvalid: there is no such definition or version, or its parameters do not fit; or too many topologies
                are within each other, or they are too large together. A definition that names itself is too deep.
        """
        graph = json.loads(payload)
        self._bytes = len(payload)
        return compact_json(self._graph(graph, 1)) if isinstance(graph, dict) else payload

    def _graph(self, graph: Mapping[str, Any], level: int) -> Mapping[str, Any]:
        nodes = graph.get("nodes")
        if not isinstance(nodes, dict):
            return graph
        found = {}
        for key, node in nodes.items():
            try:
                found[key] = self._node(node, level)
            except FieldInvalid as refusal:
                raise refusal.inside(f"nodes.{key}") from None
        return {**graph, "nodes": found}

    def _node(self, node: Any, level: int) -> Any:  # noqa: ANN401 - any JSON
        target = node.get("target") if isinstance(node, dict) else None
        if not isinstance(target, dict) or target.get("kind") != "topology":
            return node
        subgraph, run = node.get("payload"), target.get("definition")
        if isinstance(run, dict) and subgraph is None:
            subgraph, target = self._run(run, level)
        if not isinstance(subgraph, dict):
            return node
        try:
            return {**node, "target": target, "payload": self._graph(subgraph, level + 1)}
        except FieldInvalid as refusal:
            raise refusal.inside("payload") from None

    def _run(self, run: Mapping[str, Any], level: int) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The graph of the definition that a node names, and the node's target with its version and parameters."""
        if level >= MAX_TOPOLOGY_LEVELS:
            raise FieldInvalid(DEFINITION, TOO_MANY_LEVELS, FaultCode.TOO_DEEP)
        try:
            definition = self._definition(run["name"], run.get("version"))
            graph, values = definition.graph_with(run.get("parameters") or {})
        except FieldInvalid as refusal:
            raise refusal.inside(DEFINITION) from None
        self._bytes += len(compact_json(graph))
        self._nodes += len(graph["nodes"])
        if self._bytes > MAX_GRAPH_BYTES or self._nodes > MAX_NODES:
            reason = f"makes the graph larger than {MAX_GRAPH_BYTES} bytes or {MAX_NODES} nodes"
            raise FieldInvalid(DEFINITION, reason, FaultCode.TOO_LONG)
        version = {"name": definition.name, "version": definition.version, "parameters": values}
        return graph, {"kind": "topology", "definition": version}

    def _definition(self, name: str, version: int | None) -> Definition:
        if (name, version) not in self._known:
            self._known[name, version] = self._find(name, version)
        return self._known[name, version]
