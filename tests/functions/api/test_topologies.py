"""Topologies over REST, and the states of the state machine as its function does them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.domain.attempts import Succeeded
from duetime.domain.ids import TaskId
from functions.topology.handler import handler
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

NODES: dict[str, dict[str, Any]] = {
    "top": {"type": "report"},
    "left": {"type": "report", "depends_on": ["top"], "expected_seconds": 3},
    "bottom": {"type": "report", "depends_on": ["left", "top"], "inputs": ["left"], "rule": "all_done"},
}
PATH = "/v1/topologies"


def state(name: str, task_id: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """What a state of the first attempt's run answers."""
    context: Any = SimpleNamespace()
    return handler({"state": name, "task_id": task_id, "fence": 1, **more}, context)


def test_a_topology_is_a_task_whose_payload_is_the_graph(api: Gateway) -> None:
    """It is found among the tasks, and before it has begun all its nodes are blocked."""
    made = api.send("POST", PATH, {"name": "nightly", "nodes": NODES, "on_failure": "rollback", "tags": {"a": "b"}})
    assert made.status == 201
    assert made.headers["Location"] == f"{PATH}/{made.body['id']}"
    assert made.body["target"] == {"kind": "topology"}
    assert made.body["payload"] == {"nodes": NODES, "on_failure": "rollback"}
    seen = api.send("GET", f"{PATH}/{made.body['id']}").body
    assert (seen["name"], seen["run"], seen["counts"]) == ("nightly", 0, {"blocked": 3})
    assert seen["critical_path"]["nodes"] == ["top", "left", "bottom"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "nodes"),
        ({"nodes": {}}, "nodes"),
        ({"nodes": {"a": {"type": "x", "depends_on": ["b"]}}}, "nodes.a.depends_on"),
        ({"nodes": {"a": {"type": "x", "depends_on": ["b"]}, "b": {"type": "x", "depends_on": ["a"]}}}, "nodes"),
        ({"nodes": {"a": {"type": "x", "rule": "perhaps"}}}, "nodes.a.rule"),
        ({"nodes": {"a": {"type": "x", "at": "2030-01-01T00:00:00Z"}}}, "nodes.a.at"),
        ({"nodes": {"a": {"type": "x", "target": {"kind": "topology"}}}}, "nodes.a.target"),
        ({"nodes": {"a": {"type": "x"}}, "on_failure": "panic"}, "on_failure"),
        ({"nodes": {"a": {"type": "x"}}, "deadline_seconds": 0}, "deadline_seconds"),
        ({"nodes": {"a": {"type": "x"}}, "colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(api: Gateway, body: dict[str, Any], field: str) -> None:
    """The field is named, and nothing is created."""
    refused = api.send("POST", PATH, body)
    assert refused.status == 422
    assert field in refused.faults
    assert api.listed() == []


def test_a_task_that_is_no_topology_is_not_found(api: Gateway) -> None:
    """Whatever is asked of it."""
    task_id = api.create({"type": "report"})["id"]
    assert api.send("GET", f"{PATH}/{task_id}").status == 404
    assert {api.send("POST", f"{PATH}/{task_id}/{do}").status for do in ("rerun", "cancel", "pause", "resume")} == {404}


def test_the_states_take_a_topology_to_its_end(api: Gateway, clock: StandingClock) -> None:
    """Planned, its first node is scheduled; each end releases the next; finished, its task has an outcome."""
    task_id = api.send("POST", PATH, {"nodes": NODES}).body["id"]
    claimed_by_a_worker(task_id, clock)
    assert state("plan", task_id) == {"chunks": [[0, 1, 2]], "large": False}
    assert state("plan", task_id) == {"chunks": [[0, 1, 2]], "large": False}
    inside = composed()
    for key in ("top", "left", "bottom"):
        seen = api.send("GET", f"{PATH}/{task_id}").body
        assert seen["nodes"][key]["state"] == "scheduled"
        assert state("finish", task_id)["over"] is False
        node = seen["nodes"][key]["task_id"]
        claimed_by_a_worker(node, clock)
        assert api.send("GET", f"/v1/tasks/{node}").body["member"]["node"] == key
        done = inside.steering.notify("local", TaskId(node), 1, Succeeded(b"1"))
        inside.following.follow(done)
    assert state("finish", task_id) == {"state": "succeeded", "over": True, "again_after": 0}
    assert state("finish", task_id)["over"] is True
    assert api.send("GET", f"/v1/tasks/{task_id}").body["result"] == {"run": 1, "nodes": {"succeeded": 3}}


def test_a_task_may_name_the_target_itself(api: Gateway) -> None:
    """As a schedule's task does: its payload is the graph, and is refused as such."""
    target = {"kind": "topology"}
    made = api.create({"type": "nightly", "target": target, "payload": {"nodes": NODES}})
    assert api.send("GET", f"{PATH}/{made['id']}").body["counts"] == {"blocked": 3}
    loop = {"a": {"type": "x", "depends_on": ["a"]}}
    refused = api.send("POST", "/v1/tasks", {"type": "nightly", "target": target, "payload": {"nodes": loop}})
    assert (refused.status, list(refused.faults)) == (422, ["payload.nodes.a.depends_on"])
