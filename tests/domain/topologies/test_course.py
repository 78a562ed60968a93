from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_progress import NextAction, next_action, unhandled
from duetime.domain.topologies.trigger_rules import TriggerRule
from tests.domain.topologies.graphs import FAILED, RUNNING, SUCCEEDED, graph, node, statuses

CANCELLED = NodeStatus(State.CANCELLED)
STOPPED = NodeStatus(State.CANCELLED, Reason.STOPPED)
SKIPPED = NodeStatus(State.CANCELLED, Reason.SKIPPED)
UPSTREAM = NodeStatus(State.CANCELLED, Reason.UPSTREAM_FAILED)
SCHEDULED = NodeStatus(State.SCHEDULED)
RETRYING = NodeStatus(State.WAITING, started_at=1)
NODES = ("a", "b", "c: a", "d: c")


def test_a_topology_without_failures_succeeds_after_the_last_node() -> None:
    """If no node fails, nothing has to be done while nodes run, and the topology succeeds after the last node."""
    found = graph(*NODES)
    assert next_action(found, statuses(found, a=RUNNING)) == NextAction(State.RUNNING)
    assert next_action(found, statuses(found, a=SUCCEEDED, b=SUCCEEDED, c=SKIPPED, d=SKIPPED)) == NextAction(
        State.SUCCEEDED
    )


def test_a_topology_with_continue_cancels_nothing_after_a_failure() -> None:
    """With `continue`, a failure cancels no node, and the topology fails once all nodes have ended."""
    found = graph(*NODES)
    assert next_action(found, statuses(found, a=FAILED, b=RUNNING)) == NextAction(State.RUNNING)
    assert next_action(found, statuses(found, a=FAILED, b=SUCCEEDED, c=UPSTREAM, d=UPSTREAM)) == NextAction(
        State.FAILED
    )


@pytest.mark.parametrize("policy", [OnFailure.STOP, OnFailure.ROLLBACK])
@pytest.mark.parametrize("failure", [FAILED, CANCELLED, replace(FAILED, state=State.ROLLING_BACK)])
def test_a_failure_cancels_nodes_that_have_not_begun_children_first(policy: OnFailure, failure: NodeStatus) -> None:
    """After a failure, nodes that have not begun are cancelled, children first; nodes with a retry ahead continue."""
    found = graph(*NODES, on_failure=policy)
    assert next_action(found, statuses(found, a=failure, b=SCHEDULED)) == NextAction(
        State.RUNNING, cancel=("d", "c", "b")
    )
    assert next_action(found, statuses(found, a=failure, b=RETRYING, c=STOPPED, d=STOPPED)) == NextAction(State.RUNNING)
    assert next_action(found, statuses(found, a=failure, b=RUNNING, c=STOPPED, d=STOPPED)) == NextAction(State.RUNNING)


def test_a_topology_with_stop_fails_once_all_nodes_have_ended() -> None:
    """With `stop`, a topology fails after a failure, even if a child would have handled the failure."""
    found = graph("a", node("b", "a", trigger_rule=TriggerRule.ONE_FAILED), on_failure=OnFailure.STOP)
    assert next_action(found, statuses(found, a=FAILED, b=STOPPED)) == NextAction(State.FAILED)


def test_a_rollback_undoes_nodes_level_by_level_up_to_the_roots() -> None:
    """The failed node is rolled back first, then its parent, and then the topology counts as rolled back."""
    found = graph("a", "b: a", "c: b", on_failure=OnFailure.ROLLBACK)
    undoing, undone = replace(FAILED, state=State.ROLLING_BACK), replace(FAILED, state=State.ROLLED_BACK)
    at = {"a": SUCCEEDED, "b": FAILED, "c": STOPPED}
    assert next_action(found, at) == NextAction(State.ROLLING_BACK, undo=("b",))
    assert next_action(found, {**at, "b": undoing}) == NextAction(State.ROLLING_BACK)
    assert next_action(found, {**at, "b": undone}) == NextAction(State.ROLLING_BACK, undo=("a",))
    assert next_action(found, {**at, "b": undone, "a": undone}) == NextAction(State.ROLLED_BACK)


