"""A topology within a topology runs, stops, pauses and rolls back together with the outer topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import ROLLBACK_CHECK_PAUSE
from duetime.domain.times import DAY
from duetime.handlers import Unretriable
from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

TOPOLOGY = {"kind": "topology"}


def chain(*keys: str, task_type: str = PLAIN, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A graph in which each node depends on the previous node."""
    once = {"max_attempts": 1}
    nodes = {
        key: {"type": task_type, "retry": once, "timeout_seconds": 800, "depends_on": [before] if before else []}
        for key, before in zip(keys, ("", *keys), strict=False)
    }
    return {"nodes": nodes, **fields}


def outer(graph: Mapping[str, Any], task_type: str = PLAIN) -> dict[str, Any]:
    """A graph with the node `first`, then the topology `inner`, then the node `last`."""
    nodes: dict[str, Any] = chain("first", "inner", "last", task_type=task_type)["nodes"]
    nodes["inner"] |= {"type": "part", "target": TOPOLOGY, "payload": graph}
    nodes["last"]["inputs"] = ["inner"]
    return nodes


class Nested(Graphs):
    """A scenario about a topology with another topology as a node."""

    def inner(self) -> Task:
        """The task of the inner topology."""
        return self.node("inner")

    def inner_node(self, key: str, of: Task | None = None) -> Task:
        """The task of one of the inner topology's nodes."""
        run_state = self.topologies.store.read((of or self.inner()).id)
        assert run_state is not None
        return self.record(run_state.task_id(key).text)

    def until_runs(self, key: str) -> None:
        """Let time pass until a node's target is called."""
        assert self.run_until(lambda: key in self.ran, 10 * MINUTE, SECOND), self.ran

    def ends_after(self, seconds: int, *failing: str) -> None:
        """Have each node take this many seconds, and have the listed nodes then fail."""

        def behave(phase: str, context: Context) -> str:
            if phase != "run":
                return "undone"
            self.take(seconds * SECOND)
            if self.key_of(context.task_id) in failing:
                raise Unretriable
            return "done"

        self.target = behave


def test_an_inner_topology_runs_between_its_parents_and_children() -> None:
    """An inner topology's outputs are its result and its child's input, and each topology refers to the other."""
    with Nested() as graphs:
        given: list[Any] = []

        def behave(_phase: str, context: Context) -> str:
            given.append(context.inputs)
            return graphs.key_of(context.task_id)

        graphs.target = behave
        graphs.submit(outer(chain("a", "b", outputs=["b"])))
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["first", "a", "b", "last"]
        assert given[-1]["inner"]["outputs"] == {"b": "b"}
        shown = graphs.ask("GET", f"{PATH}/{graphs.topology}").body["nodes"]["inner"]
        assert (shown["is_topology"], shown["state"]) == (True, "succeeded")
        inner = graphs.ask("GET", f"{PATH}/{shown['task_id']}").body
        assert (inner["counts"], inner["topology"]["id"], inner["topology"]["node"]) == (
            {"succeeded": 2},
            graphs.topology,
            "inner",
        )


def test_a_failed_inner_topology_fails_the_outer_topology() -> None:
    """If the inner topology fails, nodes that depend on it do not start, and the outer topology fails."""
    with Nested() as graphs:
        graphs.ends_after(0, "a")
        graphs.submit(outer(chain("a", "b")))
        ended = graphs.run_until_ended()
        assert (ended.state, ended.error and ended.error.message) == ("failed", "the node inner failed")
        assert graphs.ran == ["first", "a"]


def test_a_cancel_of_the_outer_topology_reaches_inner_nodes() -> None:
    """If the outer topology is cancelled, the running inner node is asked to stop, and the next node does not start."""
    with Nested() as graphs:
        graphs.ends_after(200)
        graphs.submit(outer(chain("a", "b")))
        graphs.until_runs("a")
        graphs.until_answered("cancel")
        assert graphs.run_until(lambda: graphs.inner_node("a").requested_action == "cancel", MINUTE, SECOND)
        assert graphs.run_until_ended().state == "cancelled"
        assert (graphs.inner().state, graphs.inner_node("b").state) == ("cancelled", "cancelled")
        assert "b" not in graphs.ran


