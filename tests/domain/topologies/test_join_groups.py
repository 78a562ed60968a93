"""The last parent in a group to end reports the complete group, so that a node counts the group in one write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.operating_parameters import EDGES_PER_CHUNK, EDGES_PER_GROUP
from duetime.domain.tasks.states import State
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.topologies.graph import Node
from duetime.domain.topologies.join_counters import chunk_of, edges_to_count, group_around, kept_edges
from duetime.domain.topologies.node_status import NodeStatus
from duetime.domain.topologies.trigger_rules import Outcome, TriggerRule

if TYPE_CHECKING:
    from collections.abc import Mapping

WAITING, SUCCEEDED, FAILED = NodeStatus(), NodeStatus(State.SUCCEEDED), NodeStatus(State.FAILED)


def join(parents: int, rule: TriggerRule = TriggerRule.ALL_DONE) -> Node:
    """A node with this many parents."""
    return Node("join", TaskSpec("any"), tuple(f"p{number}" for number in range(parents)), rule)


def test_all_edges_of_a_group_are_in_one_chunk() -> None:
    """All edges of a group are in one chunk, so that one write can count the group."""
    assert EDGES_PER_CHUNK % EDGES_PER_GROUP == 0
    many = join(3 * EDGES_PER_CHUNK)
    for position in range(len(many.depends_on)):
        assert len({chunk_of(each) for each in group_around(many, position, EDGES_PER_GROUP)}) == 1


@given(st.data(), st.integers(1, 12), st.integers(1, 4))
def test_every_edge_is_counted_however_ends_overlap(data: st.DataObject, parents: int, size: int) -> None:
    """If each end is written before its group is read, every edge is counted, however the ends overlap."""
    node = join(parents)
    events = [kind for position in range(parents) for kind in ((position, "ends"), (position, "reads"))]
    order = data.draw(st.permutations(events))
    statuses: dict[str, NodeStatus] = dict.fromkeys(node.depends_on, WAITING)
    counted: dict[int, Outcome] = {}
    for position, kind in sorted(order, key=lambda each: _rank(order, each)):
        if kind == "ends":
            statuses[f"p{position}"] = SUCCEEDED
        else:
            counted |= edges_to_count(node, position, statuses, size)
    assert counted == dict.fromkeys(range(parents), Outcome.SUCCEEDED)


def _rank(order: list[tuple[int, str]], event: tuple[int, str]) -> tuple[int, int]:
    """The place of an event in a random order in which no parent reads before its own end."""
    position, kind = event
    ends, reads = order.index((position, "ends")), order.index((position, "reads"))
    return (min(ends, reads), 0) if kind == "ends" else (max(ends, reads), 1)


def test_a_decisive_end_is_counted_at_once() -> None:
    """With `one_success`, the first success counts at once, while a failure waits for the rest of its group."""
    node = join(8, TriggerRule.ONE_SUCCESS)
    statuses: Mapping[str, NodeStatus] = {"p0": SUCCEEDED, "p1": FAILED, "p2": WAITING, "p3": WAITING}
    assert edges_to_count(node, 0, statuses, 4) == {0: Outcome.SUCCEEDED}
    assert edges_to_count(node, 1, statuses, 4) == {}


def test_a_retry_counts_only_completely_kept_groups_ahead() -> None:
    """In a retry, a group is counted in advance only if all of its parents are kept."""
    node = join(6)
    statuses = dict.fromkeys(node.depends_on, SUCCEEDED)
    kept = set(node.depends_on) - {"p4"}
    assert kept_edges(node, statuses, kept, 2) == dict.fromkeys(range(4), Outcome.SUCCEEDED)
    assert kept_edges(node, statuses, kept, 6) == {}
