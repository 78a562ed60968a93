from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_EDGES, MAX_NODE_KEY_LENGTH, MAX_NODES
from duetime.domain.topologies.validation import validated_graph
from tests.domain.topologies.graphs import SPEC, graphs, node

if TYPE_CHECKING:
    from duetime.domain.topologies.graph import Graph, Node


def refusal(*nodes: Node, timeout_seconds: int | None = None) -> str:
    """The reason why these nodes are refused."""
    with pytest.raises(FieldInvalid) as refused:
        validated_graph(nodes, timeout_seconds=timeout_seconds)
    return str(refused.value)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ((), "nodes: should be 1 to 10000, not 0"),
        ((node("a"), node("b"), node("a")), "nodes: name 'a' 2 times"),
        ((node("a", "b"),), "nodes.a.depends_on: names 'b', which is not a node"),
        ((node("a", "a"),), "nodes.a.depends_on: names the node itself"),
        ((node("a"), node("b", "a", "a")), "nodes.b.depends_on: names 'a' 2 times"),
        ((node("a", "c"), node("b", "a"), node("c", "b")), "nodes: depend on each other in a cycle: a -> b -> c -> a"),
        ((node("x"), node("b", "a", "x"), node("a", "b")), "nodes: depend on each other in a cycle: b -> a -> b"),
        (
            (node("a"), replace(node("b"), inputs=("a",))),
            "nodes.b.inputs: names 'a', which is not among its depends_on",
        ),
        ((node("a"), replace(node("b", "a"), inputs=("a", "a"))), "nodes.b.inputs: names 'a' 2 times"),
        ((node("a", seconds=-1),), "nodes.a.expected_seconds: should be 0 to 2592000"),
        ((node("a", seconds=float("nan")),), "nodes.a.expected_seconds: should be 0 to 2592000"),
    ],
)
def test_the_error_for_an_invalid_graph_names_field_and_node(nodes: tuple[Node, ...], words: str) -> None:
    """The refusal of a graph names the field and the node, or the path of the cycle."""
    assert refusal(*nodes) == words


@pytest.mark.parametrize("key", ["", " ", "a b", "-a", "é", "a\n", "a\0b", "x" * (MAX_NODE_KEY_LENGTH + 1)])
def test_an_invalid_node_name_is_rejected_in_printable_form(key: str) -> None:
    """An invalid name is refused, and the error shows the name in printable form."""
    said = refusal(node(key))
    assert said.startswith("nodes: the name ")
    assert said.isascii() or "…" in said
    assert said.isprintable()


def test_names_of_real_workflows_are_accepted() -> None:
    """Names with dots, underscores, colons, slashes and hyphens are accepted, up to the maximum length."""
    assert validated_graph([node("NFCORE_RNASEQ.RNASEQ:a/b-1_2"), node("x" * MAX_NODE_KEY_LENGTH)]).order


def test_a_node_cannot_have_a_due_time() -> None:
    """A node cannot have a due time, but can have a delay."""
    assert "nodes.a.due_at: cannot be given" in refusal(replace(node("a"), spec=replace(SPEC, due_at=5)))
    assert validated_graph([replace(node("a"), spec=replace(SPEC, delay=5))])


@pytest.mark.parametrize("seconds", [0, -1, MAX_DEADLINE_SECONDS + 1])
def test_a_deadline_out_of_bounds_is_rejected(seconds: int) -> None:
    """A deadline must be at least a second, and at most the longest time that any target can take."""
    assert refusal(node("a"), timeout_seconds=seconds) == f"timeout_seconds: should be 1 to {MAX_DEADLINE_SECONDS}"


def test_too_many_nodes_or_edges_are_rejected_with_limit_and_number() -> None:
    """The error for too many nodes or edges names the limit and the given number."""
    assert refusal(*(node(f"n{n}") for n in range(MAX_NODES + 1))) == "nodes: should be 1 to 10000, not 10001"
    parents = [f"p{n}" for n in range(200)]
    children = [node(f"c{n}", *parents) for n in range(MAX_EDGES // 200 + 1)]
    assert refusal(*map(node, parents), *children) == "nodes: have 50200 dependencies; 50000 are allowed"


def test_a_long_chain_is_checked_without_recursion() -> None:
    """A chain of ten thousand nodes, given in reverse order, is sorted without recursion."""
    chain = [node("n0"), *(node(f"n{n}", f"n{n - 1}") for n in range(1, MAX_NODES))]
    assert list(validated_graph(chain[::-1]).order) == [each.key for each in chain]


def test_a_long_cycle_is_shown_with_only_beginning_and_end() -> None:
    """A cycle of ten thousand nodes is shown with only its beginning and end."""
    ring = [node(f"n{n}", f"n{(n - 1) % MAX_NODES}") for n in range(MAX_NODES)]
    beginning, end = "n0 -> n1 -> n2 -> n3 -> n4", "n9996 -> n9997 -> n9998 -> n9999 -> n0"
    assert refusal(*ring) == f"nodes: depend on each other in a cycle: {beginning} -> (9991 more) -> {end}"


@given(graphs())
def test_the_order_has_parents_before_children(graph: Graph) -> None:
    """The order has every node once, after all the nodes that the node depends on."""
    assert sorted(graph.order) == sorted(graph.by_key)
    place = {key: number for number, key in enumerate(graph.order)}
    assert all(place[parent] < place[node.key] for node in graph.nodes for parent in node.depends_on)


@given(st.data(), graphs())
def test_an_added_backward_edge_is_rejected_with_a_real_cycle(data: st.DataObject, graph: Graph) -> None:
    """An added backward edge is refused, and each step of the named cycle is a real dependency."""
    ways = [(parent, node.key) for node in graph.nodes for parent in node.depends_on]
    if not ways:
        return
    parent, child = data.draw(st.sampled_from(ways))
    nodes = [replace(n, depends_on=(*n.depends_on, child)) if n.key == parent else n for n in graph.nodes]
    path = refusal(*nodes).rsplit(": ", 1)[1].split(" -> ")
    assert path[0] == path[-1]
    parents = {n.key: n.depends_on for n in nodes}
    assert all(path[place] in parents[path[place + 1]] for place in range(len(path) - 1))
