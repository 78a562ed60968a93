"""Maps are stored as JSON and run as graphs."""

from __future__ import annotations

import json

import pytest

from duetime.domain.tasks.attempt_results import Failed, Succeeded
from duetime.domain.topologies.graph import outline_of
from duetime.domain.topologies.maps import MapFailed, NodeMap, ending_without_items, graph_of_map, map_payload

NODE = {"type": "echo", "payload": ["<duetime.item>", "<<duetime.item>", "<duetime.task-id>"], "depends_on": ["list"]}


def test_items_of_a_map_are_distributed_to_lanes_by_index() -> None:
    """Items are distributed to lanes by index, and the map's own fields are not in its nodes."""
    payload = map_payload(NodeMap("parents", max_parallel=2), NODE, ["a", {"b": 1}, "<duetime.node>"])
    nodes = graph_of_map(json.loads(payload))["nodes"]
    assert {key: node.get("depends_on", []) for key, node in nodes.items()} == {"0": [], "1": [], "2": ["0"]}
    assert nodes["1"]["payload"] == [{"b": 1}, "<<duetime.item>", "<duetime.task-id>"]
    assert nodes["2"]["payload"][0] == "<<duetime.node>"
    assert outline_of(payload).order == ("0", "1", "2")


def test_a_map_with_an_empty_list_succeeds() -> None:
    """A map with an empty list succeeds, and a map without a list fails."""
    assert ending_without_items(map_payload(NodeMap("parents"), NODE, [])) == Succeeded(b"[]")
    unknown = ending_without_items(map_payload(NodeMap("parents"), {}, None))
    assert isinstance(unknown, Failed)
    assert unknown.error.type == "MapFailed"
    assert ending_without_items(map_payload(NodeMap("parents"), NODE, [1])) is None


@pytest.mark.parametrize(
    ("template", "items"),
    [
        ({"type": "echo", "payload": "<duetime.item>" * 10_000}, ["x" * 200_000]),
        ({"type": "echo", "payload": "x" * 100_000}, [0] * 10_000),
    ],
)
def test_a_map_with_too_large_nodes_is_rejected_before_creation(template: dict[str, str], items: list[object]) -> None:
    """A map whose nodes would be too large together is refused before the nodes are created."""
    with pytest.raises(MapFailed, match="33554432 are allowed"):
        map_payload(NodeMap("parents"), template, items)
    assert map_payload(NodeMap("parents"), {"type": "echo", "payload": "x" * 3_000}, [0] * 10_000)


def test_a_map_that_is_too_large_or_invalid_json_is_rejected() -> None:
    """A map that is too large, or not valid JSON, is refused."""
    for items in (["x" * 2_100_000], [float("inf")]):
        with pytest.raises(MapFailed):
            map_payload(NodeMap("parents"), NODE, items)
