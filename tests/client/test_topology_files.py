"""Tests that topology files are read and checked without a server."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.contract.topologies.bodies import TopologyCreate, TopologyNode
from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.topologies import validation
from duetime.domain.topologies.graph import Node, OnFailure
from duetime.domain.topologies.run_progress import critical_path
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime_client import topology_validation
from duetime_client.topology_files import TopologyInvalid, read_topology, validate_topology

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "run-a-graph-of-tasks.md"
WORKFLOWS = Path(__file__).parents[3] / "shared" / "data" / "workflows"
RECORDED = {
    "name": "tiny",
    "source": "made up",
    "nodes": [
        {"id": "join_3", "program": "join", "runtime_s": 90.5, "parents": ["split_1", "work_2"]},
        {"id": "split_1", "program": "split", "runtime_s": 10, "parents": []},
        {"id": "work_2", "program": "work", "runtime_s": 0.25, "parents": ["split_1"]},
    ],
}


def _deeper(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "type"]), inner, max_size=3)


def written(folder: Path, document: object) -> Path:
    """Write a document to a file."""
    path = folder / "topology.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def task(*parents: object, **fields: object) -> dict[str, object]:
    """Return a node."""
    return {"type": "echo", "depends_on": list(parents), **fields}


def refused(body: object) -> list[str]:
    """Return the reasons why a body is refused."""
    with pytest.raises(TopologyInvalid) as error:
        validate_topology(body)
    return [f"{fault.field}: {fault.reason}" for fault in error.value.errors]


def test_the_body_equals_the_content_of_a_duetime_file(tmp_path: Path) -> None:
    """The request body equals the file's content."""
    body = {"name": "nightly", "on_failure": "rollback", "nodes": {"a": task(), "b": task("a", inputs=["a"])}}
    assert read_topology(written(tmp_path, body)) == body


def test_a_recorded_workflow_becomes_a_topology_of_tasks(tmp_path: Path) -> None:
    """Each program in a recorded workflow becomes a task of the same duration, with a sufficient timeout."""
    assert read_topology(written(tmp_path, RECORDED)) == {
        "name": "tiny",
        "nodes": {
            "join_3": {
                "type": "sleep",
                "payload": {"seconds": 90.5, "program": "join"},
                "expected_seconds": 90.5,
                "timeout_seconds": 121,
                "depends_on": ["split_1", "work_2"],
            },
            "split_1": {"type": "sleep", "payload": {"seconds": 10, "program": "split"}, "expected_seconds": 10},
            "work_2": {
                "type": "sleep",
                "payload": {"seconds": 0.25, "program": "work"},
                "expected_seconds": 0.25,
                "depends_on": ["split_1"],
            },
        },
    }


def test_recorded_times_can_be_scaled(tmp_path: Path) -> None:
    """A recorded duration of 90.5 s, scaled by 0.01, becomes 0.905 s and needs no timeout."""
    body = read_topology(written(tmp_path, RECORDED), task_type="demo", time_scale=0.01)
    assert body["nodes"]["join_3"]["payload"]["seconds"] == pytest.approx(0.905)
    assert body["nodes"]["join_3"]["type"] == "demo"
    assert "timeout_seconds" not in body["nodes"]["join_3"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "body: is not JSON in UTF-8: Expecting property name"),
        ('{"nodes": {"a": {"type": NaN}}}', "body: is not JSON in UTF-8: NaN is not a number"),
        ('{"nodes": {"a": {"type": "x"}, "a": {"type": "y"}}}', "body: contains 'a' twice in one object"),
        ("[" * 100_000, "body: is nested too deeply"),
        ("[]", "nodes: should be an object"),
        ({"nodes": [{"id": "a"}]}, r"nodes\[0\]: should have an id, a program, runtime_s and a list of parents"),
        ({"nodes": [RECORDED["nodes"][1]] * 2}, r"nodes\[1\].id: is 'split_1', the id of an earlier node"),
        (
            {"nodes": [{"id": "a", "program": "p", "runtime_s": 2562, "parents": []}]},
            r"nodes\[0\].runtime_s: is 2562 s at this time_scale; 0 to 800 s are allowed",
        ),
        (
            {"nodes": [{"id": "a", "program": "p", "runtime_s": 1, "parents": ["b"]}]},
            "nodes.a.depends_on: names 'b', which is not a node",
        ),
    ],
)
def test_a_file_that_is_not_a_topology_is_rejected_with_the_reason(
    tmp_path: Path, document: object, words: str
) -> None:
    """The error for a file that is not a topology names the invalid part and the reason."""
    with pytest.raises(TopologyInvalid, match=words):
        read_topology(written(tmp_path, document))


