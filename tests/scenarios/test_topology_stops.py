"""Nodes do not start after a stop, and rollbacks go from children to parents."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.batches import ITEMS_A_REQUEST
from duetime.handlers import Unretriable
from duetime_testing.fakes.statements import inserted_item
from duetime_testing.fakes.stepfunctions import Status
from tests.scenarios.graphs import DIAMOND, PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call


def stalled(graphs: Graphs, number: int, functions: set[str]) -> list[str]:
    """Delay the nth call by these functions, and add the operations of all their calls to the returned list."""
    calls: list[str] = []

    def before(call: Call) -> None:
        if call.machine.function in functions:
            calls.append(call.operation)
            if len(calls) == number:
                graphs.take(20 * SECOND)

    graphs.before_call = before
    # Work delayed by a stalled call is late.
    graphs.faulty = True
    return calls


@pytest.mark.slow
def test_no_node_starts_after_its_topology_was_cancelled() -> None:
    """If any call stalls during a cancel, no node starts afterwards."""
    for number in count(1):
        with Graphs() as graphs:
            graphs.target = lambda _phase, _context: graphs.take(3 * SECOND)
            calls = stalled(graphs, number, {"worker", "topology"})
            graphs.submit(DIAMOND)
            if not graphs.run_until(lambda: len(calls) >= number, 30 * SECOND):  # noqa: B023 - called at once
                assert number > 5
                return
            graphs.until_answered("cancel")
            begun = list(graphs.ran)
            graphs.run(10 * MINUTE)
            assert graphs.ran == begun, f"call {number}, {calls[number - 1]}"
            assert graphs.whole().finished_at is not None


@pytest.mark.slow
def test_no_node_starts_after_its_topology_was_paused() -> None:
    """If any call stalls during a pause, no node starts before a resume."""
    for number in count(1):
        with Graphs() as graphs:
            graphs.target = lambda _phase, _context: graphs.take(3 * SECOND)
            calls = stalled(graphs, number, {"worker", "topology"})
            graphs.submit(DIAMOND)
            if not graphs.run_until(lambda: len(calls) >= number, 30 * SECOND):  # noqa: B023 - called at once
                assert number > 5
                return
            graphs.until_answered("pause")
            begun = list(graphs.ran)
            graphs.run(10 * MINUTE)
            assert graphs.ran == begun, f"call {number}, {calls[number - 1]}"
            graphs.until_answered("resume")
            graphs.run(10 * MINUTE)
            assert sorted(graphs.ran) == sorted(DIAMOND), f"call {number}, {calls[number - 1]}"
            assert graphs.whole().finished_at is not None


@pytest.mark.slow
def test_a_rollback_keeps_its_order_if_any_call_stalls() -> None:
    """If any call stalls during a rollback, each node is still rolled back once, after all nodes that ran later."""
    after = {"top": {"left", "right", "bottom"}, "left": {"bottom"}, "right": {"bottom"}, "bottom": set()}
    bad: dict[str, Any] = {"type": UNDONE, "depends_on": ["bottom"], "retry": {"max_attempts": 1}}
    nodes = {**{key: {**node, "type": UNDONE} for key, node in DIAMOND.items()}, "bad": bad}
    for number in count(1):
        with Graphs() as graphs:
            ended: set[str] = set()

            def target(phase: str, context: Context, graphs: Graphs = graphs, ended: set[str] = ended) -> str:
                key = graphs.key_of(context.task_id)
                if phase == "run" and key == "bad":
                    raise ValueError
                if phase == "rollback":
                    assert after.get(key, set()) <= ended, f"{key} before {after[key] - ended}"
                    graphs.take(SECOND)
                    ended.add(key)
                return "done"

            graphs.target = target
            graphs.submit(nodes, on_failure="rollback")
            assert graphs.run_until(lambda: "bad" in graphs.ran)
            calls = stalled(graphs, number, {"worker", "topology"})
            assert graphs.run_until_ended(2 * HOUR).error is not None
            graphs.run(2 * MINUTE)
            assert {graphs.node(key).state for key in nodes} == {"rolled_back"}
            assert sorted(graphs.undone) == sorted(nodes)
            if len(calls) < number:
                assert number > 5
                return


def unwritten(graphs: Graphs) -> None:
    """Break the only execution of a topology whose plans cannot store anything."""

    def refuse(call: Call) -> None:
        if call.machine.function == "topology" and call.operation == "put_item":
            call.refuse()

    graphs.before_call = refuse
    graphs.faulty = True
    graphs.submit(DIAMOND)
    assert graphs.run_until(lambda: graphs.states.executions)
    (execution,) = graphs.states.executions
    graphs.states.break_execution(execution, Status.TIMED_OUT)


@pytest.mark.parametrize("stopped", ["by_its_user", "by_its_failure"])
def test_nodes_of_a_topology_that_ended_before_its_plan_are_shown_as_stopped(stopped: str) -> None:
    """Nodes without a task are shown like other nodes that have never begun."""
    with Graphs() as graphs:
        unwritten(graphs)
        path = f"{PATH}/{graphs.topology}"
        assert graphs.ask("GET", path).body["counts"] == {"blocked": len(DIAMOND)}
        if stopped == "by_its_user":
            assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/cancel", {"force": True}).status == 202
        else:
            fail = {"fence": graphs.whole().fence, "outcome": "failed", "retriable": False}
            error = {"type": "X", "message": "by hand"}
            assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/notify", fail | {"error": error}).status == 200
        graphs.run(MINUTE)
        graphs.before_call = None
        graphs.run_until_ended(2 * HOUR)
        graphs.run(HOUR)
        shown = graphs.ask("GET", path).body
        assert (shown["counts"], shown["percent"], graphs.ran) == ({"stopped": len(DIAMOND)}, 100, [])
        assert {(node["state"], node["reason"]) for node in shown["nodes"].values()} == {("cancelled", "stopped")}
        if stopped == "by_its_failure":
            assert graphs.ask("POST", f"{path}/retry").status == 200
            assert graphs.ask("GET", path).body["counts"] == {"blocked": len(DIAMOND)}
            graphs.run_until_ended()
            assert graphs.ask("GET", path).body["counts"] == {"succeeded": len(DIAMOND)}


FIRST_NODES: dict[str, dict[str, Any]] = {f"n{number}": {"type": PLAIN} for number in range(ITEMS_A_REQUEST + 1)}


def plan_stands_still(graphs: Graphs, duration: Millis) -> list[Call]:
    """Delay the plan before it creates the last of the first nodes, which does not fit into the batch."""
    batches = count()

    def is_wanted(call: Call) -> bool:
        is_batch = call.machine.function == "topology" and call.operation == "batch_execute_statement"
        return is_batch and next(batches) == 1

    graphs.faulty = True
    return graphs.slow(is_wanted, duration)


@pytest.mark.parametrize("policy", ["stop", "rollback"])
def test_no_first_node_starts_after_another_has_failed(policy: str) -> None:
    """If the plan stalls until another first node has failed, a first node that is not created yet does not start."""
    with Graphs() as graphs:

        def fail(_phase: str, _context: Context) -> None:
            raise Unretriable

        graphs.target = fail
        stalls = plan_stands_still(graphs, 4 * MINUTE + 40 * SECOND)
        graphs.submit(FIRST_NODES, on_failure=policy)
        assert graphs.run_until_ended().state == "failed"
        (statement,) = stalls[0].request["Statements"]
        _, item = inserted_item(statement["Statement"], statement["Parameters"])
        last = graphs.key_of(item[schema.SORT_KEY]["S"])
        assert graphs.ran
        assert last not in graphs.ran
        assert graphs.node(last).state == "cancelled"


def test_no_first_node_starts_after_a_pause_during_its_plan() -> None:
    """After a pause during the plan, the nodes in that plan do not start until a resume."""
    with Graphs() as graphs:
        stalls = plan_stands_still(graphs, 20 * SECOND)
        graphs.submit(FIRST_NODES)
        assert graphs.run_until(lambda: stalls)
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/pause").status == 202
        graphs.run(10 * MINUTE)
        assert graphs.ran == []
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/resume").status in {200, 202}
        assert graphs.run_until_ended().state == "succeeded"
        assert sorted(graphs.ran) == sorted(FIRST_NODES)
