"""Topologies run, fail, roll back, are controlled, and end whatever happens to their executions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from duetime.domain.operating_parameters import LONGEST_CHECK_INTERVAL, SHORTEST_CHECK_INTERVAL
from duetime.domain.times import to_iso
from duetime.handlers import AttemptCancelled, Unretriable
from duetime_testing.fakes.stepfunctions import Status
from tests.scenarios.graphs import DIAMOND, PATH, Graphs
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, UNDONE

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

LONG = {key: {**node, "timeout_seconds": 800} for key, node in DIAMOND.items()}
UNDOABLE = {key: {**node, "type": UNDONE, "retry": {"max_attempts": 1}} for key, node in DIAMOND.items()}


def stands(graphs: Graphs) -> dict[str, str]:
    """The state of each node, or the reason for which the node was cancelled."""
    nodes = graphs.ask("GET", f"{PATH}/{graphs.topology}").body["nodes"]
    return {key: node["reason"] or node["state"] for key, node in nodes.items()}


def failing(graphs: Graphs, *keys: str, takes: int = 0) -> None:
    """Have these nodes fail permanently at once, and the other nodes succeed after this many seconds."""

    def behave(_phase: str, context: Context) -> str:
        if graphs.key_of(context.task_id) in keys:
            raise Unretriable
        graphs.take(takes * SECOND)
        return "done"

    graphs.target = behave


def break_executions(graphs: Graphs) -> int:
    """Break every running execution; return their number."""
    running = graphs.states.running()
    for execution in running:
        graphs.states.break_execution(execution.arn, Status.TIMED_OUT)
    return len(running)


def refuse_node_tasks(call: Call) -> None:
    """Have the table refuse the creation of nodes' tasks."""
    if call.machine.function == "topology" and call.operation == "put_item" and (call.partition or "")[:2] == "20":
        call.refuse()


def test_a_node_runs_after_its_parents_and_once() -> None:
    """A diamond-shaped graph runs from top to bottom, each node once, and its topology succeeds."""
    with Graphs() as graphs:
        graphs.submit(DIAMOND)
        ended = graphs.run_until_ended()
        assert (graphs.ran[0], sorted(graphs.ran[1:3]), graphs.ran[3:]) == ("top", ["left", "right"], ["bottom"])
        assert ended.result is not None
        assert (ended.state, ended.result.data) == ("succeeded", b'{"run":1,"nodes":{"succeeded":4}}')
        assert set(stands(graphs).values()) == {"succeeded"}


def test_a_successful_node_shows_100_percent_whatever_progress_was_reported() -> None:
    """A successful node shows 100 percent, while a failed node keeps its reported progress."""
    with Graphs() as graphs:

        def behave(_phase: str, context: Context) -> str:
            if graphs.key_of(context.task_id) in {"left", "right"}:
                context.progress(40, "nearly half")
            if graphs.key_of(context.task_id) == "right":
                raise Unretriable
            return "done"

        graphs.target = behave
        graphs.submit(DIAMOND)
        graphs.run_until_ended()
        nodes = graphs.ask("GET", f"{PATH}/{graphs.topology}").body["nodes"]
        assert {key: node["percent"] for key, node in nodes.items()} == {
            "top": 100,
            "left": 100,
            "right": 40,
            "bottom": 0,
        }


def test_no_node_starts_after_a_failure_with_stop() -> None:
    """With `stop`, a failed node cancels the nodes that have not begun, and fails the topology."""
    with Graphs() as graphs:
        failing(graphs, "left")
        graphs.submit(DIAMOND)
        ended = graphs.run_until_ended()
        assert "bottom" not in graphs.ran
        assert stands(graphs)["bottom"] in {"stopped", "upstream_failed"}
        assert ended.error is not None
        assert (ended.state, ended.error.type, ended.error.message) == (
            "failed",
            "NodesFailed",
            "the node left failed",
        )


