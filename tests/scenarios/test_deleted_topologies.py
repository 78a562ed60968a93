"""After its deletion, a topology and its nodes cannot be read, and no late or repeated request restores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import BULK_INLINE
from duetime.handlers import Unretriable
from tests.scenarios.graphs import DIAMOND, PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.test_deleted_tasks import LARGE

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

SECRET: dict[str, dict[str, Any]] = {
    "secret-a": {"type": PLAIN, "payload": "secret words", "tags": {"secret": "tag"}},
    "secret-b": {"type": PLAIN, "depends_on": ["secret-a"], "payload": "secret" + "x" * 9_000},
}

FAILING: dict[str, dict[str, Any]] = {
    "a": {"type": PLAIN},
    "b": {"type": "no.such", "allow_unknown_type": True, "depends_on": ["a"], "retry": {"max_attempts": 1}},
}
"""A graph whose second node fails."""


def listed(graphs: Graphs) -> list[str]:
    """The ids of all tasks, including nodes, that their owner can list."""
    return [task["id"] for task in graphs.ask("GET", "/v1/tasks", query="include_nodes=true").body["tasks"]]


def test_a_deleted_topology_leaves_no_data_in_any_store_or_list() -> None:
    """After a deletion, payloads and node names are in no store or list, and later requests get 404."""
    with Graphs() as graphs:
        topology = graphs.submit(SECRET, name="secret name")
        graphs.run_until_ended()
        nodes = [graphs.node(key).id.text for key in SECRET]
        assert len(listed(graphs)) == 3
        assert graphs.ask("DELETE", f"/v1/tasks/{topology}").status == 204
        assert "secret" not in str(graphs.items())
        assert graphs.items(schema.CONTENT_PREFIX) == []
        assert listed(graphs) == []
        for gone in (topology, *nodes):
            for method, at in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("GET", "/attempts")):
                assert graphs.ask(method, f"/v1/tasks/{gone}{at}").status == 404, (gone, at)
        for method, at in (("GET", ""), ("POST", "/retry"), ("POST", "/cancel"), ("POST", "/resume")):
            assert graphs.ask(method, f"{PATH}/{topology}{at}").status == 404, at
        assert all(graphs.record(each).expires_at is not None for each in (topology, *nodes))
        graphs.run(HOUR)
        assert not graphs.violations


def test_a_deletion_before_the_start_prevents_any_run() -> None:
    """A topology that is deleted before it starts never creates a node."""
    with Graphs() as graphs:
        topology = graphs.submit(DIAMOND, delay_seconds=600)
        assert graphs.ask("DELETE", f"/v1/tasks/{topology}").status == 204
        graphs.run(HOUR)
        assert (graphs.ran, graphs.whole().erased) == ([], True)


def test_deleting_a_running_topology_is_a_conflict() -> None:
    """Deleting a running topology is a conflict; a topology that was cancelled and has ended can be deleted."""
    with Graphs() as graphs:
        nodes: dict[str, dict[str, Any]] = {
            "a": {"type": PLAIN},
            "b": {"type": PLAIN, "depends_on": ["a"], "delay_seconds": 600},
        }
        path = f"/v1/tasks/{graphs.submit(nodes)}"
        graphs.run(30 * SECOND)
        refused = graphs.ask("DELETE", path)
        assert (refused.status, "cancel it first" in refused.body["detail"]) == (409, True)
        assert graphs.ask("POST", f"{PATH}/{graphs.topology}/cancel").status in (200, 202)
        graphs.run_until_ended()
        assert graphs.ask("DELETE", path).status == 204
        assert listed(graphs) == []


def test_a_node_cannot_be_deleted_without_its_topology() -> None:
    """A node cannot be deleted alone, even after its end, and the error says to delete its topology."""
    with Graphs() as graphs:
        graphs.submit(DIAMOND)
        graphs.run_until_ended()
        refused = graphs.ask("DELETE", f"/v1/tasks/{graphs.node('left').id}")
        assert (refused.status, "delete its topology" in refused.body["detail"]) == (409, True)
        assert graphs.ask("GET", f"{PATH}/{graphs.topology}").body["counts"] == {"succeeded": 4}


def test_a_topology_cannot_be_deleted_while_a_node_is_retried() -> None:
    """An ended topology with a retried node can be deleted only once that node has ended."""
    with Graphs() as graphs:
        fails = {"a"}

        def behave(_phase: str, context: Context) -> str:
            if graphs.key_of(context.task_id) in fails:
                raise Unretriable
            graphs.take(20 * SECOND)
            return "done"

        graphs.target = behave
        graphs.submit({"a": {"type": PLAIN}})
        graphs.run_until_ended()
        fails.clear()
        node, path = graphs.node("a").id.text, f"/v1/tasks/{graphs.topology}"
        assert graphs.ask("POST", f"/v1/tasks/{node}/retry").status == 200
        graphs.run(SECOND)
        refused = graphs.ask("DELETE", path)
        assert (refused.status, "its nodes have ended" in refused.body["detail"]) == (409, True)
        graphs.run(MINUTE)
        assert graphs.ask("DELETE", path).status == 204
        assert graphs.ask("GET", f"/v1/tasks/{node}").status == 404


def test_the_nodes_of_every_run_are_deleted() -> None:
    """A deletion also removes the nodes of the run before a retry."""
    with Graphs() as graphs:
        topology = graphs.submit(FAILING)
        graphs.run_until_ended()
        first = graphs.node("b").id
        assert graphs.ask("POST", f"{PATH}/{topology}/retry").status == 200
        graphs.run_until_ended()
        assert graphs.node("b").id != first
        assert len(listed(graphs)) == 4
        assert graphs.ask("DELETE", f"/v1/tasks/{topology}").status == 204
        assert listed(graphs) == []


def test_a_repeat_of_an_interrupted_deletion_removes_the_remaining_nodes() -> None:
    """An interrupted deletion has already deleted the topology, and a repeat removes the remaining nodes."""
    with Graphs() as graphs:
        topology = graphs.submit(SECRET)
        graphs.run_until_ended()
        left = graphs.node("secret-b").id.text

        failed = graphs.once(
            lambda call: call.operation == "update_item" and left in str(call.request["Key"]),
            lambda call: call.refuse(),
        )
        assert graphs.ask("DELETE", f"/v1/tasks/{topology}").status == 503
        assert failed
        assert graphs.ask("GET", f"{PATH}/{topology}").status == 404
        assert "secret" in str(graphs.items())
        assert graphs.ask("DELETE", f"/v1/tasks/{topology}").status == 404
        assert "secret" not in str(graphs.items())
        assert listed(graphs) == []


@pytest.mark.parametrize("pause", [1, 40, 90])
def test_only_one_of_a_topologys_concurrent_retry_and_deletion_takes_effect(pause: int) -> None:
    """If a deletion and a retry overlap, either the topology is deleted, or it runs again and keeps its successes."""
    with Graphs() as graphs:
        topology = graphs.submit(FAILING)
        graphs.run_until_ended()
        graphs.slow(
            lambda call: (
                call.machine.function == "api"
                and call.operation == "update_item"
                and topology in str(call.request["Key"])
            ),
            pause,
        )
        retried = graphs.send("POST", f"{PATH}/{topology}/retry")
        deleted = graphs.send("DELETE", f"/v1/tasks/{topology}")
        graphs.run(HOUR)
        found = graphs.ask("GET", f"{PATH}/{topology}")
        if deleted[0].status == 204:
            assert (found.status, listed(graphs), graphs.ran) == (404, [], ["a"])
        else:
            assert (deleted[0].status, retried[0].status, found.status, graphs.ran) == (409, 200, 200, ["a"])
        assert not graphs.violations


@pytest.mark.slow
def test_a_topologys_many_nodes_are_deleted_in_the_background() -> None:
    """Deleting a topology with many nodes is answered soon, and the nodes are deleted in the background."""
    with Graphs() as graphs:
        topology = graphs.submit(
            {f"secret{n}": {"type": PLAIN, "payload": "secret" + (LARGE if n == 119 else "")} for n in range(120)}
        )
        graphs.run_until_ended()

        def read_slowly(call: Call) -> None:
            if call.machine.function == "api" and call.operation == "batch_get_item":
                graphs.take(BULK_INLINE)

        graphs.before_call = read_slowly
        assert graphs.ask("DELETE", f"/v1/tasks/{topology}").status == 204
        (operation,) = graphs.ask("GET", "/v1/bulk-operations").body["operations"]
        assert (operation["kind"], operation["topology_id"]) == ("delete", topology)
        graphs.run(10 * MINUTE)
        done = graphs.ask("GET", f"/v1/bulk-operations/{operation['id']}").body
        assert done["state"] == "succeeded"
        assert listed(graphs) == []
        assert "secret" not in str(graphs.items())
        assert not graphs.s3.objects
