"""Tests of topologies over REST, and of the state machine's states, which the topology function executes."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.tasks import TaskServices, TopologyServices
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_NODES
from duetime.domain.tasks.attempt_results import Postponed, Succeeded
from functions.topology.handler import handler
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.fakes.session import FakeSession
    from tests.functions.api.gateway import Gateway

NODES: dict[str, dict[str, Any]] = {
    "top": {"type": "report"},
    "left": {"type": "report", "depends_on": ["top"], "expected_seconds": 3},
    "bottom": {"type": "report", "depends_on": ["left", "top"], "inputs": ["left"], "trigger_rule": "all_done"},
}
PATH = "/v1/topologies"


def state(name: str, task_id: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Execute a state of the state machine for the first attempt's run, and return the function's response."""
    context: Any = SimpleNamespace()
    return handler({"state": name, "task_id": task_id, "fence": 1, "looks": 0, **more}, context)


def test_a_topology_is_a_task_whose_payload_is_the_graph(api: Gateway) -> None:
    """A topology is a task whose payload is the graph, and all its nodes are blocked before the topology begins."""
    made = api.send("POST", PATH, {"name": "nightly", "nodes": NODES, "on_failure": "rollback", "tags": {"a": "b"}})
    assert made.status == 201
    assert made.location == f"{PATH}/{made.body['id']}"
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
        ({"nodes": {"a": {"type": "x", "trigger_rule": "perhaps"}}}, "nodes.a.trigger_rule"),
        ({"nodes": {"a": {"type": "x", "due_at": "2030-01-01T00:00:00Z"}}}, "nodes.a.due_at"),
        ({"nodes": {"a": {"type": "x", "target": {"kind": "topology"}}}}, "nodes.a.payload"),
        ({"nodes": {"a": {"type": "x", "target": {"kind": "pull"}}}}, "nodes.a.target"),
        ({"nodes": {"a": {"type": "x", "when": "parents.a.result"}}}, "nodes.a.when"),
        ({"nodes": {"a": {"type": "x"}, "b": {"type": "x", "depends_on": ["a"], "when": "a >"}}}, "nodes.b.when"),
        ({"nodes": {"a": {"type": "x"}, "b": {"type": "x", "depends_on": ["a"], "when": 1}}}, "nodes.b.when"),
        ({"nodes": {"a": {"type": "x"}}, "on_failure": "panic"}, "on_failure"),
        ({"nodes": {"a": {"type": "x"}}, "timeout_seconds": 0}, "timeout_seconds"),
        ({"nodes": {"a": {"type": "x"}}, "color": "red"}, "color"),
    ],
)
def test_an_error_for_an_invalid_topology_names_the_field(api: Gateway, body: dict[str, Any], field: str) -> None:
    """An error for an invalid topology names the field, and no task is created."""
    refused = api.send("POST", PATH, body)
    assert refused.status == 422
    assert field in refused.faults
    assert api.listed() == []


def test_a_task_that_is_not_a_topology_returns_404(api: Gateway) -> None:
    """All topology operations return 404 for a task that is not a topology."""
    task_id = api.create({"type": "report"})["id"]
    assert api.send("GET", f"{PATH}/{task_id}").status == 404
    assert {api.send("POST", f"{PATH}/{task_id}/{do}").status for do in ("retry", "cancel", "pause", "resume")} == {404}


def test_each_nodes_end_releases_the_next_nodes_until_the_topology_ends(api: Gateway, clock: StandingClock) -> None:
    """After the plan, each node's end releases the next nodes, until the topology has its outcome."""
    task_id = api.send("POST", PATH, {"nodes": NODES}).body["id"]
    claimed_by_a_worker(task_id, clock)
    assert state("plan", task_id) == {"chunks": [[2]], "large": False, "looks": 0}
    assert state("plan", task_id) == {"chunks": [[2]], "large": False, "looks": 0}
    for key in ("top", "left", "bottom"):
        seen = api.send("GET", f"{PATH}/{task_id}").body
        assert seen["nodes"][key]["state"] == "scheduled"
        assert state("finish", task_id)["over"] is False
        node = seen["nodes"][key]["task_id"]
        claimed_by_a_worker(node, clock)
        assert api.send("GET", f"/v1/tasks/{node}").body["topology"]["node"] == key
        done = composed(TaskServices).attempt_reports.notify("local", TaskId(node), 1, Succeeded(b"1"))
        composed(TopologyServices).node_finished.follow(done)
    assert state("finish", task_id) == {"state": "succeeded", "over": True, "again_after": 0, "looks": 1}
    assert state("finish", task_id)["over"] is True
    assert api.send("GET", f"/v1/tasks/{task_id}").body["result"] == {"run": 1, "nodes": {"succeeded": 3}}


