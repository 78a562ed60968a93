"""The deployed state machine runs with the unmodified functions in virtual time.

The module `testing/duetime_testing/simulation/state_machine.py` interprets the definition. The definition's quotas are
asserted elsewhere (`tests/infra/test_topologies.py`), and the deployed tests run the definition with another
interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import SHORTEST_CHECK_INTERVAL, WAITS_AT_ONCE
from duetime.handlers import Unretriable
from duetime_testing.fakes.stepfunctions import Status
from tests.scenarios.graphs import DIAMOND, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

FRAME = 6
"""The states of an execution besides its waits: plan, size, map, finish, the choice after finish, and the end."""


def test_a_diamond_has_one_execution_that_waits_for_the_last_node() -> None:
    """A diamond-shaped graph has one execution, which waits only for the last node and ends with the topology."""
    with Graphs() as graphs:
        topology = graphs.submit(DIAMOND)
        assert graphs.run_until_ended().state == "succeeded"
        graphs.run(MINUTE)
        assert sorted(graphs.ran) == sorted(DIAMOND)
        assert [(each.name, each.status) for each in graphs.states.executions.values()] == [
            (f"{topology}-1", "SUCCEEDED")
        ]
        entered = graphs.state_machine.entered
        assert (entered["Plan"], entered["Node"], entered["Finish"]) == (1, 1, 1)
        assert entered.total() == FRAME + 1


def test_an_execution_waits_for_parents_that_may_end_after_children() -> None:
    """If a rule lets a child end before its parents, the execution also waits for these parents."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, context: graphs.take(
            30 * SECOND if graphs.key_of(context.task_id) == "slow" else SECOND
        )
        first = {"type": PLAIN, "depends_on": ["slow", "quick"], "trigger_rule": "one_success"}
        graphs.submit({"slow": {"type": PLAIN}, "quick": {"type": PLAIN}, "first": first})
        ended = graphs.run_until_ended()
        assert graphs.state_machine.entered["Node"] == 3
        assert ended.finished_at is not None
        slow_ended_at = graphs.node("slow").finished_at
        assert slow_ended_at is not None
        assert ended.finished_at - slow_ended_at < SECOND


@pytest.mark.parametrize(("lasts", "finishes"), [(1, 0), (3, 0), (20, 1)])
def test_the_last_node_ends_a_run_with_few_last_nodes(lasts: int, finishes: int) -> None:
    """With few last nodes, the last node to end ends the run; with many last nodes, the execution ends the run."""
    with Graphs() as graphs:
        nodes = {f"n{number}": {"type": PLAIN, "depends_on": ["first"]} for number in range(lasts)}
        graphs.submit({"first": {"type": PLAIN}, **nodes})
        assert graphs.run_until(lambda: graphs.whole().is_terminal, MINUTE, 1)
        assert graphs.state_machine.entered["Finish"] == finishes
        assert graphs.run_until_ended().state == "succeeded"
        graphs.run(MINUTE)
        assert [each.status for each in graphs.states.executions.values()] == ["SUCCEEDED"]
        assert graphs.state_machine.entered["Finish"] == 1
        assert all(graphs.node(key).expires_at for key in ("first", *nodes))


def test_a_topology_that_failed_ends_with_its_last_node() -> None:
    """After a failure, the topology ends as soon as its longest running node ends, without a check."""
    with Graphs() as graphs:

        def behave(_phase: str, context: Context) -> str:
            if graphs.key_of(context.task_id) == "bad":
                graphs.take(SECOND)
                raise Unretriable
            graphs.take(90 * SECOND)
            return "done"

        graphs.target = behave
        last = {"type": PLAIN, "depends_on": ["bad", "slow"]}
        graphs.submit({"bad": {"type": PLAIN}, "slow": {"type": PLAIN, "timeout_seconds": 200}, "last": last})
        ended = graphs.run_until_ended()
        assert ended.state == "failed"
        slow_ended_at = graphs.node("slow").finished_at
        assert ended.finished_at is not None
        assert slow_ended_at is not None
        assert ended.finished_at - slow_ended_at < SECOND


