"""An accepted retry of a topology runs, whatever happens between the request and the plan."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition.tasks import TopologyServices
from duetime.domain.operating_parameters import EDGES_PER_GROUP
from duetime.handlers import Accepted, Unretriable
from duetime_testing.simulation.machines import Machine
from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.virtual_time import Strand

NODES: dict[str, dict[str, Any]] = {
    "a": {"type": PLAIN, "retry": {"max_attempts": 1}},
    "b": {"type": PLAIN, "depends_on": ["a"], "retry": {"max_attempts": 1}},
}


def failing(graphs: Graphs, *keys: str) -> None:
    """Have these nodes' targets fail, and the other nodes succeed."""

    def target(_phase: str, context: Context) -> str:
        if graphs.key_of(context.task_id) in keys:
            raise ValueError
        return "done"

    graphs.target = target


def failed(graphs: Graphs, nodes: dict[str, dict[str, Any]] = NODES) -> None:
    """Run a topology to its end with a failure in `a`; afterwards, no node fails."""
    failing(graphs, "a")
    graphs.submit(nodes)
    assert graphs.run_until_ended().state == "failed"
    graphs.run(MINUTE)
    failing(graphs)
    graphs.ran.clear()


def retry(graphs: Graphs) -> None:
    """Request a retry, and check that it is accepted."""
    assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 200


def starts(call: Call) -> bool:
    """Whether a worker starts an execution."""
    return call.machine.function == "worker" and call.operation == "start_execution"


def died_before(graphs: Graphs) -> list[Call]:
    """The worker dies between its claim and `StartExecution`."""
    return graphs.once(starts, lambda call: call.machine.die())


def refused(times: int) -> Callable[[Graphs], list[Call]]:
    """The table refuses the first calls of the plan."""

    def refuse(graphs: Graphs) -> list[Call]:
        met: list[Call] = []

        def before(call: Call) -> None:
            if call.machine.function == "topology" and len(met) < times:
                met.append(call)
                call.refuse()

        graphs.before_call = before
        return met

    return refuse


def slowed(graphs: Graphs) -> list[Call]:
    """The plan stalls until its function times out."""
    return graphs.slow(lambda call: call.machine.function == "topology", 10 * MINUTE)


def not_started(graphs: Graphs) -> list[Call]:
    """Step Functions refuses to start the execution."""
    return graphs.once(starts, lambda call: call.refuse())


@pytest.mark.parametrize(
    "fault",
    [died_before, not_started, slowed, *(refused(times) for times in (1, 9, 12, 13, 40))],
    ids=["died", "not_started", "slowed", *(f"refused_{times}" for times in (1, 9, 12, 13, 40))],
)
def test_an_accepted_retry_runs_whatever_happens_before_its_plan(fault: Callable[[Graphs], list[Call]]) -> None:
    """If a retry's plan is disturbed, the previous run's end is not mistaken for the new end, and the run succeeds."""
    with Graphs() as graphs:
        failed(graphs)
        met = fault(graphs)
        retry(graphs)
        ended = graphs.run_until_ended(6 * HOUR)
        graphs.run(10 * MINUTE)
        assert met
        assert (ended.state, graphs.ran) == ("succeeded", ["a", "b"])


def test_a_repeated_retry_request_starts_no_other_run() -> None:
    """A repeated retry request before the start, during the run or after its success starts no other run."""
    with Graphs() as graphs:
        failed(graphs)
        retry(graphs)
        retry(graphs)
        graphs.run(SECOND)
        retry(graphs)
        assert graphs.run_until_ended().state == "succeeded"
        graphs.run(MINUTE)
        retry(graphs)
        graphs.run(MINUTE)
        assert (graphs.whole().state, graphs.ran) == ("succeeded", ["a", "b"])
        assert graphs.ask("GET", f"{PATH}/{graphs.topology}").body["run"] == 2


