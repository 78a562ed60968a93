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


def test_a_retry_runs_failed_and_unstarted_nodes_again() -> None:
    """The failed node runs again, and so do the nodes that did not start because of the failure."""
    found = graph("a", "b: a", "c: b", "d: a")
    ended = {"a": SUCCEEDED, "b": FAILED, "c": UPSTREAM, "d": SUCCEEDED}
    assert retry_plan(found, ended) == RetryPlan(again=("b", "c"), kept=("a", "d"))


def test_nodes_with_all_done_or_one_failed_after_a_failure_run_again() -> None:
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


def test_a_node_that_runs_only_after_a_failure_stays_skipped() -> None:
    """A node that runs only after a failure stays skipped if no parent failed, and so do all nodes after it."""
    found = graph("a", node("alarm", "a", trigger_rule=TriggerRule.ONE_FAILED), "call: alarm", "b")
    ended = {"a": SUCCEEDED, "alarm": SKIPPED, "call": SKIPPED, "b": STOPPED}
    assert retry_plan(found, ended) == RetryPlan(again=("b",), kept=("a", "alarm", "call"))


def test_chosen_nodes_run_again_with_their_dependents() -> None:
    """Chosen nodes and their dependents run again even if all nodes succeeded."""
    found = graph("a", "b: a", "c: b", "d: a")
    ended = dict.fromkeys(found.by_key, SUCCEEDED)
    assert retry_plan(found, ended, ["b"]) == RetryPlan(again=("b", "c"), kept=("a", "d"))


def test_all_dependents_of_a_chosen_node_run_again_with_any_rule() -> None:
    """All dependents of a chosen node run again, whatever their rules; independent nodes are kept."""
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


def test_failed_nodes_also_run_again_if_other_nodes_are_chosen() -> None:
    """Failed nodes also run again if other nodes are chosen, because they would otherwise fail the new run."""
    found = graph("a", "b: a", "c", "d: c")
    ended = {"a": SUCCEEDED, "b": SUCCEEDED, "c": FAILED, "d": UPSTREAM}
    assert retry_plan(found, ended, ["b"]) == RetryPlan(again=("c", "b", "d"), kept=("a",))


def test_the_error_for_an_unknown_node_names_field_and_node() -> None:
    """The error for an unknown node names the field and the node."""
    found = graph("a")
    with pytest.raises(FieldInvalid, match="nodes: there is no node 'x' to run again"):
        retry_plan(found, {"a": SUCCEEDED}, ["a", "x"])


def test_a_retry_without_failed_nodes_keeps_all_unless_nodes_are_chosen() -> None:
    """If no node has failed (for example after a correction by a user), no node runs again unless it is chosen."""
    assert retry_plan(graph("a", "b: a"), dict.fromkeys("ab", SUCCEEDED)) == RetryPlan(again=(), kept=("a", "b"))