@pytest.mark.parametrize("scale", [0, -1, float("inf"), float("nan")])
def test_a_scale_of_zero_is_rejected(tmp_path: Path, scale: float) -> None:
    """The scale of recorded times must be above zero."""
    with pytest.raises(TopologyInvalid, match="time_scale: should be a number above 0"):
        read_topology(written(tmp_path, RECORDED), time_scale=scale)


@pytest.mark.parametrize("runtime", [-1, 10**400, 1e308])
def test_an_impossible_duration_of_a_node_is_rejected(tmp_path: Path, runtime: float) -> None:
    """A negative time or a time with four hundred digits is refused and never overflows."""
    node = {"id": "a", "program": "p", "runtime_s": runtime, "parents": []}
    with pytest.raises(TopologyInvalid, match=r"nodes\[0\].runtime_s: is "):
        read_topology(written(tmp_path, {"nodes": [node]}))


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), _deeper, max_leaves=8), st.booleans())
def test_any_invalid_body_raises_only_a_validation_error(value: object, as_node: bool) -> None:  # noqa: FBT001 - drawn by Hypothesis
    """Any invalid value raises only the error that names the value."""
    for name in ("nodes", "on_failure") if not as_node else ("type", "trigger_rule", "depends_on", "inputs"):
        body = {"nodes": {"a": task(**{name: value})}} if as_node else {"nodes": {"a": task()}, name: value}
        with contextlib.suppress(TopologyInvalid):
            validate_topology(body)


def test_all_errors_of_a_graph_file_are_reported_at_once() -> None:
    """All errors of a file are reported at once."""
    nodes = {
        "a": task("a", "x"),
        "b": 5,
        "c": task("b", "b", inputs=["a"]),
        "d": task(trigger_rule=["most"]),
        "é": {},
        "e": task(1),
    }
    assert refused({"on_failure": "panic", "nodes": nodes}) == [
        "on_failure: should be one of continue, rollback, stop",
        "nodes.b: should be an object: a task, and what it depends on",
        "nodes.d.trigger_rule: should be one of all_done, all_success, always, none_failed, one_failed, one_success",
        "nodes.'\\xe9'.type: should be the type of its task",
        "nodes.e.depends_on: should be a list of names",
        (
            "nodes: the name '\\xe9' should be letters, digits and _ . : / -, begin with a letter, a digit or _, and be"
            " at most 128 long"
        ),
        "nodes.a.depends_on: names the node itself",
        "nodes.a.depends_on: names 'x', which is not a node",
        "nodes.c.depends_on: names 'b' 2 times",
        "nodes.c.inputs: names 'a', which is not among its depends_on",
    ]


def test_a_nested_topology_is_validated() -> None:
    """Errors in a nested topology name the nested field; a named definition cannot be checked without the server."""
    inner = {"nodes": {"a": task("b")}, "name": "x"}
    target = {"kind": "topology"}
    assert refused({"nodes": {"part": {**task(), "target": target, "payload": inner}}}) == [
        "nodes.part.payload.name: is not a field",
        "nodes.part.payload.nodes.a.depends_on: names 'b', which is not a node",
    ]
    validate_topology({"nodes": {"part": {**task(), "target": {**target, "definition": {"name": "nightly"}}}}})


def test_the_error_for_a_cycle_names_its_nodes() -> None:
    """The error lists the nodes in the cycle, each followed by a node that depends on the listed node."""
    assert refused({"nodes": {"a": task("c"), "b": task("a"), "c": task("b")}})[0] in {
        f"nodes: depend on each other in a cycle: {path}"
        for path in ("a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c")
    }