def test_a_failure_keeps_children_in_other_branches_from_starting() -> None:
    """If another branch fails, a running node ends normally, but its child does not start."""
    with Graphs() as graphs:

        def behave(_phase: str, context: Context) -> str:
            if graphs.key_of(context.task_id) == "bad":
                graphs.take(2 * SECOND)
                raise Unretriable
            graphs.take(20 * SECOND)
            return "done"

        graphs.target = behave
        graphs.submit(
            {"bad": {"type": PLAIN}, "slow": {"type": PLAIN}, "after": {"type": PLAIN, "depends_on": ["slow"]}}
        )
        graphs.run(2 * MINUTE)
        assert stands(graphs) == {"bad": "failed", "slow": "succeeded", "after": "stopped"}


def test_a_nodes_inputs_have_its_parents_results_by_node_key() -> None:
    """A node's inputs have its parents' results by node key, with null for a failed parent."""
    with Graphs() as graphs:
        given: dict[str, object] = {}

        def behave(_phase: str, context: Context) -> str:
            key = graphs.key_of(context.task_id)
            given[key] = context.inputs
            if key == "right":
                raise Unretriable
            return key

        graphs.target = behave
        bottom = {"depends_on": ["left", "right", "top"], "inputs": ["left", "right"], "trigger_rule": "all_done"}
        graphs.submit({**DIAMOND, "bottom": {"type": PLAIN, **bottom}}, on_failure="continue")
        graphs.run_until_ended()
        assert json.loads(json.dumps(given["bottom"])) == {"left": "left", "right": None}
        assert not given["left"]


def test_rules_decide_which_nodes_start_after_a_failure_with_continue() -> None:
    """With `continue`, a failure cancels nodes that need a success, and starts nodes that run after failures."""
    with Graphs() as graphs:
        failing(graphs, "left")
        helper = {"type": PLAIN, "depends_on": ["left"], "trigger_rule": "one_failed"}
        graphs.submit({**DIAMOND, "helper": helper}, on_failure="continue")
        assert graphs.run_until_ended().state == "failed"
        assert (stands(graphs)["bottom"], stands(graphs)["helper"]) == ("upstream_failed", "succeeded")


@pytest.mark.slow
def test_a_topology_ends_after_skipping_a_long_chain() -> None:
    """If a hundred nodes in a chain are skipped one after another, the topology ends."""
    with Graphs() as graphs:
        graphs.faulty = True
        failing(graphs, "n0")
        nodes = {f"n{i}": {"type": PLAIN, "depends_on": [f"n{i - 1}"] if i else []} for i in range(100)}
        graphs.submit(nodes, on_failure="continue")
        assert graphs.run_until_ended().state == "failed"
        assert set(stands(graphs).values()) == {"failed", "upstream_failed"}


# Rollbacks.


def test_a_failed_rollback_does_not_continue_to_the_parent() -> None:
    """If a node's rollback fails, the node's parents are not rolled back."""
    with Graphs() as graphs:

        def behave(phase: str, context: Context) -> str:
            if (phase, graphs.key_of(context.task_id)) in {("rollback", "left"), ("run", "bottom")}:
                raise Unretriable
            return "done"

        graphs.target = behave
        graphs.submit(UNDOABLE, on_failure="rollback")
        ended = graphs.run_until_ended()
        assert stands(graphs)["top"] == "succeeded"
        assert ended.error is not None
        assert (ended.state, ended.error.message) == (
            "failed",
            "the node bottom failed; the node left could not be rolled back",
        )


def test_a_rollback_ends_at_a_node_that_cannot_roll_back() -> None:
    """The rollback of a node that cannot roll back is tried once, and then the topology fails."""
    with Graphs() as graphs:
        failing(graphs, "bottom")
        unable = {**DIAMOND["bottom"], "rollback_on_failure": True}
        graphs.submit({**DIAMOND, "bottom": unable}, on_failure="rollback")
        ended = graphs.run_until_ended()
        assert ended.error is not None
        assert (ended.state, ended.error.message) == (
            "failed",
            "the node bottom failed; the node bottom could not be rolled back",
        )
        bottom = graphs.node("bottom")
        assert bottom.error is not None
        assert bottom.error.type == "RollbackUnknown"
        assert [line.error and line.error.type for line in bottom.attempt_history] == ["Unretriable", None]


