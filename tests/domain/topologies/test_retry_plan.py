from __future__ import annotations

import pytest

from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_state import RetryPlan, retry_plan
from duetime.domain.topologies.trigger_rules import TriggerRule
from tests.domain.topologies.graphs import FAILED, SUCCEEDED, graph, node

STOPPED = NodeStatus(State.CANCELLED, Reason.STOPPED)
SKIPPED = NodeStatus(State.CANCELLED, Reason.SKIPPED)
UPSTREAM = NodeStatus(State.CANCELLED, Reason.UPSTREAM_FAILED)


def test_what_succeeded_is_kept_and_the_rest_runs_again() -> None:
    """The failed node runs again, and so do the nodes that did not start because of the failure."""
    found = graph("a", "b: a", "c: b", "d: a")
    ended = {"a": SUCCEEDED, "b": FAILED, "c": UPSTREAM, "d": SUCCEEDED}
    assert retry_plan(found, ended) == RetryPlan(again=("b", "c"), kept=("a", "d"))


def test_what_tidied_up_after_a_failure_tidies_up_again() -> None:
    """Nodes with `all_done` or `one_failed` after the failed node run again; nodes with `one_success` are kept."""
    found = graph(
        "bad",
        "good",
        node("tidy", "bad", "good", trigger_rule=TriggerRule.ALL_DONE),
        node("alarm", "bad", trigger_rule=TriggerRule.ONE_FAILED),
        node("either", "bad", "good", trigger_rule=TriggerRule.ONE_SUCCESS),
        node("free", "bad", trigger_rule=TriggerRule.ALWAYS),
        "after: either",
    )
    ended = {**dict.fromkeys(found.by_key, SUCCEEDED), "bad": FAILED}
    plan = retry_plan(found, ended)
    assert set(plan.again) == {"bad", "tidy", "alarm"}
    assert set(plan.kept) == {"good", "either", "free", "after"}


def test_what_was_skipped_for_good_reason_stays_skipped() -> None:
    """A node that runs only after a failure stays skipped, with all nodes after it, if no parent failed."""
    found = graph("a", node("alarm", "a", trigger_rule=TriggerRule.ONE_FAILED), "call: alarm", "b")
    ended = {"a": SUCCEEDED, "alarm": SKIPPED, "call": SKIPPED, "b": STOPPED}
    assert retry_plan(found, ended) == RetryPlan(again=("b",), kept=("a", "alarm", "call"))


def test_chosen_nodes_run_again_with_what_depends_on_them() -> None:
    """Chosen nodes and their dependents run again even if all nodes succeeded."""
    found = graph("a", "b: a", "c: b", "d: a")
    ended = dict.fromkeys(found.by_key, SUCCEEDED)
    assert retry_plan(found, ended, ["b"]) == RetryPlan(again=("b", "c"), kept=("a", "d"))


def test_all_that_depends_on_a_chosen_node_runs_again_also_what_needs_it_no_more() -> None:
    """All dependents run again, with any rule; independent nodes are kept."""
    found = graph(
        "a",
        "b",
        node("either", "a", "b", trigger_rule=TriggerRule.ONE_SUCCESS),
        node("free", "a", trigger_rule=TriggerRule.ALWAYS),
        "after: either",
        "beside: b",
    )
    plan = retry_plan(found, dict.fromkeys(found.by_key, SUCCEEDED), ["a"])
    assert set(plan.again) == {"a", "either", "free", "after"}
    assert set(plan.kept) == {"b", "beside"}


def test_what_has_failed_runs_again_beside_what_was_chosen() -> None:
    """Failed nodes also run again if other nodes are chosen; otherwise they would fail the new run, too."""
    found = graph("a", "b: a", "c", "d: c")
    ended = {"a": SUCCEEDED, "b": SUCCEEDED, "c": FAILED, "d": UPSTREAM}
    assert retry_plan(found, ended, ["b"]) == RetryPlan(again=("c", "b", "d"), kept=("a",))


def test_an_unknown_node_is_refused_by_name() -> None:
    """The error for an unknown node names the field and the node."""
    found = graph("a")
    with pytest.raises(FieldInvalid, match="nodes: there is no node 'x' to run again"):
        retry_plan(found, {"a": SUCCEEDED}, ["a", "x"])


def test_of_a_run_without_a_failure_everything_is_kept_unless_nodes_are_chosen() -> None:
    """If no node has failed (for example after a correction by a user), no node runs again unless it is chosen."""
    assert retry_plan(graph("a", "b: a"), dict.fromkeys("ab", SUCCEEDED)) == RetryPlan(again=(), kept=("a", "b"))