def test_a_node_of_a_retry_counts_the_parents_that_were_kept() -> None:
    """In a retry, a node starts as soon as its other parent succeeds, without waiting for a check."""
    # These parents are a separate group of edges, in which no node ends during the retry.
    kept = [f"kept-{number}" for number in range(EDGES_PER_GROUP)]
    nodes = {**{key: {"type": PLAIN} for key in kept}, **NODES, "b": {"type": PLAIN, "depends_on": [*kept, "a"]}}
    with Graphs() as graphs:
        failed(graphs, nodes)
        retry(graphs)
        graphs.run_until_ended()
        started_at, parent_ended_at = graphs.node("b").started_at, graphs.node("a").finished_at
        assert graphs.ran == ["a", "b"]
        assert started_at is not None
        assert parent_ended_at is not None
        assert started_at < parent_ended_at + SECOND


def test_a_topology_that_never_failed_is_not_retried() -> None:
    """A retry before the first run ends or after a success is a conflict."""
    with Graphs() as graphs:
        graphs.submit(NODES)
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 409
        assert graphs.run_until_ended().state == "succeeded"
        graphs.run(MINUTE)
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 409


@pytest.mark.parametrize("minutes", [3, 10, pytest.param(240, marks=pytest.mark.slow)])
def test_a_topologys_retry_waits_for_a_node_that_a_user_retried(minutes: int) -> None:
    """If a user has retried a node, the topology's retry waits for the node, keeps it, and uses up no attempt."""
    with Graphs() as graphs:
        failed(graphs, {**NODES, "a": {**NODES["a"], "notify_within_seconds": 5 * 3600}})
        graphs.target = lambda _phase, _context: Accepted()
        assert graphs.ask("POST", f"/v1/tasks/{graphs.node('a').id}/retry").status == 200
        assert graphs.run_until(lambda: graphs.node("a").awaiting_notification)
        retry(graphs)
        failing(graphs)
        graphs.run(minutes * MINUTE)
        assert (graphs.whole().finished_at, graphs.ran) == (None, ["a"])
        node = graphs.node("a")
        told = {"fence": node.fence, "outcome": "succeeded", "result": 1}
        assert graphs.ask("POST", f"/v1/tasks/{node.id}/notify", told).status == 200
        ended = graphs.run_until_ended(10 * MINUTE)
        assert (ended.state, ended.attempt, graphs.ran) == ("succeeded", 1, ["a", "b"])


def end_by_hand(graphs: Graphs) -> None:
    """Report a failed attempt in the name of the state machine while nodes still have to run."""
    error = {"type": "X", "message": "by hand"}
    told = {"fence": graphs.whole().fence, "outcome": "failed", "error": error, "retriable": False}
    answer = graphs.ask("POST", f"/v1/tasks/{graphs.topology}/notify", told)
    assert answer.status == 200, answer.body


def retry_when_it_may(graphs: Graphs) -> None:
    """Request a retry until it is accepted."""
    for _ in range(100):
        if graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 200:
            return
        graphs.run(10 * SECOND)
    pytest.fail("no retry was accepted")


def check_all_ran(graphs: Graphs) -> None:
    """Check that the retry has ended with every node, and that nothing from the first run is left."""
    ended = graphs.run_until_ended(6 * HOUR)
    graphs.run(10 * MINUTE)
    assert ended.state == "succeeded", ended.error
    assert [task.id for task in graphs.watching.unfinished()] == []
    assert {key: graphs.node(key).state for key in NODES} == dict.fromkeys(NODES, "succeeded")


def stalled(graphs: Graphs, number: int, duration: int, is_meant: Callable[[Call], bool]) -> list[str]:
    """Delay the nth matching call, and add the operations of all matching calls to the returned list."""
    calls: list[str] = []

    def before(call: Call) -> None:
        if is_meant(call):
            calls.append(call.operation)
            if len(calls) == number:
                graphs.take(duration)

    graphs.before_call = before
    # Work delayed by a stalled call is late.
    graphs.faulty = True
    return calls


