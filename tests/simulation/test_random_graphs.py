"""Random graphs run on the unmodified functions, and the results are compared with the rules' definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime.handlers import Unretriable
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.scenarios.test_topologies import break_executions, stands

if TYPE_CHECKING:
    from duetime.handlers import Context


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Up to seven nodes with any trigger rules, and the nodes that fail."""
    count = draw(st.integers(1, 7))
    nodes = {
        f"n{number}": {
            "type": PLAIN,
            "depends_on": sorted(draw(st.sets(st.sampled_from([f"n{i}" for i in range(number)]))) if number else []),
            "trigger_rule": draw(st.sampled_from(TriggerRule)).value,
        }
        for number in range(count)
    }
    return nodes, draw(st.sets(st.sampled_from(sorted(nodes))))


def expected(nodes: dict[str, dict[str, Any]], fails: set[str]) -> dict[str, str]:
    """The expected end of each node with `on_failure` `continue`, computed from its rule's definition."""
    ends: dict[str, str] = {}
    for key, node in nodes.items():
        parents = [ends[parent] for parent in node["depends_on"]]
        good, skipped = parents.count("succeeded"), parents.count("skipped")
        bad = len(parents) - good - skipped
        runs = {
            "all_success": not bad and not skipped,
            "all_done": True,
            "one_success": good > 0,
            "one_failed": bad > 0,
            "none_failed": not bad,
            "always": True,
        }[node["trigger_rule"]]
        if runs or not parents:
            ends[key] = "failed" if key in fails else "succeeded"
        else:
            ends[key] = "upstream_failed" if bad and node["trigger_rule"] != "one_failed" else "skipped"
    return ends


def _run(
    nodes: dict[str, dict[str, Any]], fails: set[str], breaks: list[int], lost: set[int]
) -> tuple[dict[str, str], list[str]]:
    """Run a graph to its end, and return the nodes' states and the nodes that ran."""
    with Graphs() as graphs:
        graphs.faulty = True
        answered: list[int] = []

        def forget() -> bool:
            answered.append(len(answered))
            return answered[-1] in lost

        def behave(_phase: str, context: Context) -> str:
            graphs.take(2 * SECOND)
            if graphs.key_of(context.task_id) in fails:
                raise Unretriable
            return "done"

        graphs.states.forgets = forget
        graphs.target = behave
        graphs.submit(nodes, on_failure="continue")
        for seconds in breaks:
            graphs.run(seconds * SECOND)
            break_executions(graphs)
        graphs.run_until_ended(within=30 * MINUTE)
        return stands(graphs), graphs.ran


@given(graphs())
def test_every_node_ends_as_its_rule_says(drawn: tuple[dict[str, dict[str, Any]], set[str]]) -> None:
    """For any graph and any failures, each permitted node runs once, and each other node states why it did not run."""
    wanted = expected(*drawn)
    ends, ran = _run(*drawn, [], set())
    assert ends == wanted
    assert sorted(ran) == sorted(key for key, end in wanted.items() if end in {"succeeded", "failed"})


@pytest.mark.slow
@given(graphs(), st.lists(st.integers(1, 9), max_size=4), st.sets(st.integers(0, 6)))
def test_every_node_ends_by_its_rule_even_if_executions_break(
    drawn: tuple[dict[str, dict[str, Any]], set[str]], breaks: list[int], lost: set[int]
) -> None:
    """If executions fail at any time and tokens are lost, each node still runs once and ends as its rule requires."""
    wanted = expected(*drawn)
    ends, ran = _run(*drawn, breaks, lost)
    assert ends == wanted
    assert sorted(ran) == sorted(key for key, end in wanted.items() if end in {"succeeded", "failed"})