def test_a_nodes_rollback_begins_without_progress() -> None:
    """The progress that a node reported before its topology's rollback is not shown during the rollback."""
    with Graphs() as graphs:

        def behave(phase: str, context: Context) -> None:
            if phase == "run" and graphs.key_of(context.task_id) == "bad":
                raise Unretriable
            if phase == "run":
                context.progress(70, "most of it")
            graphs.take(10 * SECOND)

        graphs.target = behave
        graphs.submit(
            {"first": {"type": UNDONE}, "bad": {"type": UNDONE, "depends_on": ["first"]}}, on_failure="rollback"
        )
        assert graphs.run_until(lambda: "bad" in graphs.ran)
        assert graphs.node("first").progress is not None
        assert graphs.run_until(lambda: "first" in graphs.undone)
        assert (graphs.node("first").state, graphs.node("first").progress) == ("rolling_back", None)
        graphs.run_until_ended()


@pytest.mark.parametrize(
    ("cancels", "said"), [(True, "the node left was cancelled"), (False, "it was not done within 30 s")]
)
def test_a_rollback_after_a_timeout_or_cancel_reports_no_failed_node(*, cancels: bool, said: str) -> None:
    """A rollback after a timeout or a cancelled node does not report a failed node."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, _context: graphs.take(20 * SECOND)
        graphs.submit(UNDOABLE, on_failure="rollback", timeout_seconds=3600 if cancels else 30)
        graphs.run(5 * SECOND)
        if cancels:
            assert graphs.ask("POST", f"/v1/tasks/{graphs.node('left').id}/cancel").status == 200
        ended = graphs.run_until_ended()
        assert ended.error is not None
        assert (ended.error.type, ended.error.message) == ("RolledBack", f"rolled back after {said}")


# Users' requests.


def test_a_topologys_retry_runs_only_failed_nodes_and_dependents() -> None:
    """In a retry, only failed nodes and their dependents run again, as new tasks, and the topology succeeds."""
    with Graphs() as graphs:
        graphs.faulty = True  # in a retry, a node begins long after its kept parents have ended
        failing(graphs, "left")
        graphs.submit(DIAMOND)
        assert graphs.run_until_ended().state == "failed"
        before, begun = {key: graphs.node(key).id for key in DIAMOND}, len(graphs.ran)
        failing(graphs)
        assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/retry").status == 200
        assert graphs.run_until_ended().state == "succeeded"
        assert "top" not in graphs.ran[begun:]
        assert graphs.ran[-1] == "bottom"
        assert {key: graphs.node(key).id == before[key] for key in ("top", "left", "bottom")} == {
            "top": True,
            "left": False,
            "bottom": False,
        }


def test_a_cancelled_topology_starts_no_other_nodes() -> None:
    """If a topology is cancelled, its running nodes are asked to stop, and its other nodes do not start."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, _context: graphs.take(20 * SECOND)
        graphs.submit(DIAMOND)
        graphs.run(10 * SECOND)
        assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/cancel", {"force": True}).status == 202
        assert graphs.node("top").requested_action == "cancel"
        assert graphs.run_until_ended().state == "cancelled"
        assert graphs.ran == ["top"]


def test_no_node_starts_during_a_topologys_pause() -> None:
    """No node starts during a pause; after a resume the topology continues."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.target = lambda _phase, _context: graphs.take(5 * SECOND)
        graphs.submit(DIAMOND)
        graphs.run(3 * SECOND)
        graphs.ask("POST", f"/v1/tasks/{graphs.topology}/pause")
        graphs.run(10 * MINUTE)
        assert graphs.ran == ["top"]
        graphs.ask("POST", f"/v1/tasks/{graphs.topology}/resume")
        assert graphs.run_until_ended().state == "succeeded"
        assert sorted(graphs.ran) == sorted(DIAMOND)


def test_a_node_that_a_user_cancels_counts_as_failed() -> None:
    """A node that a user cancels counts as failed for its children."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, _context: graphs.take(20 * SECOND)
        graphs.submit(DIAMOND, on_failure="continue")
        graphs.run(5 * SECOND)
        assert graphs.ask("POST", f"/v1/tasks/{graphs.node('left').id}/cancel").status == 200
        graphs.run(5 * MINUTE)
        expected = {"top": "succeeded", "left": "cancelled", "right": "succeeded", "bottom": "upstream_failed"}
        assert stands(graphs) == expected