@pytest.mark.slow
def test_a_distributed_map_waits_for_many_last_nodes() -> None:
    """If a graph has many last nodes, a distributed map waits for them, with forty nodes per child execution."""
    with Graphs() as graphs:
        nodes = {f"n{i}": {"type": PLAIN, "depends_on": ["n0"] if i else []} for i in range(2 * WAITS_AT_ONCE + 5)}
        graphs.submit(nodes)
        assert graphs.run_until_ended().state == "succeeded"
        graphs.run(MINUTE)
        assert sorted(graphs.ran) == sorted(nodes)
        assert graphs.executions() == {"1": "SUCCEEDED"}
        entered = graphs.state_machine.entered
        assert (entered["Chunk"], entered["ChunkNode"]) == (3, len(nodes) - 1)


@pytest.mark.parametrize("state", ["plan", "wait", "finish"])
def test_each_error_of_the_function_retries_the_state_once(state: str) -> None:
    """Each error of the function costs one retry of the state, and has no other effect."""
    with Graphs() as graphs:
        failures = 2

        def refuse(call: Call) -> None:
            nonlocal failures
            if call.machine.function != "topology" or not failures:
                return
            entered = graphs.state_machine.entered
            reached = {"plan": entered["Plan"], "wait": entered["Node"], "finish": entered["Finish"]}
            if reached[state]:
                failures -= 1
                call.refuse()

        graphs.before_call = refuse
        graphs.submit(DIAMOND)
        assert graphs.run_until_ended().state == "succeeded"
        graphs.run(2 * MINUTE)
        assert failures == 0
        assert sorted(graphs.ran) == sorted(DIAMOND)
        assert graphs.executions() == {"1": "SUCCEEDED"}
        assert graphs.state_machine.entered.total() == FRAME + 1 + 2


def test_an_unavailable_state_machine_uses_up_no_attempt() -> None:
    """A topology with a single attempt waits until its execution can start, and then succeeds."""
    with Graphs() as graphs:
        graphs.faulty = True
        back_at = graphs.now + HOUR

        def refuse(call: Call) -> None:
            if call.operation == "start_execution" and graphs.now < back_at:
                call.refuse()

        graphs.before_call = refuse
        graphs.submit(DIAMOND)
        assert graphs.run_until_ended(3 * HOUR).state == "succeeded"
        assert (graphs.whole().attempt, sorted(graphs.ran)) == (1, sorted(DIAMOND))


@pytest.mark.slow
def test_a_topology_and_its_execution_end_despite_a_lost_token() -> None:
    """If a token is lost, a check ends the topology, and the execution repeats its wait and ends."""
    with Graphs() as graphs:
        lost: list[int] = []

        def forget() -> bool:
            lost.append(graphs.now)
            return len(lost) == 1

        graphs.states.forgets = forget
        # The node ends long after the wait has begun, so only the node's worker answers the token.
        graphs.target = lambda _phase, _context: graphs.take(20 * SECOND)
        graphs.submit({"only": {"type": PLAIN}})
        assert graphs.run_until_ended(within=SHORTEST_CHECK_INTERVAL + MINUTE).state == "succeeded"
        assert graphs.executions() == {"1": "RUNNING"}
        graphs.run(13 * HOUR)
        assert graphs.ran == ["only"]
        assert graphs.state_machine.entered["Node"] == 2
        assert graphs.executions() == {"1": "SUCCEEDED"}


@pytest.mark.parametrize("running", list(DIAMOND))
def test_a_broken_execution_is_replaced_by_another(running: str) -> None:
    """If an execution breaks, a check notices this, another execution continues, and no node runs again."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, context: graphs.take(
            8 * MINUTE if graphs.key_of(context.task_id) == running else SECOND
        )
        topology = graphs.submit({key: {**node, "timeout_seconds": 600} for key, node in DIAMOND.items()})
        assert graphs.run_until(lambda: running in graphs.ran)
        (execution,) = graphs.states.executions
        graphs.states.break_execution(execution, Status.TIMED_OUT)
        ended = graphs.run_until_ended()
        graphs.run(MINUTE)
        assert (ended.state, ended.attempt) == ("succeeded", 1)
        assert [(each.name, each.status) for each in graphs.states.executions.values()] == [
            (f"{topology}-1", "TIMED_OUT"),
            (f"{topology}-2", "SUCCEEDED"),
        ]
        assert sorted(graphs.ran) == sorted(DIAMOND)
        assert sum(machine.facts.counts["topology_executions_lost"] for machine in graphs.machines) == 1


@pytest.mark.parametrize("resumed_after", [0, 30 * SECOND, 20 * MINUTE])
def test_a_paused_topology_with_a_broken_execution_continues_after_a_resume(resumed_after: int) -> None:
    """If a paused topology's execution breaks, all nodes run after a resume, whenever the resume comes."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, _context: graphs.take(30 * SECOND)
        graphs.submit({"running": {"type": PLAIN}, "held": {"type": PLAIN, "delay_seconds": 120}})
        assert graphs.run_until(lambda: graphs.ran)
        graphs.until_answered("pause")
        graphs.topologies.controlled.add(graphs.topology)
        graphs.faulty = True
        (execution,) = graphs.states.executions
        graphs.states.break_execution(execution, Status.TIMED_OUT)
        graphs.run(resumed_after)
        graphs.until_answered("resume")
        assert graphs.run_until_ended(2 * HOUR).state == "succeeded"
        assert sorted(graphs.ran) == ["held", "running"]


