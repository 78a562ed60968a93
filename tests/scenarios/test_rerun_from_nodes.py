"""If a topology's retry names nodes, these nodes and their dependents run again, and other nodes are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.test_topology_retries import died_before, failed, failing, not_started, refused, slowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

NODES: dict[str, dict[str, Any]] = {
    "load": {"type": PLAIN},
    "beside": {"type": PLAIN},
    "sum": {"type": PLAIN, "depends_on": ["load", "beside"], "inputs": ["load", "beside"]},
    "send": {"type": PLAIN, "depends_on": ["sum"]},
    "last": {"type": PLAIN, "depends_on": ["send"]},
}


class Reruns(Graphs):
    """A scenario whose nodes return their names and their number of runs.

    Attributes:
        inputs: the inputs of each run of the node `sum`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[Any] = []

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - a handler gets it
        """Return the node's name and its number of runs."""
        super().act(phase, context, payload)
        key = self.key_of(context.task_id)
        if key == "sum":
            self.inputs.append(context.inputs)
        return f"{key} {self.ran.count(key)}"

    def rerun(self, *nodes: str, **headers: str) -> Reply:
        """Request a retry from some nodes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", f"{PATH}/{self.topology}/retry", {"nodes": list(nodes)}, headers=named)

    def etag(self) -> str:
        """The version of the topology's task."""
        return f'"{self.whole().version}"'


def succeeded(graphs: Reruns) -> None:
    """Run a topology to its end, and clear the list of started nodes."""
    graphs.submit(NODES, outputs=["sum"])
    assert graphs.run_until_ended().state == "succeeded"
    graphs.run(MINUTE)
    graphs.ran.clear()
    # Repeated nodes begin long after their parents have ended.
    graphs.topologies.controlled.add(graphs.topology)


def test_chosen_nodes_of_a_topology_that_succeeded_run_again() -> None:
    """The chosen nodes and their dependents run again, and the other nodes keep their tasks and results."""
    with Reruns() as graphs:
        succeeded(graphs)
        before = {key: graphs.node(key).id for key in NODES}
        assert graphs.rerun("sum").status == 200
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["sum", "send", "last"]
        assert {key for key in NODES if graphs.node(key).id == before[key]} == {"load", "beside"}
        assert graphs.inputs[-1] == {"load": "load 1", "beside": "beside 1"}
        shown = graphs.ask("GET", f"{PATH}/{graphs.topology}").body
        assert (shown["run"], shown["counts"]) == (2, {"succeeded": 5})
        assert graphs.ask("GET", f"/v1/tasks/{graphs.topology}").body["result"]["outputs"] == {"sum": "sum 1"}


def test_each_nodes_result_is_from_its_last_run() -> None:
    """After two reruns, each node's result is from that node's last run."""
    with Reruns() as graphs:
        succeeded(graphs)
        for first in ("send", "load"):
            assert graphs.rerun(first).status == 200
            assert graphs.run_until_ended().state == "succeeded"
            graphs.run(MINUTE)
        assert graphs.ran == ["send", "last", "load", "sum", "send", "last"]
        assert graphs.inputs[-1]["beside"] == "beside 1"
        assert {graphs.node(key).node_ref.run for key in ("beside", "sum")} == {1, 3}  # type: ignore[union-attr]  # nodes have a reference


def test_failed_nodes_run_again_with_the_chosen_nodes() -> None:
    """In a failed topology, failed nodes, their dependents and the chosen nodes run again."""
    nodes: dict[str, dict[str, Any]] = {
        "a": {"type": PLAIN, "retry": {"max_attempts": 1}},
        "b": {"type": PLAIN, "depends_on": ["a"]},
        "good": {"type": PLAIN},
        "after": {"type": PLAIN, "depends_on": ["good"]},
        "kept": {"type": PLAIN},
    }
    with Reruns() as graphs:
        failed(graphs, nodes)
        assert graphs.rerun("good").status == 200
        assert graphs.run_until_ended().state == "succeeded"
        assert sorted(graphs.ran) == ["a", "after", "b", "good"]


def test_the_history_names_the_chosen_nodes() -> None:
    """The event in the history shows the chosen nodes and the reason."""
    with Reruns() as graphs:
        succeeded(graphs)
        body = {"nodes": ["send", "sum"], "reason": "wrong rates"}
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry", body).status == 200
        (event,) = (
            each
            for each in graphs.ask("GET", f"/v1/tasks/{graphs.topology}/events").body["events"]
            if each["type"] == "retried"
        )
        assert (event["nodes"], event["reason"], event["fields"]) == (["send", "sum"], "wrong rates", [])