def test_the_nodes_of_a_topology_are_listed_by_their_parent(api: Gateway, clock: StandingClock) -> None:
    """The filter `parent` lists only a topology's own nodes; the list is empty before the topology begins."""
    one, two = (api.send("POST", PATH, {"nodes": NODES}).body["id"] for _ in range(2))
    assert api.listed(f"parent={one}") == []
    for topology in (one, two):
        claimed_by_a_worker(topology, clock)
        state("plan", topology)
    tasks = {key: node["task_id"] for key, node in api.send("GET", f"{PATH}/{one}").body["nodes"].items()}
    assert sorted(api.listed(f"parent={one}")) == sorted(tasks.values())
    assert api.listed(f"parent={one}&state=scheduled") == [tasks["top"]]
    assert api.listed(f"parent={tasks['top']}") == []
    refused = api.send("GET", "/v1/tasks", query="parent=nightly")
    assert (refused.status, refused.faults) == (400, {"parent": "should be a task id"})


def test_a_task_with_a_topology_target_has_the_graph_as_payload(api: Gateway) -> None:
    """A task with a topology target has the graph as its payload, and this payload is validated as a graph."""
    target = {"kind": "topology"}
    made = api.create({"type": "nightly", "target": target, "payload": {"nodes": NODES}})
    assert api.send("GET", f"{PATH}/{made['id']}").body["counts"] == {"blocked": 3}
    loop = {"a": {"type": "x", "depends_on": ["a"]}}
    refused = api.send("POST", "/v1/tasks", {"type": "nightly", "target": target, "payload": {"nodes": loop}})
    assert (refused.status, list(refused.faults)) == (422, ["payload.nodes.a.depends_on"])
    undone = {"type": "nightly", "target": target, "payload": {"nodes": NODES}, "rollback_on_failure": True}
    assert list(api.send("POST", "/v1/tasks", undone).faults) == ["rollback_on_failure"]
    assert api.listed() == [made["id"]]


def test_an_attempt_at_a_topology_lasts_as_long_as_its_graph(api: Gateway) -> None:
    """An attempt of a topology may last as long as the graph may take, because a shorter attempt would be retried."""
    target, bounded = {"kind": "topology"}, {"nodes": NODES, "timeout_seconds": 60}
    free = {"type": "nightly", "target": target, "payload": {"nodes": NODES}}
    assert api.create(free)["notify_within_seconds"] == MAX_DEADLINE_SECONDS
    assert api.create({**free, "payload": bounded})["notify_within_seconds"] == 60
    assert api.create({**free, "notify_within_seconds": 7200})["notify_within_seconds"] == 7200
    made = api.send("POST", "/v1/schedules", {"name": "nightly", "cron": "0 1 * * *", "task": free})
    assert made.body["task"]["notify_within_seconds"] == MAX_DEADLINE_SECONDS
    changed = api.send("PATCH", f"/v1/tasks/{api.create(free)['id']}", {"payload": bounded})
    assert changed.body["notify_within_seconds"] == 60


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"payload": 5}, "payload"),
        ({"payload": {"nodes": {}}}, "payload.nodes"),
        ({"payload": {"nodes": {"a": {"type": "x", "depends_on": ["a"]}}}}, "payload.nodes.a.depends_on"),
    ],
)
def test_an_update_with_an_invalid_graph_is_rejected(api: Gateway, change: dict[str, Any], field: str) -> None:
    """An update with an invalid graph is refused, and the payload does not change."""
    target = {"kind": "topology"}
    topology = api.create({"type": "nightly", "target": target, "payload": {"nodes": NODES}})["id"]
    plain = api.create({"type": "nightly", **change})["id"]
    for task_id, wanted in ((topology, change), (plain, {"target": target})):
        refused = api.send("PATCH", f"/v1/tasks/{task_id}", wanted)
        assert (refused.status, list(refused.faults)) == (422, [field])
    assert api.send("GET", f"/v1/tasks/{topology}").body["payload"] == {"nodes": NODES}
    assert api.send("GET", f"{PATH}/{topology}").status == 200


