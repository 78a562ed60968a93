"""Nodes with conditions run, are skipped or fail, depending on their parents' results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.handlers import Unretriable
from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import PLAIN
from tests.scenarios.test_topologies import stands

if TYPE_CHECKING:
    from duetime.handlers import Context

BRANCHES: dict[str, dict[str, Any]] = {
    "check": {"type": PLAIN},
    "large": {"type": PLAIN, "depends_on": ["check"], "when": "parents.check.result.rows > `100`"},
    "small": {"type": PLAIN, "depends_on": ["check"], "when": "parents.check.result.rows <= `100`"},
    "publish": {"type": PLAIN, "depends_on": ["large"]},
    "after": {"type": PLAIN, "depends_on": ["large", "small"], "trigger_rule": "none_failed"},
}


def giving(graphs: Graphs, **results: Any) -> None:  # noqa: ANN401 - JSON
    """Have each node return its result, or raise the result if it is an exception."""

    def behave(_phase: str, context: Context) -> Any:  # noqa: ANN401 - JSON
        result = results.get(graphs.key_of(context.task_id), "done")
        if isinstance(result, Exception):
            raise result
        return result

    graphs.target = behave


def test_a_node_with_a_false_condition_is_skipped_with_its_dependents() -> None:
    """If a condition is false, the node and its dependents are skipped, but a join after both branches succeeds."""
    with Graphs() as graphs:
        giving(graphs, check={"rows": 7})
        graphs.submit(BRANCHES)
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["check", "small", "after"]
        wanted = {"large": "skipped", "publish": "skipped"}
        assert stands(graphs) == dict.fromkeys(BRANCHES, "succeeded") | wanted
        shown = graphs.ask("GET", f"{PATH}/{graphs.topology}").body["nodes"]
        assert (shown["large"]["when"], shown["check"]["when"]) == ("parents.check.result.rows > `100`", None)


def test_a_condition_that_cannot_be_evaluated_fails_its_node() -> None:
    """A node whose condition cannot be evaluated fails without running, and `on_failure` applies as usual."""
    with Graphs() as graphs:
        giving(graphs, check={"rwos": 7})
        nodes = BRANCHES | {"alarm": {"type": PLAIN, "depends_on": ["large"], "trigger_rule": "one_failed"}}
        graphs.submit(nodes, on_failure="continue")
        graphs.run_until_ended()
        assert sorted(graphs.ran) == ["alarm", "check"]
        failed = graphs.node("large")
        assert failed.error is not None
        assert (failed.state, failed.started_at, failed.error.type) == ("failed", None, "ConditionFailed")
        assert failed.error.message == "parents.check.result.rows > `100` gives null, not true or false"
        assert stands(graphs)["publish"] == "upstream_failed"
        listed = graphs.ask("GET", "/v1/tasks", query="state=failed").body["tasks"]
        assert failed.id.text in [each["id"] for each in listed]


def test_a_branch_is_chosen_by_the_error_of_a_parent() -> None:
    """A condition on one parent's error works like a `Catch` in Step Functions, even with many other parents."""
    with Graphs() as graphs:
        giving(graphs, pay=Unretriable("CardDeclined"))
        other = {f"n{number}": {"type": PLAIN} for number in range(6)}
        rule = {"type": PLAIN, "depends_on": ["pay", *other], "trigger_rule": "all_done"}
        nodes: dict[str, dict[str, Any]] = {
            "pay": {"type": PLAIN},
            **other,
            "declined": {**rule, "when": "parents.pay.error.type == 'Unretriable'"},
            "broken": {**rule, "when": "parents.pay.error.type == 'Other'"},
        }
        graphs.submit(nodes, on_failure="continue")
        assert graphs.run_until_ended().state == "failed"
        assert (stands(graphs)["declined"], stands(graphs)["broken"]) == ("succeeded", "skipped")


@pytest.mark.parametrize(("error", "state"), [("Unretriable", "succeeded"), ("Other", "failed")])
def test_a_skipped_node_does_not_handle_a_failure(error: str, state: str) -> None:
    """A failure counts as handled only if the condition of the handling node is true."""
    with Graphs() as graphs:
        giving(graphs, pay=Unretriable("CardDeclined"))
        refund = {"type": PLAIN, "depends_on": ["pay"], "trigger_rule": "one_failed"}
        condition = f"parents.pay.error.type == '{error}'"
        nodes: dict[str, dict[str, Any]] = {"pay": {"type": PLAIN}, "refund": {**refund, "when": condition}}
        graphs.submit(nodes, on_failure="continue")
        assert graphs.run_until_ended().state == state


@pytest.mark.parametrize("rows", [7, 700])
def test_a_rerun_does_not_evaluate_conditions_of_skipped_nodes_again(rows: int) -> None:
    """In a rerun with kept results, skipped nodes stay skipped, and their conditions are not evaluated again."""
    with Graphs() as graphs:
        giving(graphs, check={"rows": rows}, after=Unretriable())
        graphs.submit(BRANCHES)
        graphs.run_until_ended()
        giving(graphs)
        first, graphs.ran = graphs.ran, []
        graphs.ask("POST", f"{PATH}/{graphs.topology}/retry")
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["after"]
        assert ("large" in first) is (rows == 700)
        assert stands(graphs)["small" if rows == 700 else "large"] == "skipped"
