"""A topology's graph: nodes, each with a template of its task, and what they depend on."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from functools import cached_property, lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

from duetime.domain.limits import MAX_DEADLINE_SECONDS
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task_spec import TaskSpec
from duetime.domain.times import SECOND
from duetime.domain.topologies.maps import NodeMap, graph_of_map, is_map
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from collections.abc import Mapping


GRAPH_FIELDS = ("nodes", "on_failure", "timeout_seconds", "outputs")
"""The fields of a graph, in requests and in payloads."""


class OnFailure(StrEnum):
    """What happens to a topology when one of its nodes has failed.

    Attributes:
        STOP: no more nodes start; running nodes continue to their end.
        CONTINUE: the trigger rules decide for each node.
        ROLLBACK: as `stop`; then what has run is rolled back, in reverse order of dependency.
    """

    STOP = "stop"
    CONTINUE = "continue"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a graph.

    Attributes:
        key: its name in the graph.
        spec: the template of its task; it is due when its rule holds, or so much later as its `delay` says.
        depends_on: the names of its parents; their places in this order are the numbers of its edges.
        trigger_rule: what it asks of its parents.
        inputs: the parents whose results it is given.
        expected_seconds: how long it is expected to run; `None` if nobody knows.
        when: its condition (`conditions`), asked once its rule holds: if it is false, the node is skipped.
        map: what it is run for, if it is run for each item of a list: it is a topology of such nodes then.
        subgraph: of a node that is a topology itself; `None` for any other, and where it was not read.
    """

    key: str
    spec: TaskSpec
    depends_on: tuple[str, ...] = ()
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    inputs: tuple[str, ...] = ()
    expected_seconds: float | None = None
    when: str | None = None
    map: NodeMap | None = None
    subgraph: Graph | None = None

    @property
    def is_topology(self) -> bool:
        """Whether it is a topology itself."""
        return self.map is not None or isinstance(self.spec.target, TopologyTarget)

    @property
    def levels(self) -> int:
        """How many topologies are within each other in it; none in a node that is no topology."""
        return (self.map is not None) + (0 if self.subgraph is None else self.subgraph.levels)


@dataclass(frozen=True, slots=True)
class Edge:
    """One dependency, as its parent sees it.

    Attributes:
        child: the node that depends.
        position: the edge's number: the parent's place among the child's parents.
    """

    child: str
    position: int


@dataclass(frozen=True)
class Graph:
    """Nodes without a cycle among them; made by `checking.checked`.

    Attributes:
        timeout_seconds: how long after its start the run may take; `None` for as long as it needs.
        outputs: the nodes whose results are a part of the run's.
        tolerated_failures: how many nodes may fail before the run does, and is stopped: of a map.
        is_map: whether its nodes are the items of a map, whose results are the run's in their order.
    """

    nodes: tuple[Node, ...]
    on_failure: OnFailure = OnFailure.STOP
    timeout_seconds: int | None = None
    outputs: tuple[str, ...] = ()
    tolerated_failures: int = 0
    is_map: bool = False

    @property
    def lasts_seconds(self) -> int:
        """How long the attempt at its topology's task lasts: as long as the run may take."""
        return self.timeout_seconds or MAX_DEADLINE_SECONDS

    @cached_property
    def levels(self) -> int:
        """How many topologies are within each other, this one included."""
        return 1 + max((node.levels for node in self.nodes), default=0)

    @cached_property
    def size(self) -> int:
        """How many nodes it has, with those of its sub-topologies."""
        return len(self.nodes) + sum(node.subgraph.size for node in self.nodes if node.subgraph is not None)

    @cached_property
    def by_key(self) -> Mapping[str, Node]:
        """Its nodes by their names, in the order they were given."""
        return {node.key: node for node in self.nodes}

    @cached_property
    def edges_out(self) -> Mapping[str, tuple[Edge, ...]]:
        """The edges that leave each node, in a fixed order: whoever walks them can stop anywhere and go on."""
        edges: dict[str, list[Edge]] = {node.key: [] for node in self.nodes}
        for node in self.nodes:
            for position, parent in enumerate(node.depends_on):
                edges[parent].append(Edge(node.key, position))
        return {key: tuple(out) for key, out in edges.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Its nodes' names, parents before children; shorter than `nodes` only if there is a cycle."""
        missing = {node.key: len(node.depends_on) for node in self.nodes}
        order = [key for key, count in missing.items() if not count]
        for key in order:
            for edge in self.edges_out[key]:
                missing[edge.child] -= 1
                if not missing[edge.child]:
                    order.append(edge.child)
        return tuple(order)

    @cached_property
    def expected(self) -> Mapping[str, float]:
        """How long each node is expected to run, in seconds: where nobody knows, as long as the others on average."""
        known = [node.expected_seconds for node in self.nodes if node.expected_seconds is not None]
        usual = fmean(known) if known else 1.0
        return {n.key: usual if n.expected_seconds is None else n.expected_seconds for n in self.nodes}


_KNOWN = 8
"""Graphs that a process remembers: each node of a running topology asks for the run, again and again."""


@lru_cache(_KNOWN)
def outline_of(payload: bytes) -> Graph:
    """The graph of a topology that has begun; of its nodes' templates only the type and the delay."""
    value = json.loads(payload)
    body = graph_of_map(value) if is_map(value) else value
    nodes = tuple(_node(key, node) for key, node in body["nodes"].items())
    on_failure = OnFailure(body.get("on_failure", OnFailure.STOP))
    graph = Graph(nodes, on_failure, body.get("timeout_seconds"), tuple(body.get("outputs", ())))
    return replace(graph, is_map=True, tolerated_failures=value["tolerated_failures"]) if is_map(value) else graph


def _node(key: str, body: Mapping[str, Any]) -> Node:
    delay = int((Decimal(str(body.get("delay_seconds", 0))) * SECOND).to_integral_value(ROUND_CEILING))
    return Node(
        key=key,
        spec=TaskSpec(body["type"], delay=delay or None),
        depends_on=tuple(body.get("depends_on", ())),
        trigger_rule=TriggerRule(body.get("trigger_rule", TriggerRule.ALL_SUCCESS)),
        inputs=tuple(body.get("inputs", ())),
        expected_seconds=body.get("expected_seconds"),
        when=body.get("when"),
        map=NodeMap.of(body.get("map")),
    )