def test_a_due_time_set_on_a_blocked_node_still_applies_later() -> None:
    """A due time that is set while a node is blocked still applies after the node's parents end."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.target = lambda _phase, _context: graphs.take(20 * SECOND)
        graphs.submit(DIAMOND)
        graphs.run(5 * SECOND)
        at = to_iso(graphs.now + 10 * MINUTE)
        assert graphs.ask("PATCH", f"/v1/tasks/{graphs.node('left').id}", {"due_at": at}).status == 200
        graphs.run(9 * MINUTE)
        assert graphs.ran == ["top", "right"]
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["top", "right", "left", "bottom"]


def test_no_node_starts_after_a_topologys_deadline() -> None:
    """After a topology's deadline, no node starts, and the topology fails with `DeadlineExceeded`."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, _context: graphs.take(40 * SECOND)
        graphs.submit(DIAMOND, timeout_seconds=10)
        ended = graphs.run_until_ended()
        assert graphs.ran == ["top"]
        assert ended.error is not None
        assert (ended.state, ended.error.type) == ("failed", "DeadlineExceeded")


# Executions that break.


def test_an_execution_that_breaks_before_its_plan_is_replaced() -> None:
    """If an execution breaks before its plan, another execution plans the nodes, and no attempt is counted."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.before_call = refuse_node_tasks
        graphs.submit(DIAMOND)
        graphs.run(30 * SECOND)
        assert break_executions(graphs) == 1
        graphs.before_call = None
        ended = graphs.run_until_ended(within=2 * SHORTEST_CHECK_INTERVAL)
        assert (ended.state, ended.attempt, sorted(graphs.ran)) == ("succeeded", 1, sorted(DIAMOND))


def test_repeatedly_broken_executions_use_up_no_attempt() -> None:
    """Broken executions are replaced at each check, and nodes continue in the meantime."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.target = lambda _phase, _context: graphs.take(10 * MINUTE)
        graphs.submit(LONG)
        broken = 0
        for _ in range(40):
            graphs.run(MINUTE)
            broken += break_executions(graphs)
        graphs.run(30 * MINUTE)
        assert broken > graphs.whole().retry.max_attempts
        assert sorted(graphs.ran) == sorted(DIAMOND)
        assert graphs.whole().state == "succeeded"


@pytest.mark.parametrize("policy", ["stop", "continue", "rollback"])
def test_a_failure_leads_to_the_same_end_without_an_execution(policy: str) -> None:
    """Under each failure policy, nodes and topology end in the same states even if the execution breaks."""

    def run(*, breaks: bool) -> tuple[dict[str, str], str]:
        with Graphs() as graphs:
            graphs.faulty = True

            def behave(phase: str, context: Context) -> str:
                graphs.take(5 * SECOND)
                if phase == "run" and graphs.key_of(context.task_id) == "left":
                    raise Unretriable
                return "done"

            graphs.target = behave
            tidy = {"type": UNDONE, "depends_on": ["right"], "trigger_rule": "all_done"}
            graphs.submit({**UNDOABLE, "tidy": tidy}, on_failure=policy)
            graphs.run(2 * SECOND)
            if breaks:
                assert break_executions(graphs) == 1
            graphs.run(20 * MINUTE)
            return stands(graphs), str(graphs.whole().state)

    assert run(breaks=True) == run(breaks=False)


