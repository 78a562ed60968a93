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


def test_without_a_failure_the_whole_runs_until_all_have_ended() -> None:
    """If no node fails, nothing has to be done while nodes run, and the topology succeeds after the last node."""
    found = graph(*NODES)
    assert next_action(found, statuses(found, a=RUNNING)) == NextAction(State.RUNNING)
    assert next_action(found, statuses(found, a=SUCCEEDED, b=SUCCEEDED, c=SKIPPED, d=SKIPPED)) == NextAction(
        State.SUCCEEDED
    )


def test_going_on_takes_nothing_back_after_a_failure() -> None:
    """With `continue`, the rules decide, and the topology fails once all nodes have ended."""
    found = graph(*NODES)
    assert next_action(found, statuses(found, a=FAILED, b=RUNNING)) == NextAction(State.RUNNING)
    assert next_action(found, statuses(found, a=FAILED, b=SUCCEEDED, c=UPSTREAM, d=UPSTREAM)) == NextAction(
        State.FAILED
    )


@pytest.mark.parametrize("policy", [OnFailure.STOP, OnFailure.ROLLBACK])
@pytest.mark.parametrize("failure", [FAILED, CANCELLED, replace(FAILED, state=State.ROLLING_BACK)])
def test_a_failure_takes_back_what_has_not_begun_children_first(policy: OnFailure, failure: NodeStatus) -> None:
    """After a failure, blocked and scheduled nodes are cancelled, but a node that waits for a retry continues."""
    found = graph(*NODES, on_failure=policy)
    assert next_action(found, statuses(found, a=failure, b=SCHEDULED)) == NextAction(
        State.RUNNING, cancel=("d", "c", "b")
    )
    assert next_action(found, statuses(found, a=failure, b=RETRYING, c=STOPPED, d=STOPPED)) == NextAction(State.RUNNING)
    assert next_action(found, statuses(found, a=failure, b=RUNNING, c=STOPPED, d=STOPPED)) == NextAction(State.RUNNING)


def test_a_stopped_whole_has_failed_once_all_have_ended() -> None:
    """With `stop`, the topology fails even if a child would have handled the failure."""
    found = graph("a", node("b", "a", trigger_rule=TriggerRule.ONE_FAILED), on_failure=OnFailure.STOP)
    assert next_action(found, statuses(found, a=FAILED, b=STOPPED)) == NextAction(State.FAILED)


def test_a_rollback_goes_up_level_by_level_to_its_end() -> None:
    """The failed node and its neighbors are rolled back first, then their parents, and then the topology has ended."""
    found = graph("a", "b: a", "c: b", on_failure=OnFailure.ROLLBACK)
    undoing, undone = replace(FAILED, state=State.ROLLING_BACK), replace(FAILED, state=State.ROLLED_BACK)
    at = {"a": SUCCEEDED, "b": FAILED, "c": STOPPED}
    assert next_action(found, at) == NextAction(State.ROLLING_BACK, undo=("b",))
    assert next_action(found, {**at, "b": undoing}) == NextAction(State.ROLLING_BACK)
    assert next_action(found, {**at, "b": undone}) == NextAction(State.ROLLING_BACK, undo=("a",))
    assert next_action(found, {**at, "b": undone, "a": undone}) == NextAction(State.ROLLED_BACK)


def test_a_rollback_that_fails_goes_no_further_up() -> None:
    """A parent is not rolled back after its child's rollback failed."""
    found = graph("a", "b: a", "c: a", on_failure=OnFailure.ROLLBACK)
    stuck = replace(FAILED, rollback_failed=True)
    assert next_action(found, {"a": SUCCEEDED, "b": stuck, "c": FAILED}) == NextAction(State.FAILED)
    undoing = replace(FAILED, state=State.ROLLING_BACK)
    assert next_action(found, {"a": SUCCEEDED, "b": stuck, "c": undoing}) == NextAction(State.ROLLING_BACK)


@pytest.mark.parametrize("policy", list(OnFailure))
def test_a_cancel_takes_back_what_waits_and_stops_what_runs(policy: OnFailure) -> None:
    """A cancel also cancels nodes that wait for a retry, and rolls nothing back."""
    found = graph(*NODES, on_failure=policy)
    at = statuses(found, a=RUNNING, b=RETRYING)
    assert next_action(found, at, RequestedAction.CANCEL) == NextAction(
        State.RUNNING, cancel=("d", "c", "b"), stop=("a",)
    )
    ended = statuses(found, a=SUCCEEDED, b=STOPPED, c=STOPPED, d=STOPPED)
    assert next_action(found, ended, RequestedAction.CANCEL) == NextAction(State.CANCELLED)


def test_a_cancel_that_comes_too_late_changes_nothing() -> None:
    """If every node has succeeded before a cancel, the topology succeeds."""
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
def test_the_end_of_its_time_is_a_failure_of_the_whole(policy: OnFailure, end: NextAction) -> None:
    """At the deadline, running nodes are asked to stop and waiting nodes are cancelled; a rollback may follow."""
    found = graph("a", "b: a", "c: b", on_failure=policy)
    at = {"a": SUCCEEDED, "b": RUNNING, "c": NodeStatus()}
    assert next_action(found, at, overdue=True) == NextAction(State.RUNNING, cancel=("c",), stop=("b",))
    assert next_action(found, {**at, "b": CANCELLED, "c": STOPPED}, overdue=True) == end
    done = dict.fromkeys(at, SUCCEEDED)
    assert next_action(found, done, overdue=True) == NextAction(State.SUCCEEDED)


def test_a_pause_holds_what_waits_for_its_time() -> None:
    """During a pause, blocked nodes stay blocked, and running nodes continue."""
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
def test_a_failure_is_handled_by_what_reacts_to_it(rule: TriggerRule, end: NodeStatus, failed: tuple[str, ...]) -> None:
    """A child that runs after a failure handles the failure, unless the child only cleans up or cannot start."""
    found = graph("a", "x", node("b", "a", "x", trigger_rule=rule))
    assert unhandled(found, statuses(found, a=FAILED, x=SUCCEEDED, b=end)) == failed
