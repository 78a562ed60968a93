"""Graphs for tests are written in one line or drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from duetime.domain.tasks.states import State
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.topologies.graph import Graph, Node, OnFailure
from duetime.domain.topologies.node_status import NodeStatus
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime.domain.topologies.validation import validated_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.topologies.node_status import Statuses

SPEC = TaskSpec("echo")
SUCCEEDED = NodeStatus(State.SUCCEEDED, started_at=1, finished_at=2)
FAILED = NodeStatus(State.FAILED, started_at=1, finished_at=2)
RUNNING = NodeStatus(State.RUNNING, started_at=1)


def node(
    key: str, *parents: str, trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS, seconds: float | None = None
) -> Node:
    """A node with its parents."""
    return Node(key, SPEC, parents, trigger_rule, expected_seconds=seconds)


def graph(*nodes: Node | str, on_failure: OnFailure = OnFailure.CONTINUE) -> Graph:
    """A graph of nodes; `"c: a b"` is a node `c` with the parents `a` and `b`."""
    return validated_graph([_node(text) if isinstance(text, str) else text for text in nodes], on_failure)


def _node(text: str) -> Node:
    key, _, parents = text.partition(":")
    return node(key, *parents.split())


def statuses(graph: Graph, **known: NodeStatus) -> Statuses:
    """The states of the nodes; a node without a given state is blocked."""
    return {key: known.get(key, NodeStatus()) for key in graph.by_key}


@st.composite
def graphs(draw: st.DrawFn, most: int = 10) -> Graph:
    """A random graph with a few nodes in any order, with any rules and any policy."""
    count = draw(st.integers(1, most))
    nodes = []
    for number in range(count):
        earlier = [f"n{parent}" for parent in range(number)]
        parents = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=5)) if earlier else []
        seconds = draw(st.none() | st.integers(0, 9))
        nodes.append(node(f"n{number}", *parents, trigger_rule=draw(st.sampled_from(TriggerRule)), seconds=seconds))
    return validated_graph(draw(st.permutations(nodes)), draw(st.sampled_from(OnFailure)))


@st.composite
def dispositions(draw: st.DrawFn, graph: Graph) -> Mapping[str, bool]:
    """A random choice of the nodes that would succeed if they ran."""
    return {key: draw(st.booleans()) for key in sorted(graph.by_key)}
