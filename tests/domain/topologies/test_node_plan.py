from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_state import Arrival, Run, arrivals, creation_order, is_awaited, opening
from duetime.domain.topologies.trigger_rules import Outcome, TriggerRule, Verdict
from tests.clocks import NOW
from tests.domain.topologies.graphs import FAILED, SUCCEEDED, graph, graphs, node, statuses

if TYPE_CHECKING:
    from duetime.domain.topologies.graph import Graph

RUN = Run(TaskId.of(NOW, 7, 42), 1, NOW + 5, 16)


def test_the_same_run_and_node_give_the_same_id() -> None:
    """The same run and node give the same id in every version, because records are found by their ids."""
    assert RUN.task_id("a") == TaskId("01M7XZ6HXQ00007R56045RC6D1")
    assert RUN.task_id("a").home == NOW + 5


def test_another_topology_run_or_node_gives_another_id() -> None:
    """Nodes with different topologies, runs or names never share an id."""
    ids = {
        Run(TaskId.of(NOW, 7, tail), number, NOW, 16).task_id(key)
        for tail in (1, 2)
        for number in (1, 11)
        for key in ("a", "1a", "b")
    }
    assert len(ids) == 12


def test_the_nodes_of_one_run_are_spread_over_the_shards() -> None:
    """Ten thousand nodes are spread over all shards about equally."""
    sizes = [0] * RUN.shards
    for number in range(10_000):
        sizes[RUN.task_id(f"n{number}").shard] += 1
    assert max(sizes) < 1.25 * min(sizes)


@given(graphs())
def test_children_are_created_before_their_parents(graph: Graph) -> None:
    """Children are created before their parents, so that a node that ends always finds its children."""
    order = creation_order(graph)
    place = {key: number for number, key in enumerate(order)}
    assert sorted(order) == sorted(graph.by_key)
    assert all(place[node.key] < place[parent] for node in graph.nodes for parent in node.depends_on)


def test_a_first_run_starts_nodes_that_wait_for_no_parent() -> None:
    """Nodes without parents, and nodes whose rule does not wait for parents, start first."""
    found = graph("a", "b: a", node("c", "b", trigger_rule=TriggerRule.ALWAYS))
    assert opening(found) == {"a": Verdict.READY, "c": Verdict.READY}


def test_an_execution_waits_only_for_nodes_that_may_end_last() -> None:
    """An execution waits only for nodes that may end after all of their children."""
    found = graph("a", "b: a", node("c", "b", trigger_rule=TriggerRule.ONE_SUCCESS))
    assert [key for key in found.order if is_awaited(found, key)] == ["b", "c"]


def test_a_retry_counts_groups_of_kept_parents_ahead() -> None:
    """Groups with only kept parents are counted in advance, because none of these parents ends again."""
    found = graph("a", "b", "c: a b", "d: c")
    ended = statuses(found, a=SUCCEEDED, b=FAILED, c=NodeStatus(State.CANCELLED, Reason.UPSTREAM_FAILED))
    assert list(arrivals(found, {"b", "c", "d"}, ended, 1)) == [Arrival("c", {0: Outcome.SUCCEEDED})]
    assert list(arrivals(found, {"b", "c", "d"}, ended, 2)) == []
    assert opening(found, {"b", "c", "d"}, ended) == {"b": Verdict.READY}


def test_a_retry_skips_a_one_failed_node_with_kept_successful_parents() -> None:
    """In a retry, a stopped node with `one_failed` is skipped at once if all of its parents succeeded and are kept."""
    found = graph("a", node("alarm", "a", trigger_rule=TriggerRule.ONE_FAILED), "b")
    ended = statuses(found, a=SUCCEEDED, b=FAILED, alarm=NodeStatus(State.CANCELLED, Reason.STOPPED))
    assert opening(found, {"alarm", "b"}, ended) == {"alarm": Verdict.SKIPPED, "b": Verdict.READY}