def follow_up(graphs: Graphs, ended: Task) -> Strand:
    """As a worker that had stalled, repeat the follow-up for a task's end."""
    # The worker has its own machine, so that no other process ends it.
    worker = Machine(graphs, "worker", 0, 0, graphs.generation, dict(graphs.environ))

    def follow() -> None:
        worker.composition.part(TopologyServices).node_finished.follow(ended)

    return graphs.time.start_process(follow)


@pytest.mark.slow
def test_a_stalled_plan_does_not_affect_the_next_run() -> None:
    """A plan that stalls at any call and continues during the next run does not affect that run."""
    for number in count(1):
        with Graphs() as graphs:
            calls = stalled(graphs, number, 4 * MINUTE, lambda call: call.machine.function == "topology")
            graphs.target = lambda _phase, _context: graphs.take(30 * SECOND)
            graphs.submit(NODES)
            if not graphs.run_until(lambda: len(calls) >= number, 20 * SECOND):  # noqa: B023 - called at once
                assert number > 2
                return
            graphs.run(SECOND)
            end_by_hand(graphs)
            retry_when_it_may(graphs)
            check_all_ran(graphs)


@pytest.mark.slow
def test_a_stalled_follow_up_does_not_affect_the_next_run() -> None:
    """A follow-up that stalls at any call and continues during the next run does not affect that run."""
    for number in count(1):
        with Graphs() as graphs:
            graphs.target = lambda _phase, _context: graphs.take(30 * SECOND)
            graphs.submit({key: {**node, "timeout_seconds": 840} for key, node in NODES.items()})
            assert graphs.run_until(lambda: "a" in graphs.ran)
            end_by_hand(graphs)
            ended = graphs.whole()
            calls = stalled(graphs, number, 15 * MINUTE, lambda _call: graphs.time.process() is slow)  # noqa: B023 - as above
            slow = follow_up(graphs, ended)
            graphs.run(30 * SECOND)
            assert graphs.run_until(lambda: graphs.whole().finished_at is not None)
            graphs.target = lambda _phase, _context: graphs.take(10 * MINUTE)
            retry_when_it_may(graphs)
            check_all_ran(graphs)
            if len(calls) < number:
                assert number > 2
                return


@pytest.mark.slow
@pytest.mark.parametrize("is_over", [True, False], ids=["after_its_run", "while_it_runs"])
def test_a_repeated_follow_up_starts_no_node_early(*, is_over: bool) -> None:
    """If a stalled worker repeats the follow-up, in the same or the next run, no node starts early."""
    for number in count(1):
        with Graphs() as graphs:
            failing(graphs, "a")
            nodes = {
                **NODES,
                "after": {"type": PLAIN, "depends_on": ["a"], "trigger_rule": "one_failed", "timeout_seconds": 840},
            }
            graphs.submit(nodes, on_failure="continue")
            assert graphs.run_until(lambda: "after" in graphs.ran or graphs.whole().finished_at is not None)
            ended = graphs.node("a")
            failing(graphs)
            if is_over:
                graphs.run_until_ended()
            calls = stalled(graphs, number, 5 * MINUTE, lambda _call: graphs.time.process() is slow)  # noqa: B023 - as above
            slow = follow_up(graphs, ended)
            graphs.run(SECOND)
            graphs.target = lambda _phase, _context: graphs.take(14 * MINUTE)
            retry_when_it_may(graphs)
            # The order is checked at each call to a target.
            graphs.run_until_ended(6 * HOUR)
            graphs.run(10 * MINUTE)
            assert [task.id for task in graphs.watching.unfinished()] == []
            if len(calls) < number:
                assert number > 2
                return


