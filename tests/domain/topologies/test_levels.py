from __future__ import annotations

from dataclasses import replace

from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_progress import reverse_levels, undone_next
from tests.domain.topologies.graphs import FAILED, SUCCEEDED, graph, statuses

DIAMOND = graph("a", "b: a", "c: a", "d: b c", "e: a d")


def test_reverse_levels_see_through_nodes_that_are_left_out() -> None:
    """Node `a` comes after `e` in reverse order, although some paths between them only have omitted nodes."""
    assert reverse_levels(DIAMOND, {"a", "e"}) == (("e",), ("a",))
    assert reverse_levels(DIAMOND, {"b", "c"}) == (("c", "b"),)


def test_a_node_that_is_left_out_makes_no_level() -> None:
    """If a node has only omitted nodes below it, it can be rolled back like a node without children."""
    found = graph("a", "b: a", "x")
    assert [set(level) for level in reverse_levels(found, {"a", "x"})] == [{"a", "x"}]


def test_what_has_run_is_rolled_back_from_below() -> None:
    """Nodes that have begun are rolled back, but not nodes that never ran or rolled themselves back."""
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


def test_a_node_waits_for_the_rollback_of_what_depends_on_it() -> None:
    """Two children may be rolled back at once, and their parent only after both."""
    undoing = NodeStatus(State.ROLLING_BACK, started_at=1)
    found = {**dict.fromkeys(DIAMOND.by_key, NodeStatus(State.CANCELLED)), "a": SUCCEEDED, "b": undoing, "c": SUCCEEDED}
    assert undone_next(DIAMOND, found) == ("c",)
    assert undone_next(DIAMOND, {**found, "c": undoing}) == ()
    done = NodeStatus(State.ROLLED_BACK, started_at=1)
    assert undone_next(DIAMOND, {**found, "b": done, "c": done}) == ("a",)
