from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.tasks.states import State
from duetime.domain.topologies.graph import Graph
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_progress import CriticalPath, counted, critical_path, durations, percent
from duetime.domain.topologies.trigger_rules import TriggerRule
from tests.clocks import NOW
from tests.domain.topologies.graphs import FAILED, RUNNING, SUCCEEDED, graph, graphs, node, statuses

WEIGHTED = graph(node("a", seconds=10), node("b", "a", seconds=70), node("c", "a", seconds=20), node("d", "b", "c"))
"""The last node has no given weight, so it gets the mean of the other weights, 33.3 s."""


def test_nodes_are_counted_by_state_and_cancelled_nodes_by_reason() -> None:
    """Nodes are counted by state and, if they are cancelled, by the reason."""
    skipped = NodeStatus(State.CANCELLED, Reason.SKIPPED)
    found = {"a": SUCCEEDED, "b": SUCCEEDED, "c": skipped, "d": NodeStatus(State.CANCELLED), "e": RUNNING}
    assert counted(found) == {"succeeded": 2, "skipped": 1, "cancelled": 1, "running": 1}


def test_progress_is_weighted_by_expected_durations() -> None:
    """After 10 s of 133.3 s, the progress is 7%; half of a node of 70 s adds another 35 s."""
    assert percent(WEIGHTED, statuses(WEIGHTED)) == 0
    assert percent(WEIGHTED, statuses(WEIGHTED, a=SUCCEEDED)) == 7
    assert percent(WEIGHTED, statuses(WEIGHTED, a=SUCCEEDED, b=replace(RUNNING, percent=50))) == 33
    assert percent(WEIGHTED, statuses(WEIGHTED, a=SUCCEEDED, b=FAILED, c=SUCCEEDED)) == 75


def test_progress_is_complete_only_when_every_node_has_ended() -> None:
    """If the last node has no weight, the progress is still only 99 % until the node has ended."""
    found = graph(node("a", seconds=10), node("b", "a", seconds=0))
    assert percent(found, statuses(found, a=SUCCEEDED)) == 99
    assert percent(found, statuses(found, a=SUCCEEDED, b=SUCCEEDED)) == 100


def test_nodes_have_equal_weights_if_all_weights_are_zero() -> None:
    """If all weights are zero, the nodes have equal weights."""
    found = graph(node("a", seconds=0), node("b", "a", seconds=0))
    assert percent(found, statuses(found, a=SUCCEEDED)) == 50


@given(st.data(), graphs())
def test_progress_never_decreases_when_a_node_ends(data: st.DataObject, graph: Graph) -> None:
    """When a node ends, the progress increases or stays the same."""
    found = statuses(graph)
    seen = [percent(graph, found)]
    for key in data.draw(st.permutations(sorted(graph.by_key))):
        found = {**found, key: SUCCEEDED}
        seen.append(percent(graph, found))
    assert seen == sorted(seen)
    assert seen[-1] == 100


def test_the_critical_path_uses_expected_or_measured_durations() -> None:
    """Before a run, the critical path uses expected durations, and afterwards measured durations."""
    expected = critical_path(WEIGHTED)
    assert expected.nodes == ("a", "b", "d")
    assert expected.seconds == pytest.approx(80 + 100 / 3)
    measured = {"a": 10.0, "b": 5.0, "c": 20.0, "d": 1.0}
    assert critical_path(WEIGHTED, measured) == CriticalPath(("a", "c", "d"), 31.0)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        (TriggerRule.ALL_SUCCESS, CriticalPath(("slow", "c"), 11.0)),
        (TriggerRule.ALL_DONE, CriticalPath(("slow", "c"), 11.0)),
        (TriggerRule.ONE_SUCCESS, CriticalPath(("quick", "c"), 7.0)),
        (TriggerRule.ALWAYS, CriticalPath(("c",), 6.0)),
    ],
)
def test_the_critical_path_contains_the_parent_required_by_the_rule(rule: TriggerRule, path: CriticalPath) -> None:
    """Depending on a node's rule, the slowest parent, the fastest parent or no parent is on the path."""
    found = graph(
        node("quick", seconds=1), node("slow", seconds=5), node("c", "quick", "slow", trigger_rule=rule, seconds=6)
    )
    assert critical_path(found) == path


def test_the_duration_of_a_node_is_measured_or_expected() -> None:
    """Ended nodes have measured durations; other nodes have at least their expected durations."""
    found = graph(*(node(key, seconds=10) for key in "abcde"))
    at = {
        "a": NodeStatus(State.SUCCEEDED, started_at=NOW - 4_500, finished_at=NOW - 1_000),
        "b": NodeStatus(State.RUNNING, started_at=NOW - 4_500),
        "c": NodeStatus(State.RUNNING, started_at=NOW - 14_500),
        "d": NodeStatus(),
        "e": NodeStatus(State.CANCELLED, Reason.SKIPPED),
    }
    assert durations(found, at, NOW) == {"a": 3.5, "b": 10.0, "c": 14.5, "d": 10.0, "e": 0.0}


@given(graphs())
def test_the_critical_path_is_the_longest_chain_of_dependencies(graph: Graph) -> None:
    """If each node waits for all of its parents, the critical path is the longest chain of dependencies."""
    plain = Graph(tuple(replace(node, trigger_rule=TriggerRule.ALL_SUCCESS) for node in graph.nodes))
    found = critical_path(plain)
    pairs = zip(found.nodes, found.nodes[1:], strict=False)
    assert all(parent in plain.by_key[child].depends_on for parent, child in pairs)
    assert found.seconds == pytest.approx(sum(plain.expected[key] for key in found.nodes))
    longest: dict[str, float] = {}
    for key in plain.order:
        before = [longest[parent] for parent in plain.by_key[key].depends_on]
        longest[key] = plain.expected[key] + max(before, default=0.0)
    assert found.seconds == pytest.approx(max(longest.values()))