def test_a_timeout_of_the_outer_topology_stops_inner_nodes() -> None:
    """The outer topology's timeout stops inner nodes long before the inner topology would end."""
    with Nested() as graphs:
        graphs.ends_after(300)
        graphs.submit(outer(chain("a", "b")), timeout_seconds=400)
        ended = graphs.run_until_ended()
        assert (ended.state, ended.error and ended.error.type) == ("failed", "DeadlineExceeded")
        assert "b" not in graphs.ran


def test_a_pause_of_the_outer_topology_holds_inner_nodes_until_the_resume() -> None:
    """While a topology is paused, a running inner node can end, but later inner nodes wait until the resume."""
    with Nested() as graphs:
        graphs.ends_after(30)
        graphs.submit(outer(chain("a", "b")))
        graphs.until_runs("a")
        graphs.until_answered("pause")
        graphs.topologies.controlled.add(graphs.topology)
        graphs.run(10 * MINUTE)
        assert (graphs.ran[-1], graphs.inner().state, graphs.inner().requested_action) == ("a", "running", "pause")
        graphs.until_answered("resume")
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["first", "a", "b", "last"]


def _is_inner_operation(graphs: Nested, call: Call) -> bool:
    """Whether a call is part of the bulk operation that passes a resume on to the inner topology's nodes."""
    return graphs.inner().id.text in str(call.request) and "bulk" in str(call.request)


def _is_operation_itself(_graphs: Nested, call: Call) -> bool:
    """Whether a call stores a bulk operation to which its topology already refers."""
    return call.operation == "put_item" and "'b#" in str(call.request)


@pytest.mark.parametrize("matches", [_is_inner_operation, _is_operation_itself])
def test_a_repeated_resume_reaches_inner_nodes_after_a_crash(
    matches: Callable[[Nested, Call], bool],
) -> None:
    """If a resume's process dies after reaching the inner topology, a repeat also reaches the inner nodes."""
    with Nested() as graphs:
        graphs.faulty = True
        graphs.ends_after(30)
        graphs.submit(outer({"nodes": {"a": {"type": PLAIN, "delay_seconds": 120}}}))
        graphs.until_runs("first")
        graphs.run(2 * MINUTE)
        graphs.until_answered("pause")
        graphs.topologies.controlled.add(graphs.topology)
        graphs.run(10 * MINUTE)
        assert graphs.inner_node("a").state == "paused"
        died = graphs.once(
            lambda call: not graphs.inner().requested_action and matches(graphs, call),
            lambda call: call.machine.die(),
        )
        graphs.send("POST", f"{PATH}/{graphs.topology}/resume")
        assert graphs.run_until(lambda: died)
        graphs.until_answered("resume")
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["first", "a", "last"]


@pytest.mark.parametrize("key", ["side", "inner"])
def test_a_node_pause_written_after_the_resume_is_undone(key: str) -> None:
    """If a node's pause is written after its topology is resumed, the pause is undone."""
    with Nested() as graphs:
        graphs.faulty = True
        graphs.ends_after(30)
        nodes = outer(chain("a", "b")) | {"side": {"type": PLAIN, "delay_seconds": 600}}
        graphs.submit(nodes)
        graphs.until_runs("a")
        graphs.topologies.controlled.add(graphs.topology)
        node, version = graphs.node(key).id.text, graphs.node(key).version
        waits = graphs.slow(
            lambda call: call.machine.function == "api" and call.operation == "update_item" and node in str(call), 500
        )
        graphs.send("POST", f"{PATH}/{graphs.topology}/pause")
        assert graphs.run_until(lambda: waits, SECOND, 10)
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/resume").status < 300
        assert graphs.node(key).version == version
        graphs.run(2 * SECOND)
        assert (graphs.node(key).state == "paused") is (key == "side")
        assert (graphs.node(key).requested_action == "pause") is (key == "inner")
        assert graphs.run_until_ended().state == "succeeded"
        assert sorted(graphs.ran) == ["a", "b", "first", "last", "side"]


def test_a_rollback_goes_from_children_to_parents_through_the_inner_topology() -> None:
    """A rollback goes from children to parents through the inner topology, which ends as rolled back."""
    with Nested() as graphs:
        graphs.ends_after(0, "last")
        graphs.submit(outer(chain("a", "b", task_type=UNDONE), task_type=UNDONE), on_failure="rollback")
        assert graphs.run_until_ended().state == "failed"
        assert graphs.undone == ["last", "b", "a", "first"]
        assert (graphs.inner().state, graphs.inner_node("a").state) == ("rolled_back", "rolled_back")


