"""Topology definitions, which are graphs with a name, versions and parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_GRAPH_BYTES, MAX_NODES, MAX_TOPOLOGY_LEVELS
from duetime.domain.tasks.targets import DefinitionRef, TopologyTarget
from duetime.domain.topologies.graph import GRAPH_FIELDS
from duetime.domain.topologies.parameters import compact_json, parameters_of, values_of, with_values
from duetime.domain.topologies.validation import TOO_MANY_LEVELS
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.times import Millis


@frozen
class VersionInfo:
    """Metadata of a version.

    Attributes:
        version: incremented by every change, including deletions, so that no number is reused.
        created_at: when this version was created.
        created_by: who created the version, if not its owner.
    """

    version: int
    created_at: Millis
    created_by: str = ""


@frozen
class Definition:
    """One version of a definition.

    Attributes:
        content: the definition as its user wrote it, as compact JSON with the fields of a graph, `parameters` and
            `description`.
    """

    name: str
    info: VersionInfo
    content: bytes

    @property
    def version(self) -> int:
        """The version's number."""
        return self.info.version

    @property
    def document(self) -> dict[str, Any]:
        """The parsed content."""
        return json.loads(self.content)  # type: ignore[no-any-return]

    def says(self, content: bytes) -> bool:
        """Whether other content is equivalent to this version's content, regardless of the order of fields."""
        return self.content == content or _canonical(self.content) == _canonical(content)

    def run_of(self, spec: TaskSpec, given: Mapping[str, Any]) -> TaskSpec:
        """The task that runs this version.

        Args:
            spec: options of the run, without its graph.
            given: parameters of the run.

        Raises:
            FieldInvalid: the parameters are invalid, or make the graph too large.
        """
        graph, values = self.graph_with(given)
        payload = compact_json(graph)
        if len(payload) > MAX_GRAPH_BYTES:
            reason = f"make a graph of {len(payload)} bytes; {MAX_GRAPH_BYTES} are allowed"
            raise FieldInvalid("parameters", reason, FaultCode.TOO_LONG)
        lasts_seconds = min(spec.notify_within_seconds, graph.get("timeout_seconds") or MAX_DEADLINE_SECONDS)
        target = TopologyTarget(DefinitionRef(self.name, self.version, compact_json(values).decode()))
        return spec.of_graph(payload, lasts_seconds, target)

    def graph_with(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The graph of a run, as JSON, and the values of all its parameters.

        Raises:
            FieldInvalid: the parameters are invalid.
        """
        document = self.document
        values = values_of(parameters_of(document), given)
        graph = {name: document[name] for name in GRAPH_FIELDS if name in document}
        return {**graph, "nodes": with_values(document["nodes"], values)}, values


@frozen
class Difference:
    """A difference between two versions.

    Attributes:
        path: path of the difference, as names and indexes.
        before: a list with the value in the first version; an empty list if the first version has no value.
        after: the same for the second version.
    """

    path: tuple[str | int, ...]
    before: tuple[Any, ...]
    after: tuple[Any, ...]


def differences(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[Difference]:  # noqa: ANN401 - any JSON
    """Compares two JSON values field by field; each list is compared as one value."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            place = (*path, name)
            if name not in before:
                yield Difference(place, (), (after[name],))
            elif name not in after:
                yield Difference(place, (before[name],), ())
            else:
                yield from differences(before[name], after[name], place)
    elif json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True):
        yield Difference(path, (before,), (after,))


def _canonical(content: bytes) -> str:
    return json.dumps(json.loads(content), sort_keys=True)


DEFINITION = "target.definition"
"""The field in which a task names a definition."""


def named_definitions(graph: Mapping[str, Any]) -> Iterator[str]:
    """The names of the definitions that nodes of an accepted graph, or of graphs inside it, run."""
    for node in graph["nodes"].values():
        target = node.get("target") or {}
        if (run := target.get("definition")) is not None:
            yield run["name"]
        elif target.get("kind") == "topology":
            yield from named_definitions(node["payload"])


class NestedDefinitions:
    """Replaces the definitions that a graph's nodes name with the definitions' graphs.

    All references to a definition get the same version.
    """

    def __init__(self, find: Callable[[str, int | None], Definition]) -> None:
        """Start without replacements.

        Args:
            find: function that reads a given version of a definition, or the latest version; it raises `FieldInvalid`
                for `name` or `version`.
        """
        self._find = find
        self._known: dict[tuple[str, int | None], Definition] = {}
        self._bytes = 0
        self._nodes = 0

    def replaced_in(self, payload: bytes) -> bytes:
        """Returns a graph in which definitions are replaced by their graphs.

        Raises:
            FieldInvalid: a definition or version does not exist, its parameters are invalid, topologies are nested too
                deeply (as in a definition that names itself), or topologies are too large in total.
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
        """The graph of the definition that a node names, and the node's target with version and parameters."""
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
