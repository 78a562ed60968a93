"""An execution waits only for last nodes, but the run ends in time whatever happens to other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import WAITS_AT_ONCE
from duetime.handlers import Unretriable
from duetime_testing.simulation.machines import Machine
from tests.parts import others_slow
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.handlers import Context

NODES: dict[str, dict[str, Any]] = {
    "top": {"type": UNDONE},
    "middle": {"type": UNDONE, "depends_on": ["top"], "delay_seconds": 5, "expires_seconds": 600},
    "beside": {"type": UNDONE, "depends_on": ["top"], "timeout_seconds": 600},
    "last": {"type": UNDONE, "depends_on": ["middle", "beside"]},
    "after": {"type": PLAIN, "depends_on": ["middle"], "trigger_rule": "all_done"},
}


def waits(graphs: Graphs) -> None:
    """Let time pass until the node's parent has succeeded, and the node waits for its own time."""
    assert graphs.run_until(lambda: graphs.has_node("middle") and graphs.node("middle").state == "scheduled")


def has_ended(graphs: Graphs, key: str) -> None:
    """Let time pass until a node has ended and its follow-up is done."""
    assert graphs.run_until(lambda: key in graphs.ran and graphs.node(key).finished_at is not None)


def ask(graphs: Graphs, key: str, verb: str, **body: Any) -> None:  # noqa: ANN401 - JSON
    """Request an action on a node, which must be accepted."""
    answer = graphs.ask("POST", f"/v1/tasks/{graphs.node(key).id}/{verb}", body or None)
    assert answer.status in {200, 202}, answer.body


def fails(graphs: Graphs) -> None:
    """The node fails permanently, a minute before the node beside it ends."""
    act = graphs.target

    def target(phase: str, context: Context) -> object:
        if phase == "run" and graphs.key_of(context.task_id) == "middle" and graphs.ran.count("middle") == 1:
            raise Unretriable
        return act(phase, context)

    graphs.target = target


def is_cancelled(graphs: Graphs) -> None:
    """A user cancels the node before it runs."""
    waits(graphs)
    ask(graphs, "middle", "cancel")


def is_retried(graphs: Graphs) -> None:
    """The node fails, and a user retries it while the run continues."""
    fails(graphs)
    has_ended(graphs, "middle")
    ask(graphs, "middle", "retry")


def is_rolled_back(graphs: Graphs) -> None:
    """The node succeeds, and a user rolls it back while the node beside it runs."""
    has_ended(graphs, "middle")
    ask(graphs, "middle", "rollback")


def is_paused(graphs: Graphs) -> None:
    """A user pauses the node before it runs, and resumes it long after the other nodes have ended."""
    waits(graphs)
    ask(graphs, "middle", "pause")
    has_ended(graphs, "beside")
    graphs.run(5 * MINUTE)
    assert graphs.node("middle").state == "paused"
    ask(graphs, "middle", "resume")


def expires(graphs: Graphs) -> None:
    """The node's type is stopped until the node has expired."""
    waits(graphs)
    path = f"/v1/switches/type/{UNDONE}"
    assert graphs.ask("PUT", path, {"stopped": True, "reason": "it is to expire"}).status == 200
    graphs.run(12 * MINUTE)
    assert graphs.ask("DELETE", path).status in {200, 204}


def dies(graphs: Graphs) -> None:
    """The node's worker dies, and another attempt follows."""
    graphs.faulty = True
    assert graphs.run_until(lambda: "middle" in graphs.ran)
    name = graphs.node("middle").id.text
    (process,) = (each.process for each in graphs.watching.live if each.task_id == name and each.lives)
    assert isinstance(process.home, Machine)
    process.home.die()
    assert graphs.run_until(lambda: graphs.ran.count("middle") == 2)


@pytest.mark.parametrize("policy", others_slow(["stop", "continue", "rollback"]))
@pytest.mark.parametrize(
    ("happens", "end", "undone"),
    [
        (fails, "failed", "rolled_back"),
        (is_cancelled, "cancelled", "cancelled"),
        (is_retried, "succeeded", "rolled_back"),
        (is_rolled_back, "rolled_back", "rolled_back"),
        (is_paused, "succeeded", "succeeded"),
        (expires, "failed", "failed"),
        (dies, "succeeded", "succeeded"),
    ],
)
def test_a_run_ends_soon_after_its_last_node(
    happens: Callable[[Graphs], None], end: str, undone: str, policy: str
) -> None:
    """A run ends at most 5% of its duration after its last node; its execution ends, and no open task is left."""
    with Graphs() as graphs:
        graphs.target = lambda _phase, context: graphs.take(
            {"middle": 20, "beside": 80}.get(graphs.key_of(context.task_id), 1) * SECOND
        )
        graphs.submit(NODES, on_failure=policy)
        # A node that a user holds begins long after its parents have ended.
        graphs.topologies.controlled.add(graphs.topology)
        happens(graphs)
        whole = graphs.run_until_ended()
        assert whole.state == ("succeeded" if happens in {is_paused, dies} else "failed")
        assert graphs.node("middle").state == (undone if policy == "rollback" else end)
        assert whole.finished_at is not None
        ends = [graphs.node(key).finished_at or HOUR**3 for key in NODES]
        assert whole.finished_at - max(ends) <= (whole.finished_at - whole.created_at) / 20 + SECOND
        graphs.run(MINUTE)
        assert graphs.executions() == {"1": "SUCCEEDED"}
        assert [task.id for task in graphs.watching.unfinished()] == []


@pytest.mark.parametrize("policy", ["stop", "continue"])
def test_executions_of_many_last_nodes_end_with_a_first_nodes_failure(policy: str) -> None:
    """If a first node fails, the child executions end even if no last node that they wait for has begun."""
    with Graphs() as graphs:

        def fail(_phase: str, _context: Context) -> None:
            graphs.take(20 * SECOND)
            raise Unretriable

        graphs.target = fail
        lasts = {f"n{number}": {"type": PLAIN, "depends_on": ["first"]} for number in range(WAITS_AT_ONCE + 5)}
        graphs.submit({"first": {"type": PLAIN}, **lasts}, on_failure=policy)
        assert graphs.run_until_ended(within=MINUTE).state == "failed"
        graphs.run(MINUTE)
        assert graphs.ran == ["first"]
        assert graphs.executions() == {"1": "SUCCEEDED"}
        assert graphs.state_machine.entered["Chunk"] == 2
