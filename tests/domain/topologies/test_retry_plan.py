from __future__ import annotations

import pytest

from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.retry_plan import RetryPlan, retry_plan
from duetime.domain.topologies.trigger_rules import TriggerRule
from tests.domain.topologies.graphs import FAILED, SUCCEEDED, graph, node

STOPPED = NodeStatus(State.CANCELLED, Reason.STOPPED)
SKIPPED = NodeStatus(State.CANCELLED, Reason.SKIPPED)
UPSTREAM = NodeStatus(State.CANCELLED, Reason.UPSTREAM_FAILED)


def test_what_succeeded_is_kept_and_the_rest_runs_again() -> None:
    """The failed node, and what did not start because of it."""
    found = graph("a", "b: a", "c: b", "d: a")
    ended = {"a": SUCCEEDED, "b": FAILED, "c": UPSTREAM, "d": SUCCEEDED}
    assert retry_plan(found, ended) == RetryPlan(again=("b", "c"), kept=("a", "d"))


def test_what_tidied_up_after_a_failure_tidies_up_again() -> None:
    """`all_done` and `one_failed` had waited for the node that runs again; `one_success` had enough without it."""
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
    """An alarm without a failure has nothing to do in a retry either, nor what depends on it."""
    found = graph("a", node("alarm", "a", trigger_rule=TriggerRule.ONE_FAILED), "call: alarm", "b")
    ended = {"a": SUCCEEDED, "alarm": SKIPPED, "call": SKIPPED, "b": STOPPED}
    assert retry_plan(found, ended) == RetryPlan(again=("b",), kept=("a", "alarm", "call"))


def test_chosen_nodes_run_again_with_what_depends_on_them() -> None:
    """Even if all had succeeded."""
    found = graph("a", "b: a", "c: b", "d: a")
    ended = dict.fromkeys(found.by_key, SUCCEEDED)
    assert retry_plan(found, ended, ["b"]) == RetryPlan(again=("b", "c"), kept=("a", "d"))


@pytest.mark.parametrize(
    ("chosen", "words"), [(["x"], "there is no node 'x' to run again"), ([], "have all succeeded; name those")]
)
def test_a_retry_of_nothing_is_refused(chosen: list[str], words: str) -> None:
    """An unknown name, or nothing that failed: the request names the field."""
    found = graph("a")
    with pytest.raises(FieldInvalid, match=f"nodes: {words}"):
        retry_plan(found, {"a": SUCCEEDED}, chosen)


def test_after_a_rollback_everything_runs_again() -> None:
    """Nothing is left of what had succeeded."""
    found = graph("a", "b: a")
    undone = NodeStatus(State.ROLLED_BACK, started_at=1)
    assert retry_plan(found, {"a": undone, "b": undone}).kept == ()