def test_a_broken_execution_without_open_nodes_is_not_replaced() -> None:
    """If all nodes of a broken execution have ended, the check that finds this ends the topology."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, _context: graphs.take(SECOND)
        graphs.submit(DIAMOND)
        assert graphs.run_until(lambda: graphs.ran)
        (execution,) = graphs.states.executions
        graphs.states.break_execution(execution, Status.TIMED_OUT)
        assert graphs.run_until_ended().state == "succeeded"
        assert sorted(graphs.ran) == sorted(DIAMOND)
        assert graphs.executions() == {"1": "TIMED_OUT"}


def test_an_aborted_execution_cancels_its_topology() -> None:
    """Aborting an execution cancels waiting nodes and asks running nodes to stop."""
    with Graphs() as graphs:
        nodes: dict[str, dict[str, Any]] = {
            "runs": {"type": PLAIN, "timeout_seconds": 600},
            "waits": {"type": PLAIN, "delay_seconds": 7200},
            "follows": {"type": PLAIN, "depends_on": ["runs"]},
        }
        graphs.target = lambda _phase, _context: graphs.take(8 * MINUTE)
        graphs.submit(nodes)
        assert graphs.run_until(lambda: graphs.ran)
        (execution,) = graphs.states.executions
        graphs.states.stop_execution(executionArn=execution)
        assert graphs.run_until(lambda: graphs.node("runs").requested_action == "cancel", 7 * MINUTE, SECOND)
        ended = graphs.run_until_ended()
        assert ended.state == "cancelled"
        assert graphs.ran == ["runs"]
        assert {graphs.node(key).state for key in ("waits", "follows")} == {"cancelled"}
        assert graphs.executions() == {"1": "ABORTED"}


def test_an_execution_that_is_aborted_before_its_plan_cancels_its_topology() -> None:
    """If an execution is aborted before its plan, no node is created, and no other execution starts."""
    with Graphs() as graphs:

        def refuse(call: Call) -> None:
            if call.machine.function == "topology":
                call.refuse()

        graphs.before_call = refuse
        graphs.submit(DIAMOND)
        assert graphs.run_until(lambda: graphs.states.executions)
        (execution,) = graphs.states.executions
        graphs.states.stop_execution(executionArn=execution)
        graphs.before_call = None
        assert graphs.run_until_ended().state == "cancelled"
        assert not graphs.ran
        assert graphs.executions() == {"1": "ABORTED"}


def test_the_state_machine_checks_until_the_last_rollback_has_ended() -> None:
    """During a rollback, the state machine checks repeatedly until the last rollback has ended."""
    with Graphs() as graphs:

        def fail(phase: str, context: Context) -> str:
            if phase == "run" and graphs.key_of(context.task_id) == "bad":
                raise ValueError
            return "done"

        graphs.target = fail
        bad = {"depends_on": ["bottom"], "retry": {"max_attempts": 1}}
        nodes = {key: {**node, "type": UNDONE} for key, node in {**DIAMOND, "bad": bad}.items()}
        graphs.submit(nodes, on_failure="rollback")
        ended = graphs.run_until_ended()
        graphs.run(2 * MINUTE)
        assert ended.error is not None
        assert ended.error.type == "RolledBack", ended.error
        assert {graphs.node(key).state for key in nodes} == {"rolled_back"}
        assert (graphs.undone[:2], graphs.undone[-1]) == (["bad", "bottom"], "top")
        assert sorted(graphs.undone) == sorted(nodes)
        assert graphs.state_machine.entered["Finish"] > 1
        assert graphs.executions() == {"1": "SUCCEEDED"}
