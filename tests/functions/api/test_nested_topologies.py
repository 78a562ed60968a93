"""Tests over REST of topologies that contain topologies: valid graphs, and errors that name the field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_NODES, MAX_TOPOLOGY_LEVELS

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

PATH = "/v1/topologies"
DEFINITIONS = f"{PATH}/definitions"
LEAF: dict[str, Any] = {"nodes": {"a": {"type": "report"}}}


def within(graph: dict[str, Any], **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A graph whose only node is a topology that runs the given graph."""
    return {"nodes": {"part": {"type": "part", "target": {"kind": "topology"}, "payload": graph, **fields}}}


def running(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A graph whose only node runs the definition with this name."""
    return {"nodes": {"part": {"type": "part", "target": {"kind": "topology", "definition": {"name": name, **fields}}}}}


def nested(levels: int) -> dict[str, Any]:
    """A graph with this many levels of topologies."""
    return LEAF if levels == 1 else within(nested(levels - 1))


def test_the_deepest_allowed_nesting_of_topologies_is_accepted(api: Gateway) -> None:
    """The deepest allowed nesting is accepted, and the response shows which nodes are topologies."""
    made = api.send("POST", PATH, nested(MAX_TOPOLOGY_LEVELS))
    assert made.status == 201, made.body
    assert api.send("GET", f"{PATH}/{made.body['id']}").body["nodes"]["part"]["is_topology"]


MANY = {"nodes": {f"n{number}": {"type": "report"} for number in range(MAX_NODES // 2)}}
TWO = {"nodes": {f"part{number}": within(MANY)["nodes"]["part"] for number in range(2)}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(nested(MAX_TOPOLOGY_LEVELS + 1), "nodes.part.payload", id="levels"),
        pytest.param(TWO, "nodes", id="nodes"),
        pytest.param(
            within({"nodes": {"a": {"type": "x", "depends_on": ["b"]}}}),
            "nodes.part.payload.nodes.a.depends_on",
            id="graph",
        ),
        pytest.param(
            within({"nodes": {"a": {"type": "x", "target": {"kind": "pull"}}}}),
            "nodes.part.payload.nodes.a.target",
            id="target",
        ),
        pytest.param(within(LEAF, rollback_on_failure=True), "nodes.part.rollback_on_failure", id="rollback"),
        pytest.param(
            {"nodes": {**LEAF["nodes"], **within(LEAF, depends_on=["a"], inputs=["a"])["nodes"]}},
            "nodes.part.inputs",
            id="inputs",
        ),
        pytest.param(running("nowhere"), "nodes.part.target.definition.name", id="definition"),
        pytest.param(
            {"nodes": {"part": {**running("leaf")["nodes"]["part"], "payload": LEAF}}}, "nodes.part.payload", id="both"
        ),
    ],
)
def test_an_error_for_an_invalid_nested_topology_names_the_field(api: Gateway, body: Any, field: str) -> None:  # noqa: ANN401 - JSON
    """An error for an invalid nested topology names the field, and no task is created."""
    refused = api.send("POST", PATH, body)
    assert refused.status == 422
    assert field in refused.faults
    assert api.listed() == []


def test_a_node_can_run_a_definition_with_parameters_of_the_outer_definition(api: Gateway) -> None:
    """A node can run a definition with the outer definition's parameters.

    The node uses the definition's latest version at the run's creation.
    """
    region = {"region": {"type": "string"}}
    payload = {"to": "<duetime.parameters.region>"}
    api.send("PUT", f"{DEFINITIONS}/leaf", {"parameters": region, **LEAF})
    around = running("leaf", parameters={"region": "<duetime.parameters.region>"})
    assert api.send("PUT", f"{DEFINITIONS}/around", {"parameters": region, **around}).status == 201
    api.send(
        "PUT", f"{DEFINITIONS}/leaf", {"parameters": region, "nodes": {"a": {"type": "report", "payload": payload}}}
    )
    made = api.send("POST", f"{DEFINITIONS}/around/runs", {"parameters": {"region": "eu"}})
    assert made.status == 201, made.body
    part = made.body["payload"]["nodes"]["part"]
    assert part["target"]["definition"] == {"name": "leaf", "version": 2, "parameters": {"region": "eu"}}
    assert part["payload"] == {"nodes": {"a": {"type": "report", "payload": {"to": "eu"}}}}
    missing = api.send("POST", PATH, running("leaf"))
    assert list(missing.faults) == ["nodes.part.target.definition.parameters.region"]


MAPPED: dict[str, Any] = {
    "list": {"type": "report"},
    "each": {
        "type": "report",
        "depends_on": ["list"],
        "payload": {"item": "<duetime.item>", "place": "<duetime.index>"},
        "map": {"over": "parents.list.result", "max_parallel": 5, "tolerated_failures": 1},
    },
}


def each(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A graph with a map, in which these fields of the map's node are replaced."""
    return {"nodes": {**MAPPED, "each": {**MAPPED["each"], **fields}}}


def test_a_map_is_stored_unchanged(api: Gateway) -> None:
    """A map is accepted and stored unchanged in topologies, definitions and nested topologies."""
    made = api.send("POST", PATH, {"nodes": MAPPED})
    assert (made.status, made.body["payload"]) == (201, {"nodes": MAPPED})
    assert api.send("GET", f"{PATH}/{made.body['id']}").body["nodes"]["each"]["is_topology"]
    called = each(target={"kind": "http", "url": "https://example.com/<duetime.item>"})
    assert api.send("PUT", f"{DEFINITIONS}/mapped", called).status == 201
    assert api.send("POST", f"{DEFINITIONS}/mapped/runs", {}).status == 201
    assert api.send("POST", PATH, running("mapped")).status == 201
    assert api.send("POST", PATH, within({"nodes": MAPPED})).status == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param(each(depends_on=[]), "nodes.each.map", id="no parents"),
        pytest.param(each(trigger_rule="always"), "nodes.each.map", id="always"),
        pytest.param(each(inputs=["list"]), "nodes.each.inputs", id="inputs"),
        pytest.param(each(map={"over": "parents.other.result"}), "nodes.each.map.over", id="no parent"),
        pytest.param(each(map={"over": "parents.["}), "nodes.each.map.over", id="no expression"),
        pytest.param(each(map={"over": "parents", "max_parallel": 0}), "nodes.each.map.max_parallel", id="parallel"),
        pytest.param(each(map={}), "nodes.each.map.over", id="no list"),
        pytest.param(each(map=None), "nodes.each.payload.item", id="item without map"),
        pytest.param(
            each(target={"kind": "topology"}, payload=nested(MAX_TOPOLOGY_LEVELS - 1)),
            "nodes.each.payload",
            id="levels",
        ),
    ],
)
def test_an_error_for_an_invalid_map_names_the_field(api: Gateway, body: Any, field: str) -> None:  # noqa: ANN401 - JSON
    """An error for an invalid map names the field."""
    refused = api.send("POST", PATH, body)
    assert refused.status == 422
    assert field in refused.faults


def test_running_a_definition_that_contains_itself_is_rejected(api: Gateway) -> None:
    """Running a definition that contains itself is refused.

    The error gives the path to the first level that is too deep.
    """
    assert api.send("PUT", f"{DEFINITIONS}/loop", running("loop")).status == 201
    refused = api.send("POST", "/v1/tasks", {"type": "t", "target": {"kind": "topology"}, "payload": running("loop")})
    assert refused.status == 422
    ((place, reason),) = refused.faults.items()
    assert place == "payload." + "nodes.part.payload." * (MAX_TOPOLOGY_LEVELS - 1) + "nodes.part.target.definition"
    assert "levels" in reason


def test_the_graph_of_an_updated_task_may_refer_to_definitions(api: Gateway) -> None:
    """The graph of an updated task may refer to definitions, as a new task's graph may."""
    api.send("PUT", f"{DEFINITIONS}/leaf", LEAF)
    task = api.create({"type": "t", "target": {"kind": "topology"}, "payload": LEAF, "delay_seconds": 60})
    changed = api.send("PATCH", f"/v1/tasks/{task['id']}", {"payload": running("leaf")})
    assert changed.status == 200, changed.body
    assert changed.body["payload"]["nodes"]["part"]["payload"] == LEAF