def test_a_rollback_skips_an_inner_topology_without_created_nodes() -> None:
    """If an inner topology's nodes were never created, the rollback skips the inner topology and continues."""
    with Nested() as graphs:
        graphs.faulty = True
        graphs.submit(outer(chain("a", task_type=UNDONE), task_type=UNDONE), on_failure="rollback")
        died = graphs.once(
            lambda call: call.operation == "start_execution" and graphs.topology not in str(call),
            lambda call: call.machine.die(),
        )
        assert graphs.run_until(lambda: graphs.whole().finished_at, HOUR)
        assert died
        assert (graphs.whole().state, graphs.undone) == ("failed", ["first"])
        assert graphs.inner().state == "rolled_back"


def test_an_inner_rollback_does_not_wait_for_its_next_check() -> None:
    """Because an inner rollback does not wait for checks, rolling back seven nodes is faster than two checks."""
    with Nested() as graphs:
        graphs.ends_after(0, "last")
        graphs.submit(outer(chain(*"abcdefg", task_type=UNDONE), task_type=UNDONE), on_failure="rollback")
        graphs.until_runs("last")
        began_at = graphs.time.now()
        assert graphs.run_until(lambda: graphs.undone[-1:] == ["a"], MINUTE, SECOND // 10), graphs.undone
        assert graphs.time.now() - began_at < 2 * ROLLBACK_CHECK_PAUSE
        graphs.run_until_ended()


def test_a_retry_restarts_a_failed_inner_topology_from_its_beginning() -> None:
    """A retry starts a new inner topology, and the outer topology keeps only its own successful nodes."""
    with Nested() as graphs:
        graphs.ends_after(0, "b")
        graphs.submit(outer(chain("a", "b")))
        graphs.run_until_ended()
        before = graphs.inner().id
        graphs.ends_after(0)
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/retry").status == 200
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.inner().id != before
        assert graphs.ran == ["first", "a", "b", "a", "b", "last"]


def test_inner_nodes_are_kept_as_long_as_the_outermost_topology() -> None:
    """Inner nodes do not expire while the outermost topology is open, and afterwards outlive the inner topology."""
    with Nested() as graphs:
        graphs.submit(outer(chain("a")))
        assert graphs.run_until(lambda: "last" in graphs.ran, 5 * MINUTE, SECOND // 10)
        assert (graphs.inner().expires_at, graphs.inner_node("a").expires_at) == (None, None)
        ended = graphs.run_until_ended()
        graphs.run(MINUTE)
        inner, node = graphs.inner(), graphs.inner_node("a")
        assert ended.expires_at is not None
        assert inner.expires_at is not None
        assert inner.expires_at >= ended.expires_at + DAY
        assert (node.expires_at or 0) >= inner.expires_at + DAY


def test_inner_nodes_expire_after_their_topology_despite_a_lost_worker() -> None:
    """Inner nodes expire after their topology, even if a lost worker's follow-up for the topology is repeated."""
    with Nested() as graphs:
        graphs.faulty = True
        graphs.ends_after(5)
        graphs.submit(outer(chain("a")))
        graphs.until_runs("a")
        told = {"fence": graphs.whole().fence, "outcome": "failed", "error": {"type": "X", "message": "by hand"}}
        ended = graphs.ask("POST", f"/v1/tasks/{graphs.topology}/notify", told | {"retriable": False})
        assert ended.status == 200
        inner = graphs.inner().id.text
        died = graphs.once(
            lambda call: call.operation == "update_item" and inner in str(call) and "finished_at" in str(call),
            lambda call: call.machine.die(),
        )
        assert graphs.run_until(lambda: graphs.inner().finished_at)
        assert died
        graphs.run(MINUTE)
        node_expires_at, expires_at = graphs.inner_node("a").expires_at, graphs.inner().expires_at
        assert expires_at is not None
        assert (node_expires_at or 0) > expires_at + DAY


def test_deleting_a_topology_erases_its_inner_topology_and_nodes() -> None:
    """Deleting a topology also erases the contents of its inner topology and that topology's nodes."""
    with Nested() as graphs:
        graphs.submit(outer(chain("a")))
        graphs.run_until_ended()
        graphs.run(MINUTE)
        inner, node = graphs.inner(), graphs.inner_node("a")
        assert graphs.ask("DELETE", f"{PATH}/{inner.id}").status == 409
        assert graphs.ask("DELETE", f"{PATH}/{graphs.topology}").status == 204
        assert graphs.record(inner.id.text).erased
        assert graphs.record(node.id.text).erased
