"""Compares the domain's decisions, applied to events in any order, with a plain executor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.tasks.states import State
from duetime.domain.topologies import join_counters
from duetime.domain.topologies.graph import Graph, OnFailure
from duetime.domain.topologies.node_status import decided
from duetime.domain.topologies.run_state import retry_plan
from duetime.domain.topologies.trigger_rules import Verdict
from duetime.domain.topologies.validation import validated_graph
from tests.domain.topologies.graphs import dispositions, graphs
from tests.domain.topologies.reference import executed
from tests.domain.topologies.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

    from duetime.domain.topologies.node_status import NodeStatus

_CHANCES = st.randoms(use_true_random=False)


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    """Chunks have two edges, so that nodes of small graphs have several chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_counters, "EDGES_PER_CHUNK", 2)
        yield


def _shown(status: NodeStatus) -> str:
    return str(status.reason or status.state)


def _ends(world: World) -> Mapping[str, str]:
    return {key: _shown(status) for key, status in world.statuses.items()}


@settings(deadline=None)
@given(st.data(), graphs(), _CHANCES)
def test_every_policy_ends_nodes_as_the_plain_executor_does(
    data: st.DataObject, graph: Graph, random_source: Random
) -> None:
    """Despite crashes and repeats, every node ends as in the plain executor."""
    disposition, priorities = data.draw(dispositions(graph)), data.draw(st.permutations(sorted(graph.by_key)))
    world = World(graph, disposition, random_source)
    world.open()
    world.run(priorities, prompt=True)
    assert _ends(world) == executed(graph, disposition, priorities)


@settings(deadline=None)
@given(st.data(), graphs(), _CHANCES)
def test_the_end_does_not_depend_on_the_order_of_events(
    data: st.DataObject, graph: Graph, random_source: Random
) -> None:
    """With `continue`, late and repeated follow-ups in any order lead to the same ends."""
    going_on = Graph(graph.nodes, OnFailure.CONTINUE)
    disposition, priorities = data.draw(dispositions(graph)), data.draw(st.permutations(sorted(graph.by_key)))
    world = World(going_on, disposition, random_source)
    world.open()
    world.run(priorities, prompt=False)
    assert _ends(world) == executed(going_on, disposition, sorted(graph.by_key))


@settings(deadline=None)
@given(st.data(), graphs(), _CHANCES)
def test_no_node_starts_after_a_stop(data: st.DataObject, graph: Graph, random_source: Random) -> None:
    """However late a stop is carried out, nodes that have begun end normally and all others are cancelled."""
    stopping = Graph(graph.nodes, OnFailure.STOP)
    disposition, priorities = data.draw(dispositions(graph)), data.draw(st.permutations(sorted(graph.by_key)))
    world = World(stopping, disposition, random_source)
    world.open()
    found = world.run(priorities, prompt=False)
    assert found.state is (State.SUCCEEDED if all(disposition[key] for key in world.begun) else State.FAILED)
    for key, status in world.statuses.items():
        wanted = (State.SUCCEEDED if disposition[key] else State.FAILED) if key in world.begun else State.CANCELLED
        assert status.state is wanted


@settings(deadline=None)
@given(st.data(), graphs(), _CHANCES)
def test_a_rollback_undoes_children_before_parents(data: st.DataObject, graph: Graph, random_source: Random) -> None:
    """Each node that has begun is rolled back once, and only after all nodes that depend on it."""
    undoing = validated_graph(graph.nodes, OnFailure.ROLLBACK)
    disposition, priorities = data.draw(dispositions(graph)), data.draw(st.permutations(sorted(graph.by_key)))
    world = World(undoing, disposition, random_source)
    world.open()
    found = world.run(priorities, prompt=False)
    if found.state is State.SUCCEEDED:
        assert all(disposition[key] for key in world.begun)
        return
    assert found.state is State.ROLLED_BACK
    assert sorted(world.undone) == sorted(world.begun)
    place = {key: number for number, key in enumerate(world.undone)}
    for key in world.undone:
        for edge in undoing.edges_out[key]:
            assert place.get(edge.child, -1) < place[key]


@settings(deadline=None)
@given(st.data(), graphs(), _CHANCES)
def test_a_retry_has_the_same_ends_as_a_single_run(data: st.DataObject, graph: Graph, random_source: Random) -> None:
    """After a retry, kept and repeated nodes have the same ends as in a single run with the same kept ends."""
    going_on = Graph(graph.nodes, OnFailure.CONTINUE)
    priorities = data.draw(st.permutations(sorted(graph.by_key)))
    first = World(going_on, data.draw(dispositions(graph)), random_source)
    first.open()
    first.run(priorities, prompt=False)
    chosen = data.draw(st.sets(st.sampled_from(sorted(graph.by_key)), min_size=1))
    plan = retry_plan(going_on, first.statuses, chosen)
    luck = {**data.draw(dispositions(graph)), **dict.fromkeys(plan.kept, True)}
    second = World(going_on, luck, random_source)
    second.open(plan.again, first.statuses)
    second.run(priorities, prompt=False)
    assert not set(second.begun) & set(plan.kept)
    assert _ends(second) == executed(going_on, luck, priorities)


@settings(deadline=None)
@given(st.data(), graphs(), _CHANCES)
def test_a_recovery_scan_starts_the_nodes_without_parents_and_decides_nothing_else(
    data: st.DataObject, graph: Graph, random_source: Random
) -> None:
    """Before a run, a recovery scan starts the nodes without parents; after the run, nothing is left to decide."""
    disposition, priorities = data.draw(dispositions(graph)), data.draw(st.permutations(sorted(graph.by_key)))
    world = World(Graph(graph.nodes, OnFailure.CONTINUE), disposition, random_source)
    assert decided(world.graph, world.statuses).keys() >= {n.key for n in graph.nodes if not n.depends_on}
    assert set(decided(world.graph, world.statuses).values()) == {Verdict.READY}
    world.open()
    world.run(priorities, prompt=True)
    assert not decided(world.graph, world.statuses)
