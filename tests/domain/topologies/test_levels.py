from __future__ import annotations

from dataclasses import replace

from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_progress import reverse_levels, undone_next
from tests.domain.topologies.graphs import FAILED, SUCCEEDED, graph, statuses

DIAMOND = graph("a", "b: a", "c: a", "d: b c", "e: a d")


def test_reverse_levels_keep_the_order_across_omitted_nodes() -> None:
    """Node `a` comes after `e` in reverse order, even if some paths between them have only omitted nodes."""
    assert reverse_levels(DIAMOND, {"a", "e"}) == (("e",), ("a",))
    assert reverse_levels(DIAMOND, {"b", "c"}) == (("c", "b"),)


def test_an_omitted_node_adds_no_level() -> None:
    """A node with only omitted nodes below it is rolled back as early as a node without children."""
    found = graph("a", "b: a", "x")
    assert [set(level) for level in reverse_levels(found, {"a", "x"})] == [{"a", "x"}]


def test_only_nodes_that_have_begun_are_rolled_back() -> None:
    """Only nodes that have begun are rolled back, and nodes that rolled themselves back are not rolled back again."""
    found = statuses(
        DIAMOND,
        a=SUCCEEDED,
        b=SUCCEEDED,
        c=FAILED,
        d=NodeStatus(State.CANCELLED, Reason.STOPPED),
        e=NodeStatus(State.CANCELLED, Reason.STOPPED),
    )
    assert undone_next(DIAMOND, found) == ("c", "b")
    by_itself = {**found, "c": replace(FAILED, state=State.ROLLED_BACK)}
    assert undone_next(DIAMOND, by_itself) == ("b",)
    never_begun = {**found, "c": NodeStatus(State.FAILED)}
    assert undone_next(DIAMOND, never_begun) == ("b",)
    below_undone = {**by_itself, "b": NodeStatus(State.ROLLED_BACK, started_at=1)}
    assert undone_next(DIAMOND, below_undone) == ("a",)


def test_a_parent_is_rolled_back_after_all_of_its_children() -> None:
    """Two children can be rolled back at the same time; their parent is rolled back only after both children."""
    undoing = NodeStatus(State.ROLLING_BACK, started_at=1)
    found = {**dict.fromkeys(DIAMOND.by_key, NodeStatus(State.CANCELLED)), "a": SUCCEEDED, "b": undoing, "c": SUCCEEDED}
    assert undone_next(DIAMOND, found) == ("c",)
    assert undone_next(DIAMOND, {**found, "c": undoing}) == ()
    done = NodeStatus(State.ROLLED_BACK, started_at=1)
    assert undone_next(DIAMOND, {**found, "b": done, "c": done}) == ("a",)
