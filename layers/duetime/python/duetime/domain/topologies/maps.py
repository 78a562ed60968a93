"""Implements maps; a map is a topology with one node for each item of a list.

The list is known when the parents have ended. The payload of a map's task contains the items, and one node as its user
wrote it. The payload determines the map's run completely, so it always leads to the same graph.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from duetime.domain.limits import MAX_GRAPH_BYTES, MAX_MAP_BYTES
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.placeholders import PREFIX
from duetime.domain.topologies.parameters import Replacement, compact_json
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.attempt_results import Ending

MAP, ITEMS = "map", "items"
_PLACEHOLDER = re.compile(rf"(<?){re.escape(PREFIX)}(item|index)>")
_OF_THE_MAP = frozenset({MAP, "depends_on", "trigger_rule", "inputs", "when", "expected_seconds", "delay_seconds"})
"""Node fields that apply to the entire map, not to its items."""
_ITEM = f"{PREFIX}item>".encode()
_SAMPLE: Mapping[str, Any] = {"item": "x", "index": 0}
_EMPTY, _UNKNOWN = b'{"items":[],', b'{"items":null,'
_ITEMS_UNKNOWN = "its items are not known: retry its topology"


class MapFailed(Exception):
    """The list of items is missing or too long; the message gives the reason."""


@frozen
class NodeMap:
    """The map options of a node.

    Attributes:
        over: a JMESPath expression over the parents, as in a condition, that returns the list of items.
        max_parallel: maximum number of concurrent items; `None` for all items.
        tolerated_failures: number of items that may fail before the map fails.
    """

    over: str
    max_parallel: int | None = None
    tolerated_failures: int = 0

    @classmethod
    def of(cls, written: Mapping[str, Any] | None) -> NodeMap | None:
        """Parses the map options of a node."""
        if written is None:
            return None
        return cls(written["over"], written.get("max_parallel"), written.get("tolerated_failures") or 0)


def map_payload(node_map: NodeMap, node: Mapping[str, Any], items: Sequence[Any] | None) -> bytes:
    """The payload of a map's task; the same items lead to the same payload.

    Args:
        node_map: the map.
        node: the node as its user wrote it.
        items: the list of items; `None` while they are unknown.

    Raises:
        MapFailed: the map or its nodes are too large, or an item contains an infinite number.
    """
    template = {name: value for name, value in node.items() if name not in _OF_THE_MAP}
    rest = {"max_parallel": node_map.max_parallel, "node": template, "tolerated_failures": node_map.tolerated_failures}
    try:
        payload = compact_json({ITEMS: items, **rest})
    except ValueError as error:
        raise MapFailed("the items contain a number that JSON cannot represent") from error
    if len(payload) > MAX_GRAPH_BYTES:
        raise MapFailed(f"the items and their node have {len(payload)} bytes; {MAX_GRAPH_BYTES} are allowed")
    if items and (size := _nodes_size(template, items)) > MAX_MAP_BYTES:
        raise MapFailed(f"the nodes with their items have up to {size} bytes; {MAX_MAP_BYTES} are allowed")
    return payload


def _nodes_size(template: Mapping[str, Any], items: Sequence[Any]) -> int:
    """Maximum size of the nodes with their items inserted, in bytes of JSON.

    An item that is encoded in a URL can be longer.
    """
    node = compact_json(template)
    return len(node) * len(items) + node.count(_ITEM) * len(compact_json(items))


def ending_without_items(payload: bytes) -> Ending | None:
    """The result of an attempt of a map without items; `None` for any other topology."""
    if payload.startswith(_EMPTY):
        return Succeeded(b"[]")
    if payload.startswith(_UNKNOWN):
        return failure("MapFailed", _ITEMS_UNKNOWN, retriable=False)
    return None


def node_count(payload: bytes) -> int:
    """The number of a topology's nodes, or of a map's items, according to its task's payload."""
    document = json.loads(payload)
    return len(document[ITEMS] if is_map(document) else document["nodes"])


def is_map(payload: object) -> bool:
    """Whether the parsed payload of a topology's task is a map, not a user's graph."""
    return isinstance(payload, dict) and ITEMS in payload


def graph_of_map(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The graph of a map's run, as JSON, in which nodes are named after the index of their item, from 0.

    With `max_parallel`, each node depends on the node that is `max_parallel` places before it, regardless of that
    node's outcome.
    """
    limit, template = payload["max_parallel"], payload["node"]
    nodes = {}
    for index, item in enumerate(payload[ITEMS] or ()):
        node = _with_item(template, item, index)
        if limit is not None and index >= limit:
            node |= {"depends_on": [str(index - limit)], "trigger_rule": "all_done"}
        nodes[str(index)] = node
    return {"nodes": nodes, "on_failure": "stop"}


def with_sample_items(graph: object) -> object:
    """A graph for validation, as JSON, in which each map has a sample item instead of its items."""
    nodes = graph.get("nodes") if isinstance(graph, dict) else None
    if not isinstance(graph, dict) or not isinstance(nodes, dict):
        return graph
    return {**graph, "nodes": {key: _with_sample(node) for key, node in nodes.items()}}


def _with_sample(node: Any) -> Any:  # noqa: ANN401 - any JSON
    is_of_a_map = isinstance(node, dict) and node.get(MAP) is not None
    return Replacement(_PLACEHOLDER, PREFIX, _SAMPLE).in_node(node) if is_of_a_map else node


def _with_item(template: Mapping[str, Any], item: Any, index: int) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    values = {"item": _escaped(item), "index": index}
    return dict(Replacement(_PLACEHOLDER, PREFIX, values).in_node(template))


def _escaped(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Escapes placeholders in a value's strings, so that attempts do not replace them."""
    if isinstance(value, str):
        return value.replace(PREFIX, f"<{PREFIX}")
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    if isinstance(value, dict):
        return {key: _escaped(each) for key, each in value.items()}
    return value