def test_a_topology_keeps_its_graph_once_an_attempt_has_begun(api: Gateway, clock: StandingClock) -> None:
    """A topology's graph cannot be changed after an attempt has begun, even while it waits for the next attempt."""
    task_id = api.send("POST", PATH, {"nodes": NODES}).body["id"]
    task = claimed_by_a_worker(task_id, clock)
    composed(TaskServices).attempt_reports.outcome_writer.postpone(task, Postponed(clock.at, "its execution was lost"))
    for change in ({"payload": {"nodes": {"other": {"type": "x"}}}}, {"target": {"kind": "handler"}}):
        refused = api.send("PATCH", f"/v1/tasks/{task_id}", change)
        assert (refused.status, refused.problem["code"]) == (409, "state_conflict")
    assert api.send("PATCH", f"/v1/tasks/{task_id}", {"name": "other"}).status == 200
    assert api.send("GET", f"/v1/tasks/{task_id}").body["payload"] == {"nodes": NODES}


@pytest.mark.parametrize("path", [PATH, "/v1/tasks"])
def test_an_action_on_a_topology_affects_its_nodes_at_once(api: Gateway, clock: StandingClock, path: str) -> None:
    """Pausing, resuming or cancelling a topology, by either path, affects its nodes at once."""

    def states() -> set[str]:
        return set(api.send("GET", f"{PATH}/{task_id}").body["counts"])

    task_id = api.send("POST", PATH, {"nodes": {"a": {"type": "x"}, "b": {"type": "x", "depends_on": ["a"]}}}).body[
        "id"
    ]
    claimed_by_a_worker(task_id, clock)
    state("plan", task_id)
    assert api.send("POST", f"{path}/{task_id}/pause").status == 202
    assert states() == {"paused", "blocked"}
    assert api.send("POST", f"{path}/{task_id}/resume").status == 200
    assert states() == {"scheduled", "blocked"}
    if path == PATH:
        assert api.send("POST", f"{path}/{task_id}/cancel").status == 202
    else:
        assert api.send("POST", f"{path}/{task_id}/cancel", {"force": True}).status == 202
    assert states() == {"stopped"}


def test_an_action_on_another_version_of_a_topology_has_no_effect(api: Gateway, clock: StandingClock) -> None:
    """If `If-Match` names a different version, an action on a topology has no effect."""
    task_id = api.send("POST", PATH, {"nodes": NODES}).body["id"]
    claimed_by_a_worker(task_id, clock)
    state("plan", task_id)
    version = api.send("GET", f"{PATH}/{task_id}").body["version"]
    for do in ("pause", "resume", "cancel", "retry"):
        refused = api.send("POST", f"{PATH}/{task_id}/{do}", headers={"If-Match": f'"{version - 1}"'})
        assert (refused.status, refused.problem["code"]) == (412, "version_mismatch")
    assert api.send("GET", f"{PATH}/{task_id}").body["version"] == version
    paused = api.send("POST", f"{PATH}/{task_id}/pause", headers={"If-Match": f'"{version}"'})
    assert (paused.status, paused.body["requested_action"]) == (202, "pause")


def test_topologies_are_listed_apart_from_other_tasks(api: Gateway) -> None:
    """The list of topologies includes topologies created as tasks, and has the filters and pages of the task list."""
    graph = {"nodes": NODES}
    plain = api.send("POST", PATH, {"name": "a", "tags": {"team": "dba"}, "delay_seconds": 60, **graph}).body["id"]
    as_task = {"type": "nightly", "name": "b", "target": {"kind": "topology"}, "payload": graph, "delay_seconds": 120}
    other = api.create(as_task)["id"]
    api.create({"type": "report", "delay_seconds": 90})
    listed = api.send("GET", PATH)
    assert (listed.status, listed.body["next_token"]) == (200, None)
    assert [each["id"] for each in listed.body["topologies"]] == [other, plain]
    whole = api.send("GET", f"{PATH}/{plain}").body
    assert listed.body["topologies"][1] == {name: whole[name] for name in listed.body["topologies"][1]}
    api.send("POST", f"{PATH}/{plain}/pause")
    for query, found in (
        ("state=paused", [plain]),
        ("name=b", [other]),
        ("type=nightly", [other]),
        ("tag=team:dba", [plain]),
        ("order=asc", [plain, other]),
        ("state=failed", []),
    ):
        assert [each["id"] for each in api.send("GET", PATH, query=query).body["topologies"]] == found, query
    first = api.send("GET", PATH, query="limit=1").body
    rest = api.send("GET", PATH, query=f"limit=1&next_token={first['next_token']}").body
    assert [each["id"] for page in (first, rest) for each in page["topologies"]] == [other, plain]
    assert api.send("GET", "/v1/tasks", query=f"next_token={first['next_token']}").status == 400
    stranger = replace(api, headers={"X-Duetime-Owner": "you"})
    assert stranger.send("GET", PATH).body["topologies"] == []