@pytest.mark.parametrize(
    ("nodes", "field"),
    [
        (["sum", "nobody"], "nodes"),
        (["sum", "sum"], "nodes"),
        ([""], "nodes[0]"),
        ([f"n{i}" for i in range(21)], "nodes"),
    ],
    ids=["unknown", "twice", "empty", "many"],
)
def test_an_error_for_invalid_node_names_names_the_field(nodes: list[str], field: str) -> None:
    """Unknown, repeated, empty or too many names are refused with the field's name, and no node runs."""
    with Reruns() as graphs:
        succeeded(graphs)
        refused_with = graphs.rerun(*nodes)
        assert (refused_with.status, refused_with.body["errors"][0]["field"]) == (422, field)
        graphs.run(MINUTE)
        assert (graphs.whole().state, graphs.ran) == ("succeeded", [])


def test_a_retry_with_nodes_is_a_conflict_before_or_during_a_run() -> None:
    """A retry with nodes is a conflict before or during a run, and after a cancel."""
    with Reruns() as graphs:
        graphs.target = lambda _phase, _context: graphs.take(30 * SECOND)
        graphs.submit(NODES, delay_seconds=60)
        assert graphs.rerun("sum").status == 409
        graphs.run(MINUTE + 10 * SECOND)
        assert graphs.whole().state == "running"
        assert graphs.rerun("sum").status == 409
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/cancel").status < 300
        graphs.run_until_ended()
        assert graphs.rerun("sum").status == 409


def test_a_repeated_request_for_a_rerun_runs_the_nodes_once() -> None:
    """During a rerun, a repeated request changes nothing, and a different request is refused."""
    with Reruns() as graphs:
        succeeded(graphs)
        tag = graphs.etag()
        statuses = [graphs.rerun("sum", If_Match=tag).status for _ in range(2)]
        statuses += [graphs.rerun("sum").status, graphs.rerun("send").status]
        assert statuses == [200, 200, 200, 409]
        graphs.run_until_ended()
        graphs.run(MINUTE)
        assert graphs.rerun("sum", If_Match=tag).status == 200
        assert graphs.rerun("send", If_Match=tag).status == 412
        graphs.run(MINUTE)
        assert graphs.ran == ["sum", "send", "last"]


def test_a_sub_topology_cannot_be_rerun_alone() -> None:
    """A sub-topology can be rerun only by naming its node in a retry of the outer topology."""
    nodes: dict[str, dict[str, Any]] = {
        "inner": {"type": "topology", "target": {"kind": "topology"}, "payload": {"nodes": {"a": {"type": PLAIN}}}},
        "after": {"type": PLAIN, "depends_on": ["inner"]},
        "beside": {"type": PLAIN},
    }
    with Reruns() as graphs:
        graphs.submit(nodes)
        assert graphs.run_until_ended().state == "succeeded"
        graphs.run(MINUTE)
        graphs.topologies.controlled.add(graphs.topology)
        graphs.ran.clear()
        inner = graphs.node("inner").id
        alone = graphs.ask("POST", f"{PATH}/{inner}/retry", {"nodes": ["a"]})
        assert alone.status == 409
        assert "name its node in a retry of its topology" in alone.body["detail"]
        assert graphs.rerun("inner").status == 200
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["a", "after"]
        assert graphs.node("inner").id != inner


def test_a_retry_without_node_names_runs_only_failed_nodes() -> None:
    """A retry without node names runs only failed nodes again."""
    with Reruns() as graphs:
        succeeded(graphs)
        failing(graphs, "last")
        assert graphs.rerun("sum").status == 200
        assert graphs.run_until_ended(HOUR).state == "failed"
        graphs.run(MINUTE)
        failing(graphs)
        graphs.ran.clear()
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 200
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["last"]


@pytest.mark.parametrize(
    "fault",
    [died_before, not_started, slowed, *(refused(times) for times in (1, 9, 12))],
    ids=["died", "not_started", "slowed", *(f"refused_{times}" for times in (1, 9, 12))],
)
def test_chosen_nodes_are_stored_with_the_retry(fault: Callable[[Graphs], list[Call]]) -> None:
    """The chosen nodes are stored with the retry, so that every process that plans the run finds them."""
    with Reruns() as graphs:
        succeeded(graphs)
        met = fault(graphs)
        assert graphs.rerun("send").status == 200
        ended = graphs.run_until_ended(6 * HOUR)
        graphs.run(10 * MINUTE)
        assert met
        assert (ended.state, graphs.ran) == ("succeeded", ["send", "last"])