def test_graphs_above_a_limit_are_rejected_before_they_are_sent() -> None:
    """Too many nodes or dependencies are refused; a cycle of ten thousand nodes is cut and found without recursion."""
    nodes: dict[str, Any] = {f"n{number}": task() for number in range(10_001)}
    assert refused({"nodes": nodes}) == ["nodes: should be 1 to 10000, not 10001"]
    parents = [f"n{number}" for number in range(200)]
    dense = {**{parent: task() for parent in parents}, **{f"c{number}": task(*parents) for number in range(251)}}
    assert refused({"nodes": dense}) == ["nodes: have 50200 dependencies; 50000 are allowed"]
    ring = {f"n{number}": task(f"n{(number - 1) % 10_000}") for number in range(10_000)}
    assert "(9991 more)" in refused({"nodes": ring})[0]


def test_the_client_and_the_domain_accept_the_same_choices() -> None:
    """The client and the domain accept the same choices."""
    assert set(TriggerRule) == topology_validation.RULES
    assert set(OnFailure) == topology_validation.ON_FAILURE


def test_the_client_knows_every_graph_field_of_the_api() -> None:
    """A misspelled field is found without a server, and no valid field is refused."""
    assert frozenset(TopologyCreate.model_fields) == topology_validation.OF_A_TOPOLOGY
    assert frozenset(TopologyNode.model_fields) == topology_validation.OF_A_NODE | {
        *("due_at", "unique", "debounce", "order", "parent_task_id", "after", "group")
    }


@pytest.mark.parametrize(
    "nodes",
    [
        {},
        {"a": task("a")},
        {"a": task("b")},
        {"a": task(), "b": task("a", "a")},
        {"a": task("b"), "b": task("a")},
        {"a b": task()},
        {"a": task(inputs=["a"])},
        {"a": task(), "b": task("a", inputs=["a"])},
    ],
)
def test_the_client_rejects_the_graphs_that_the_domain_rejects(nodes: dict[str, Any]) -> None:
    """The client and the domain accept the same graphs."""
    made = [
        Node(key, TaskSpec("echo"), tuple(n["depends_on"]), inputs=tuple(n.get("inputs", [])))
        for key, n in nodes.items()
    ]
    try:
        validation.validated_graph(made)
    except FieldInvalid:
        assert refused({"nodes": nodes})
    else:
        validate_topology({"nodes": nodes})


def test_a_node_condition_is_validated_without_a_server() -> None:
    """Parents, fields and functions of a condition are checked without a server."""
    conditions = {"when": "parents.b.outcome == 'failed'", "map": {"over": "largest(parents.a.result)"}}
    assert refused({"nodes": {"a": task(), "b": task(), "c": task("a", **conditions)}}) == [
        "nodes.c.when: names 'b', which is not among its depends_on",
        "nodes.c.map.over: calls largest, which is not a function of JMESPath",
    ]


def test_the_graphs_on_the_how_to_page_are_valid(tmp_path: Path) -> None:
    """The files on the how-to page are valid."""
    shown = re.findall(r"^```json\n(.*?)^```", HOW_TO.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    sizes = [len(read_topology(written(tmp_path, each))["nodes"]) for each in shown]
    assert sizes == [5, 3, 3]


@pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="the recorded workflows are not beside the checkout")
def test_every_recorded_workflow_is_a_valid_graph() -> None:
    """Every recorded workflow is a valid graph, and its critical path is shorter than the sum of its durations."""
    paths = sorted(WORKFLOWS.glob("*.json"))
    assert paths
    for path in paths:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        body = read_topology(path, time_scale=0.01)
        nodes = [
            Node(
                key,
                TaskSpec(node["type"]),
                tuple(node.get("depends_on", [])),
                expected_seconds=node["expected_seconds"],
            )
            for key, node in body["nodes"].items()
        ]
        graph = validation.validated_graph(nodes)
        whole = sum(node["runtime_s"] for node in recorded["nodes"]) * 0.01
        assert len(graph.nodes) == len(recorded["nodes"])
        assert sum(graph.expected.values()) == pytest.approx(whole, abs=0.001 * len(nodes))
        assert 0 < critical_path(graph).seconds < whole