def test_the_etag_of_a_topology_changes_when_a_node_changes(api: Gateway, clock: StandingClock) -> None:
    """A topology's ETag changes when a node changes, even if the topology's version does not change."""
    task_id = api.send("POST", PATH, {"nodes": NODES}).body["id"]
    claimed_by_a_worker(task_id, clock)
    state("plan", task_id)
    path = f"{PATH}/{task_id}"
    before = api.send("GET", path)
    tag = before.headers["ETag"]
    assert tag.startswith(f'"{before.body["version"]}-')
    known = api.send("GET", path, headers={"If-None-Match": f'"1", W/{tag}'})
    assert (known.status, known.text, known.headers["ETag"]) == (304, "", tag)
    top = before.body["nodes"]["top"]["task_id"]
    api.send("POST", f"/v1/tasks/{top}/pause")
    after = api.send("GET", path, headers={"If-None-Match": tag})
    assert (after.status, after.body["version"]) == (200, before.body["version"])
    assert after.body["nodes"]["top"]["state"] == "paused"
    assert after.headers["ETag"] != tag


def test_if_match_compares_only_the_version_of_a_topologys_task(api: Gateway, clock: StandingClock) -> None:
    """`If-Match` compares only the version of the topology's task, and not the state of its nodes."""
    task_id = api.send("POST", PATH, {"nodes": NODES}).body["id"]
    claimed_by_a_worker(task_id, clock)
    state("plan", task_id)
    path = f"{PATH}/{task_id}"
    seen = api.send("GET", path)
    api.send("POST", f"/v1/tasks/{seen.body['nodes']['top']['task_id']}/pause")
    tag = {"If-Match": seen.headers["ETag"]}
    assert api.send("POST", f"{path}/pause", headers=tag).status == 202
    assert api.send("POST", f"{path}/resume", headers=tag).status == 412
    assert api.send("POST", f"{path}/resume", headers={"If-Match": f"W/{seen.headers['ETag']}"}).status == 412


def test_a_repeated_action_on_a_topology_returns_the_same_status(api: Gateway, clock: StandingClock) -> None:
    """Repeating an action on a topology returns the same status, and changes nothing."""
    task_id = api.send("POST", PATH, {"nodes": NODES}).body["id"]
    path = f"{PATH}/{task_id}"
    assert api.send("POST", f"{path}/resume").status == 200
    for _ in range(2):
        assert (api.send("POST", f"{path}/pause").status, api.listed()) == (200, [task_id])
    for _ in range(2):
        resumed = api.send("POST", f"{path}/resume")
        assert (resumed.status, resumed.body["state"]) == (200, "scheduled")
    claimed_by_a_worker(task_id, clock)
    state("plan", task_id)
    for do, status in (("pause", 202), ("resume", 200), ("cancel", 202)):
        first, again = (api.send("POST", f"{path}/{do}") for _ in range(2))
        assert (first.status, again.status, again.body["version"]) == (status, status, first.body["version"]), do
    refused = api.send("POST", f"{path}/resume")
    assert (refused.status, refused.problem["code"]) == (409, "state_conflict")