@pytest.mark.parametrize("by", ["hand", "filter"])
def test_children_keep_their_decision_when_a_failed_parent_is_retried(by: str) -> None:
    """Children keep the decision from their parent's first end; a topology's retry runs the skipped children."""
    once = {"max_attempts": 1}
    nodes: dict[str, dict[str, Any]] = {
        "a": {"type": PLAIN, "retry": once},
        "beside": {"type": PLAIN, "timeout_seconds": 600},
        "handler": {"type": PLAIN, "depends_on": ["a"], "trigger_rule": "one_failed", "timeout_seconds": 600},
        "next": {"type": PLAIN, "depends_on": ["a"]},
        "last": {"type": PLAIN, "depends_on": ["a", "beside"], "trigger_rule": "all_done"},
        "unless": {"type": PLAIN, "depends_on": ["a", "beside"], "trigger_rule": "none_failed"},
    }
    with Graphs() as graphs:

        def act(_phase: str, context: Context) -> None:
            key = graphs.key_of(context.task_id)
            if key in {"beside", "handler"}:
                graphs.take(4 * MINUTE)
            if key == "a" and graphs.ran.count("a") == 1:
                raise ValueError

        graphs.target = act
        graphs.submit(nodes, on_failure="continue")
        assert graphs.run_until(lambda: "handler" in graphs.ran)
        assert graphs.node("next").state == "cancelled"
        if by == "hand":
            assert graphs.ask("POST", f"/v1/tasks/{graphs.node('a').id}/retry").status == 200
        else:
            redriven = graphs.ask("POST", "/v1/tasks/retry", {"filter": {"type": PLAIN}})
            assert redriven.body["affected"] == 1
        assert graphs.run_until(lambda: graphs.node("a").state == "succeeded", within=MINUTE)
        assert graphs.node("handler").state == "running"
        whole = graphs.run_until_ended()
        states = {key: str(graphs.node(key).state) for key in nodes}
        assert states == dict.fromkeys(nodes, "succeeded") | dict.fromkeys(["next", "unless"], "cancelled")
        assert (whole.state, sorted(graphs.ran)) == ("failed", ["a", "a", "beside", "handler", "last"])
        graphs.run(MINUTE)
        graphs.ran.clear()
        # These nodes begin long after their parents have ended.
        graphs.topologies.controlled.add(graphs.topology)
        retry(graphs)
        assert graphs.run_until_ended().state == "succeeded"
        assert sorted(graphs.ran) == ["next", "unless"]


@pytest.mark.parametrize("parents", [2, 6])
def test_a_child_that_still_waits_counts_a_retried_node_as_failed(parents: int) -> None:
    """A child follows its parent's first end, even if a user's retry of that parent succeeds."""
    keys = ["a", *(f"b{number}" for number in range(parents - 1))]
    nodes: dict[str, dict[str, Any]] = {key: {"type": PLAIN, "timeout_seconds": 600} for key in keys}
    nodes["child"] = {"type": PLAIN, "depends_on": keys, "trigger_rule": "one_success"}
    with Graphs() as graphs:

        def act(_phase: str, context: Context) -> None:
            key = graphs.key_of(context.task_id)
            if key != "a":
                graphs.take(4 * MINUTE)
            if key != "a" or graphs.ran.count("a") == 1:
                raise Unretriable

        graphs.target = act
        graphs.submit(nodes, on_failure="continue")
        assert graphs.run_until(lambda: "a" in graphs.ran and graphs.node("a").finished_at is not None)
        assert graphs.ask("POST", f"/v1/tasks/{graphs.node('a').id}/retry").status == 200
        graphs.topologies.controlled.add(graphs.topology)
        graphs.run_until_ended()
        assert (graphs.node("a").state, graphs.node("child").state) == ("succeeded", "cancelled")


def test_a_retry_counts_the_parents_that_it_keeps() -> None:
    """In a retry, kept parents count at once, even if the parent that runs again is in another group."""
    with Graphs() as graphs:
        failing(graphs, "b")
        parents = [*(f"a{number}" for number in range(4)), "b"]
        graphs.submit(
            {
                **{key: {"type": PLAIN, "retry": {"max_attempts": 1}} for key in parents},
                "last": {"type": PLAIN, "depends_on": parents},
            }
        )
        assert graphs.run_until_ended().state == "failed"
        graphs.topologies.controlled.add(graphs.topology)
        failing(graphs)
        retry(graphs)
        assert graphs.run_until_ended(within=MINUTE).state == "succeeded"
        assert graphs.ran[-2:] == ["b", "last"]
