"""The graph of a topology, which consists of nodes with their task templates and dependencies."""

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
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import SECOND
from duetime.domain.topologies.maps import NodeMap, graph_of_map, is_map
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


GRAPH_FIELDS = ("nodes", "on_failure", "timeout_seconds", "outputs")
"""The fields of a graph, in requests and in payloads."""


class OnFailure(StrEnum):
    """What happens after a node's failure in a topology.

    Attributes:
        STOP: no more nodes start; running nodes continue until they end.
        CONTINUE: trigger rules decide for each node whether it starts.
        ROLLBACK: first the same as `stop`; then nodes that ran are rolled back in reverse order of dependencies.
    """

    STOP = "stop"
    CONTINUE = "continue"
    ROLLBACK = "rollback"


@frozen
class Node:
    """One node of a graph.

    Attributes:
        key: its name in the graph.
        spec: the template of its task; the task is due when the node's rule is met, or `delay` later.
        depends_on: names of its parents; edges are numbered in this order.
        trigger_rule: condition on its parents' outcomes.
        inputs: the parents whose results it receives.
        expected_seconds: expected duration; `None` if unknown.
        when: its condition (`conditions`), which is evaluated when its rule is met; if the condition is false, the node
            is skipped.
        map: the map options of a node that runs once for each item of a list, as a topology with one node per item.
        subgraph: the graph of a node that is a topology; `None` for other nodes, or if the graph was not read.
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
        """Whether the node is itself a topology."""
        return self.map is not None or isinstance(self.spec.target, TopologyTarget)

    @property
    def levels(self) -> int:
        """Number of levels of nested topologies in the node; 0 if the node is not a topology."""
        return (self.map is not None) + (0 if self.subgraph is None else self.subgraph.levels)


@frozen
class Edge:
    """A dependency between two nodes, as seen by the parent.

    Attributes:
        child: the dependent node.
        position: the edge's number, which is the parent's index among the child's parents.
    """

    child: str
    position: int


@dataclass(frozen=True)
class Graph:
    """An acyclic graph of nodes, created by `validation.validated_graph`.

    Attributes:
        timeout_seconds: time limit of the run after its start; `None` for no limit.
        outputs: the nodes whose results are part of the run's result.
        tolerated_failures: for a map, the number of nodes that may fail before the run fails and is stopped.
        is_map: whether its nodes are the items of a map, whose results, in order, form the run's result.
    """

    nodes: tuple[Node, ...]
    on_failure: OnFailure = OnFailure.STOP
    timeout_seconds: int | None = None
    outputs: tuple[str, ...] = ()
    tolerated_failures: int = 0
    is_map: bool = False

    @property
    def lasts_seconds(self) -> int:
        """Time limit for the attempt of a topology's task, which is the run's time limit."""
        return self.timeout_seconds or MAX_DEADLINE_SECONDS

    @cached_property
    def levels(self) -> int:
        """Number of levels of nested topologies, including this topology."""
        return 1 + max((node.levels for node in self.nodes), default=0)

    @cached_property
    def size(self) -> int:
        """Number of nodes, including nodes of sub-topologies."""
        return len(self.nodes) + sum(node.subgraph.size for node in self.nodes if node.subgraph is not None)

    @cached_property
    def by_key(self) -> Mapping[str, Node]:
        """The graph's nodes by name, in the given order."""
        return {node.key: node for node in self.nodes}

    @cached_property
    def edges_out(self) -> Mapping[str, tuple[Edge, ...]]:
        """The outgoing edges of each node, in a fixed order, so that an iteration can be interrupted and continued."""
        edges: dict[str, list[Edge]] = {node.key: [] for node in self.nodes}
        for node in self.nodes:
            for position, parent in enumerate(node.depends_on):
                edges[parent].append(Edge(node.key, position))
        return {key: tuple(out) for key, out in edges.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Names of the graph's nodes, parents before children; shorter than `nodes` only if there is a cycle."""
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
        """Expected duration of each node, in seconds; unknown durations count as the average of known durations."""
        known = [node.expected_seconds for node in self.nodes if node.expected_seconds is not None]
        usual = fmean(known) if known else 1.0
        return {n.key: usual if n.expected_seconds is None else n.expected_seconds for n in self.nodes}


_KNOWN = 8
"""Number of graphs that a process caches, because each node of a running topology needs the topology's graph
repeatedly."""


@lru_cache(_KNOWN)
def outline_of(payload: bytes) -> Graph:
    """The graph of a topology that has started; templates of nodes contain only the type and the delay."""
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
