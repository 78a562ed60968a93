"""Tests the graph of the demo's workflow, the topology made from the graph, and the conditions for a complete run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime_client.topology_files import read_topology, validate_topology
from duetime_local.demo_receiver import Execution, Receiver
from duetime_local.demo_workflow import MONTAGE, Workflow, count
from duetime_local.project import example

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_local.demo_report import GraphFigures

DIAMOND = Workflow("diamond", {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, {"a": 1, "b": 2, "c": 0.5, "d": 1})
TASKS = {f"t{key}": key for key in DIAMOND.parents}
RAN = (
    Execution("ta", 1, 1, 1_000, 2_000, succeeded=True),
    Execution("tb", 1, 1, 2_100, 4_000, succeeded=True),
    Execution("tc", 1, 1, 2_000, 2_500, succeeded=True),
    Execution("td", 1, 1, 4_100, 5_600, succeeded=True),
)


def counted(*executions: Execution, succeeded: bool = True) -> GraphFigures:
    """Return the figures of a diamond that was created at 600 ms."""
    return count(DIAMOND, TASKS, executions, 600, succeeded=succeeded)


def test_the_example_is_a_valid_topology() -> None:
    """The example file is a valid request, and its longest chain is shorter than the sum of all durations."""
    body = read_topology(example(MONTAGE))
    workflow = Workflow.read()
    assert (len(body["nodes"]), workflow.edges) == (58, 114)
    assert 5 < workflow.shortest_seconds < 6 < sum(workflow.seconds.values())


def test_the_demo_runs_the_graph_of_the_file() -> None:
    """The topology has the dependencies and durations in the file, and some nodes are HTTP calls."""
    workflow = Workflow.read()
    body = workflow.body(Receiver(80))
    validate_topology(body)
    nodes = body["nodes"]
    assert {key: node["depends_on"] for key, node in nodes.items()} == workflow.parents
    assert sum(node["payload"]["work_ms"] for node in nodes.values()) == pytest.approx(
        1000 * sum(workflow.seconds.values()), abs=58
    )
    over_http = [node for node in nodes.values() if "target" in node]
    assert 10 < len(over_http) < 25
    assert max(node["expected_seconds"] for node in over_http) <= 1


def test_a_graph_that_ran_in_order_passes_the_check() -> None:
    """In a correct run each node runs once and after its parents; a repeated report does not count as another run."""
    figures = counted(*RAN, RAN[0])
    assert figures.promises_kept
    assert (figures.nodes, figures.edges, figures.ran, figures.before_parents) == (4, 4, 4, 0)
    assert figures.as_json()["ratio"] == 1.25


@pytest.mark.parametrize(
    ("change", "ran", "before_parents"),
    [
        (lambda seen: seen[:3], 3, 0),
        (lambda seen: [*seen, Execution("tb", 2, 2, 4_000, 4_050, succeeded=True)], 3, 0),
        (lambda seen: [*seen[:3], replace(seen[3], succeeded=False)], 3, 0),
        (lambda seen: [*seen[:3], replace(seen[3], started_at_ms=3_999)], 4, 1),
        (lambda seen: seen[1:], 3, 2),
    ],
    ids=["one is missing", "one ran twice", "one failed", "one was too early", "the first never ran"],
)
def test_missing_repeated_failed_and_early_nodes_are_counted(
    change: Callable[[list[Execution]], list[Execution]], ran: int, before_parents: int
) -> None:
    """A missing, repeated, failed or early node means that the run was not correct."""
    figures = counted(*change(list(RAN)))
    assert (figures.ran, figures.before_parents, figures.promises_kept) == (ran, before_parents, False)


def test_a_topology_without_an_outcome_in_the_api_has_not_succeeded() -> None:
    """A topology without an outcome does not count as succeeded, whatever its nodes did."""
    assert not counted(*RAN, succeeded=False).promises_kept
    assert not counted().promises_kept
