"""A node is kept as long as its topology, and expires only after the topology."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.task_items import ATTRIBUTES
from duetime.domain.times import DAY
from duetime.environment_variables import Variable
from duetime.handlers import Accepted
from tests.parts import others_slow
from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

LARGE = "x".join(str(number * 2654435761 % 2**32) for number in range(5_000))
"""A result that is stored outside the record."""
NODES: dict[str, dict[str, Any]] = {
    "first": {"type": PLAIN, "payload": LARGE},
    "long": {"type": PLAIN, "depends_on": ["first"], "inputs": ["first"], "notify_within_seconds": 20 * 86_400},
}


@pytest.fixture
def graphs() -> Iterator[Graphs]:
    """Ended tasks are kept for a day; the node `long` is deferred, and the node `first` has a large result."""
    with Graphs() as made:
        made.environ[Variable.RETENTION_DAYS] = "1"
        # A retry makes nodes late by the time since the first run.
        made.faulty = True
        made.target = lambda _phase, context: Accepted() if made.key_of(context.task_id) == "long" else LARGE
        yield made


def notify(graphs: Graphs, key: str, **told: Any) -> None:  # noqa: ANN401 - JSON
    """Report the end of a deferred node."""
    node = graphs.node(key)
    answer = graphs.ask("POST", f"/v1/tasks/{node.id}/notify", {"fence": node.fence, **told})
    assert answer.status == 200, answer.body


def expire_for(graphs: Graphs, days: int) -> None:
    """Let days pass, removing expired items every few hours."""
    for _ in range(days * 3):
        graphs.run(8 * HOUR)
        graphs.expire()


def check_all_expire(graphs: Graphs) -> None:
    """Check that, some time after the topology's end, none of its tasks and contents are left."""
    graphs.ticking = False
    graphs.time.run_until(graphs.now + 10 * DAY)
    graphs.expire()
    assert list(graphs.watching.tasks()) == []
    assert graphs.items("x#") == []


@pytest.mark.slow
def test_a_topology_that_outlasts_the_retention_succeeds(graphs: Graphs) -> None:
    """A node that ended days before the topology's last node is kept until the topology has ended."""
    graphs.submit(NODES, timeout_seconds=15 * 86_400)
    assert graphs.run_until(lambda: graphs.has_node("long") and graphs.node("long").awaiting_notification, MINUTE)
    assert graphs.node("first").expires_at is None
    expire_for(graphs, 2)
    notify(graphs, "long", outcome="succeeded", result=1)
    ended = graphs.run_until_ended()
    assert ended.state == "succeeded", ended.error
    graphs.run(MINUTE)
    assert ended.expires_at is not None
    for key in NODES:
        assert (graphs.node(key).expires_at or 0) >= ended.expires_at, key
    check_all_expire(graphs)


@pytest.mark.slow
def test_a_retry_keeps_the_successful_nodes_for_the_new_run(graphs: Graphs) -> None:
    """A retry at the end of the retention keeps the successful nodes for the new run."""
    graphs.submit(NODES)
    assert graphs.run_until(lambda: graphs.has_node("long") and graphs.node("long").awaiting_notification, MINUTE)
    notify(graphs, "long", outcome="failed", error={"type": "X", "message": "no"}, retriable=False)
    assert graphs.run_until_ended().state == "failed"
    graphs.time.run_until((graphs.whole().expires_at or 0) - MINUTE)
    graphs.expire()
    given: list[int] = []

    def target(_phase: str, context: Context) -> Accepted:
        given.append(len(str(context.inputs["first"])))
        return Accepted()

    graphs.target = target
    assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 200
    assert graphs.run_until(lambda: graphs.node("long").awaiting_notification)
    assert given == [len(LARGE)]
    expire_for(graphs, 2)
    assert (graphs.node("first").state, graphs.node("first").expires_at) == ("succeeded", None)
    notify(graphs, "long", outcome="succeeded", result=1)
    assert graphs.run_until_ended().state == "succeeded"
    assert sorted(graphs.ran) == ["first", "long", "long"]
    check_all_expire(graphs)


def test_a_retry_runs_expired_nodes_again(graphs: Graphs) -> None:
    """If successful nodes expire before the retry is planned, they run again."""
    graphs.submit(NODES)
    assert graphs.run_until(lambda: graphs.has_node("long") and graphs.node("long").awaiting_notification, MINUTE)
    notify(graphs, "long", outcome="failed", error={"type": "X", "message": "no"}, retriable=False)
    graphs.run_until_ended()
    graphs.receiving = graphs.ticking = False
    assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 200
    graphs.time.run_until(graphs.now + 30 * DAY)
    graphs.expire()
    graphs.receiving = graphs.ticking = graphs.faulty = True
    graphs.target = lambda _phase, _context: "done"
    ended = graphs.run_until_ended(3 * HOUR)
    assert (ended.state, sorted(graphs.ran)) == ("succeeded", ["first", "first", "long", "long"])