@pytest.mark.slow
def test_a_check_finds_an_execution_that_breaks_after_hours() -> None:
    """An execution that breaks after hours is found at the next check, about an hour later."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.target = lambda _phase, _context: graphs.take(10 * MINUTE)
        chain = {
            f"n{i}": {"type": PLAIN, "timeout_seconds": 800, "depends_on": [f"n{i - 1}"] if i else []}
            for i in range(10)
        }
        graphs.submit(chain)
        graphs.run(90 * MINUTE)
        assert break_executions(graphs) == 1
        assert graphs.run_until_ended(20 * MINUTE + LONGEST_CHECK_INTERVAL).state == "succeeded"
        assert len(graphs.ran) == len(chain)


@pytest.mark.slow
def test_a_topology_cancelled_between_attempts_leaves_no_open_node() -> None:
    """If a topology is cancelled between two attempts, its waiting nodes are cancelled and running nodes stopped."""
    with Graphs() as graphs:
        graphs.faulty = True

        def behave(_phase: str, context: Context) -> str:
            if graphs.key_of(context.task_id) == "left":
                for _ in range(100):
                    graphs.take(6 * SECOND)
                    if context.requested_action:
                        raise AttemptCancelled
            return "done"

        graphs.target = behave
        graphs.submit(LONG)
        graphs.run(30 * SECOND)
        assert break_executions(graphs) == 1
        assert graphs.run_until(lambda: graphs.whole().state == "waiting", step=10)
        assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/cancel").status in {200, 202}
        graphs.run(15 * MINUTE)
        assert graphs.whole().state == "cancelled"
        assert graphs.whole().finished_at is not None
        expected = {"top": "succeeded", "left": "cancelled", "right": "succeeded", "bottom": "stopped"}
        assert stands(graphs) == expected


@pytest.mark.parametrize("breaks", [False, True])
def test_a_topology_cancelled_during_an_interrupted_plan_ends(*, breaks: bool) -> None:
    """If a topology is cancelled during its plan, the plan is repeated, and all nodes are created and cancelled."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.before_call = refuse_node_tasks
        graphs.submit(DIAMOND)
        graphs.run(30 * SECOND)
        if breaks:
            assert break_executions(graphs) == 1
        graphs.ask("POST", f"/v1/tasks/{graphs.topology}/cancel", {"force": True})
        graphs.before_call = None
        assert graphs.run_until_ended(2 * SHORTEST_CHECK_INTERVAL).state == "cancelled"
        assert graphs.ran == []
        assert set(stands(graphs).values()) == {"stopped"}


def test_a_topology_that_failed_before_its_nodes_can_be_retried() -> None:
    """If a topology's task fails before its nodes end, a retry keeps successful nodes and runs the others."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.target = lambda _phase, context: graphs.take(
            0 if graphs.key_of(context.task_id) == "top" else 5 * MINUTE
        )
        graphs.submit(LONG)
        graphs.run(5 * SECOND)
        for _ in range(100):
            event = {
                "state": "break_off",
                "task_id": graphs.topology,
                "fence": graphs.whole().fence,
                "reason": "no more",
            }
            graphs.invoke("topology", event)
            break_executions(graphs)
            graphs.run(SECOND)
        assert graphs.whole().state == "failed"
        assert stands(graphs)["bottom"] == "stopped"
        failing(graphs)
        graphs.run(10 * MINUTE)
        assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/retry").status == 200
        assert graphs.run_until_ended().state == "succeeded", stands(graphs)
        assert sorted(graphs.ran) == sorted(DIAMOND), "what ran to its end before the retry began is kept"


def test_nodes_have_the_trace_of_their_topologys_creation() -> None:
    """Each node has the trace of the request that created its topology."""
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    with Graphs() as graphs:
        made = graphs.ask("POST", PATH, {"nodes": DIAMOND}, headers={"traceparent": trace})
        graphs.topology = str(made.body["id"])
        assert graphs.run_until(lambda: graphs.whole().is_terminal)
        assert {graphs.node(key).traceparent for key in DIAMOND} == {trace}