def test_a_failed_rollback_does_not_continue_to_the_parent() -> None:
    """A parent is not rolled back after its child's rollback failed."""
    found = graph("a", "b: a", "c: a", on_failure=OnFailure.ROLLBACK)
    stuck = replace(FAILED, rollback_failed=True)
    assert next_action(found, {"a": SUCCEEDED, "b": stuck, "c": FAILED}) == NextAction(State.FAILED)
    undoing = replace(FAILED, state=State.ROLLING_BACK)
    assert next_action(found, {"a": SUCCEEDED, "b": stuck, "c": undoing}) == NextAction(State.ROLLING_BACK)


@pytest.mark.parametrize("policy", list(OnFailure))
def test_a_cancel_cancels_waiting_nodes_and_stops_running_nodes(policy: OnFailure) -> None:
    """A cancel stops running nodes, cancels nodes that wait for a retry, and rolls back no node."""
    found = graph(*NODES, on_failure=policy)
    at = statuses(found, a=RUNNING, b=RETRYING)
    assert next_action(found, at, RequestedAction.CANCEL) == NextAction(
        State.RUNNING, cancel=("d", "c", "b"), stop=("a",)
    )
    ended = statuses(found, a=SUCCEEDED, b=STOPPED, c=STOPPED, d=STOPPED)
    assert next_action(found, ended, RequestedAction.CANCEL) == NextAction(State.CANCELLED)


def test_a_cancel_that_comes_too_late_changes_nothing() -> None:
    """A cancel after every node has succeeded changes nothing, and the topology succeeds."""
    found = graph("a", "b: a")
    assert next_action(found, statuses(found, a=SUCCEEDED, b=SUCCEEDED), RequestedAction.CANCEL) == NextAction(
        State.SUCCEEDED
    )


@pytest.mark.parametrize(
    ("policy", "end"),
    [
        (OnFailure.STOP, NextAction(State.FAILED)),
        (OnFailure.CONTINUE, NextAction(State.FAILED)),
        (OnFailure.ROLLBACK, NextAction(State.ROLLING_BACK, undo=("a",))),
    ],
)
def test_a_topology_fails_at_its_deadline(policy: OnFailure, end: NextAction) -> None:
    """At the deadline, running nodes are stopped and waiting nodes cancelled; then the topology fails or rolls back."""
    found = graph("a", "b: a", "c: b", on_failure=policy)
    at = {"a": SUCCEEDED, "b": RUNNING, "c": NodeStatus()}
    assert next_action(found, at, overdue=True) == NextAction(State.RUNNING, cancel=("c",), stop=("b",))
    assert next_action(found, {**at, "b": CANCELLED, "c": STOPPED}, overdue=True) == end
    done = dict.fromkeys(at, SUCCEEDED)
    assert next_action(found, done, overdue=True) == NextAction(State.SUCCEEDED)


def test_a_pause_holds_scheduled_nodes_but_not_running_nodes() -> None:
    """A pause holds scheduled and waiting nodes, while blocked nodes stay blocked and running nodes continue."""
    found = graph("a", "b", "c", "d: a")
    at = statuses(found, a=RUNNING, b=SCHEDULED, c=RETRYING)
    assert next_action(found, at, RequestedAction.PAUSE) == NextAction(State.PAUSED, pause=("b", "c"))


@pytest.mark.parametrize(
    ("rule", "end", "failed"),
    [
        (TriggerRule.ALL_SUCCESS, UPSTREAM, ("b",)),
        (TriggerRule.NONE_FAILED, UPSTREAM, ("b",)),
        (TriggerRule.ONE_FAILED, SUCCEEDED, ()),
        (TriggerRule.ONE_SUCCESS, SUCCEEDED, ()),
        (TriggerRule.ONE_FAILED, FAILED, ("b",)),
        (TriggerRule.ALL_DONE, SUCCEEDED, ("a",)),
        (TriggerRule.ALWAYS, SUCCEEDED, ("a",)),
        (TriggerRule.ALL_DONE, FAILED, ("a", "b")),
    ],
)
def test_a_child_that_runs_after_a_failure_handles_the_failure(
    rule: TriggerRule, end: NodeStatus, failed: tuple[str, ...]
) -> None:
    """A child that runs after a failure handles the failure, unless the child only cleans up or cannot start."""
    found = graph("a", "x", node("b", "a", "x", trigger_rule=rule))
    assert unhandled(found, statuses(found, a=FAILED, x=SUCCEEDED, b=end)) == failed