def test_a_node_that_ends_after_its_topology_expires(graphs: Graphs) -> None:
    """Nodes that end after their topology was ended by a user still expire, later than the topology."""
    graphs.target = lambda _phase, _context: graphs.take(5 * MINUTE)
    graphs.submit({"slow": {"type": PLAIN, "timeout_seconds": 600}, "next": {"type": PLAIN, "depends_on": ["slow"]}})
    assert graphs.run_until(lambda: graphs.ran)
    told = {"fence": graphs.whole().fence, "outcome": "failed", "error": {"type": "X", "message": "by hand"}}
    assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/notify", told | {"retriable": False}).status == 200
    graphs.run(HOUR)
    nodes = [graphs.node("slow"), graphs.node("next")]
    assert all(node.is_terminal for node in nodes)
    # If a clock is ahead, the nodes are kept longer by more than the difference between the clocks.
    whole = graphs.whole().expires_at or 0
    assert all((node.expires_at or 0) > whole + DAY for node in nodes)
    check_all_expire(graphs)


def test_a_node_expires_after_its_topology_despite_a_slow_clock(graphs: Graphs) -> None:
    """A node expires after its topology even if the clock of the node's worker is behind."""
    is_over: list[bool] = []

    def target(_phase: str, _context: Context) -> str:
        while not is_over:
            graphs.take(100)
        return "done"

    graphs.target = target
    graphs.submit({"slow": {"type": PLAIN, "timeout_seconds": 600}})
    assert graphs.run_until(lambda: graphs.ran)
    (worker,) = (each for each in graphs.machines if each.function == "worker" and each.strand)
    worker.step_clock(-2_500)
    told = {"fence": graphs.whole().fence, "outcome": "failed", "error": {"type": "X", "message": "by hand"}}
    assert graphs.ask("POST", f"/v1/tasks/{graphs.topology}/notify", told | {"retriable": False}).status == 200
    is_over.append(True)
    assert graphs.run_until(lambda: graphs.node("slow").finished_at)
    assert (graphs.node("slow").expires_at or 0) >= (graphs.whole().expires_at or 0)


@pytest.mark.slow
def test_a_node_expires_even_if_its_worker_stalls() -> None:
    """A node expires even if its worker stalls at any call while its topology ends."""
    for number in count(1):
        with Graphs() as graphs:
            graphs.environ[Variable.RETENTION_DAYS] = "1"
            graphs.faulty = True
            calls: list[str] = []

            def before(call: Call, calls: list[str] = calls, graphs: Graphs = graphs, number: int = number) -> None:
                if call.machine.function == "worker" and graphs.ran:
                    calls.append(call.operation)
                    if len(calls) == number:
                        graphs.take(20 * SECOND)

            graphs.before_call = before
            graphs.submit({"only": {"type": PLAIN}})
            assert graphs.run_until_ended().state == "succeeded"
            graphs.run(10 * MINUTE)
            check_all_expire(graphs)
            if len(calls) < number:
                assert number > 5
                return


INNER = {"nodes": {"x": {"type": PLAIN}, "y": {"type": PLAIN, "depends_on": ["x"]}}}


@pytest.mark.parametrize("days", [0, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dies", others_slow(["before its nodes expire", "just before it is finished"]))
@pytest.mark.parametrize("which", others_slow(["outer", "inner"]))
def test_a_topology_that_is_finished_days_late_expires_before_its_nodes(which: str, dies: str, days: int) -> None:
    """If the follow-up's worker dies and no process runs for days, nodes still outlive their topology."""
    with Graphs() as graphs:
        graphs.submit(
            {
                "a": {"type": PLAIN},
                "sub": {"type": "part", "target": {"kind": "topology"}, "payload": INNER, "depends_on": ["a"]},
            }
        )

        def task() -> Task | None:
            return graphs.whole() if which == "outer" else graphs.node("sub") if graphs.has_node("sub") else None

        def follows_up(call: Call) -> bool:
            ended = task()
            if call.machine.function != "worker" or ended is None or not ended.is_terminal or ended.finished_at:
                return False
            is_write = call.operation == "update_item"
            return is_write and (dies.startswith("before") or sets_finished_at(call, ended.id.text))

        def kill(call: Call) -> None:
            graphs.faulty, graphs.receiving, graphs.ticking = True, False, False
            call.machine.die()

        met = graphs.once(follows_up, kill)
        graphs.run_until(lambda: met, HOUR)
        graphs.run(days * DAY)
        graphs.ticking = True
        graphs.receive_again()
        assert met
        graphs.run_until_ended(6 * HOUR)
        graphs.run_until(lambda: graphs.node("sub").finished_at, 6 * HOUR, SECOND)
        graphs.run(HOUR)
        sub = graphs.node("sub")
        inner = [each for each in graphs.watching.tasks() if each.node_ref and each.node_ref.topology == sub.id]
        assert [each.expires_at and sub.expires_at and each.expires_at >= sub.expires_at for each in inner] == [
            True
        ] * 2
        assert sub.expires_at
        assert sub.expires_at >= (graphs.whole().expires_at or 0)
        assert (graphs.node("a").expires_at or 0) >= (graphs.whole().expires_at or 0)


def sets_finished_at(call: Call, task_id: str) -> bool:
    """Whether a write finishes a task."""
    names = call.request.get("ExpressionAttributeNames", {}).values()
    return call.request["Key"]["s"]["S"] == task_id and ATTRIBUTES["finished_at"].name in names