def layered(count: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a node
    """A graph with this many nodes in levels of fifty, where each node below the first level has two parents."""
    return {
        f"n{i}": {
            "type": "x",
            "depends_on": [f"n{i - 50}", f"n{i - 50 + (1 if i % 50 < 49 else -49)}"] if i >= 50 else [],
            **fields,
        }
        for i in range(count)
    }


@pytest.mark.slow
def test_the_largest_graph_is_accepted_and_shown(api: Gateway) -> None:
    """The largest graph, with ten thousand nodes, is accepted, and its response stays below Lambda's 6 MB."""
    made = api.send("POST", PATH, {"nodes": layered(MAX_NODES)})
    assert made.status == 201
    seen = api.send("GET", f"{PATH}/{made.body['id']}").body
    assert seen["counts"] == {"blocked": MAX_NODES}
    assert len(json.dumps(seen)) < 6_000_000


DEEP: Any = []
for _ in range(70):
    DEEP = [DEEP]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "field", "said"),
    [
        (layered(MAX_NODES + 1), "nodes", "should be 1 to 10000, not 10001"),
        (
            {
                f"n{i}": {"type": "x", "depends_on": [f"n{k}" for k in range(300)] if i >= 300 else []}
                for i in range(467)
            },
            "nodes",
            "have 50100 dependencies; 50000 are allowed",
        ),
        (layered(MAX_NODES, payload="x" * 160), "nodes", "bytes together; 2097152 are allowed"),
        ({"a": {"type": "x", "payload": DEEP}}, "nodes", "is nested deeper than"),
        ({"a": {"type": "x", "depends_on": ["b", "b"]}, "b": {"type": "x"}}, "nodes.a.depends_on", "2 times"),
        (
            {f"n{i}": {"type": "x", "depends_on": [f"n{(i + 1) % 9000}"]} for i in range(9000)},
            "nodes",
            "more) -> ",
        ),
        ({"a": {"type": "x", "depends_on": ["a"]}}, "nodes.a.depends_on", "itself"),
        ({"a b": {"type": "x"}}, "nodes", "the name 'a b'"),
    ],
    ids=["nodes", "edges", "bytes", "depth", "twice", "cycle", "itself", "name"],
)
def test_a_graph_above_a_limit_is_rejected_with_the_field(
    api: Gateway, nodes: dict[str, Any], field: str, said: str
) -> None:
    """An error for a graph that is too large or invalid has the field and the reason, and no task is created."""
    refused = api.send("POST", PATH, {"nodes": nodes})
    assert refused.status == 422
    assert field in refused.faults
    assert said in json.dumps(refused.body)
    assert api.listed() == []


def test_nodes_are_listed_in_pages_in_the_order_of_the_graph(api: Gateway, clock: StandingClock) -> None:
    """Pages of nodes show the same nodes as the topology, both before and after the topology begins."""
    nodes = {f"n{number}": {"type": "report", **({"depends_on": ["n0"]} if number else {})} for number in range(5)}
    topology = api.send("POST", PATH, {"nodes": nodes}).body["id"]
    for begun in (False, True):
        if begun:
            claimed_by_a_worker(topology, clock)
            state("plan", topology)
        shown = api.send("GET", f"{PATH}/{topology}").body["nodes"]
        listed, query = [], "limit=2"
        while query:
            page = api.send("GET", f"{PATH}/{topology}/nodes", query=query).body
            listed.append(page["nodes"])
            query = page["next_token"] and f"limit=2&next_token={page['next_token']}"
        assert [len(each) for each in listed] == [2, 2, 1]
        found = [node for each in listed for node in each]
        assert [node["name"] for node in found] == list(nodes)
        assert {node.pop("name"): node for node in found} == shown
        assert (found[0]["task_id"] is not None) == begun


def test_a_page_of_nodes_reads_only_its_own_nodes(api: Gateway, clock: StandingClock, session: FakeSession) -> None:
    """A page of nodes reads only the topology's task, its progress and the page's own nodes."""
    nodes = {f"n{number}": {"type": "report"} for number in range(120)}
    first, other = (api.send("POST", PATH, {"nodes": nodes}).body["id"] for _ in range(2))
    claimed_by_a_worker(first, clock)
    state("plan", first)
    api.send("GET", f"{PATH}/{first}/nodes")
    calls: list[tuple[str, int]] = []

    def heard(operation: str, request: dict[str, Any]) -> None:
        tables = request.get("RequestItems", {}).values()
        calls.append((operation, sum(len(table["Keys"]) for table in tables)))

    session.heard = heard
    page = api.send("GET", f"{PATH}/{first}/nodes").body
    assert calls == [("get_item", 0), ("batch_get_item", 2), ("batch_get_item", 100)]
    calls.clear()
    rest = api.send("GET", f"{PATH}/{first}/nodes", query=f"next_token={page['next_token']}").body
    assert calls[-1] == ("batch_get_item", 20)
    assert (len(rest["nodes"]), rest["next_token"]) == (20, None)
    wrong = api.send("GET", f"{PATH}/{other}/nodes", query=f"next_token={page['next_token']}")
    assert wrong.faults == {"next_token": "does not belong to this list"}
    task = api.create()["id"]
    assert api.send("GET", f"{PATH}/{task}/nodes").status == 404
