"""Graphs that were stored before API 1.0, in its words: what a user gave as a payload is never rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contract.tasks.bodies import Lock
from duetime.contract.topologies.bodies import TopologyGraph, TopologyNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.tasks.bodies import Body

_OF_A_GRAPH = {"deadline_seconds": "timeout_seconds"}
_OF_A_NODE = {
    "rule": "trigger_rule",
    "deadline_seconds": "notify_within_seconds",
    "rollback": "rollback_on_failure",
}
_OF_A_LOCK = {"limit": "max_holders"}


def in_present_words(value: object) -> object:
    """A stored graph with its fields under their present names; anything else is left as it is."""
    if not isinstance(value, dict):
        return value
    graph = _renamed(value, _OF_A_GRAPH, TopologyGraph)
    if isinstance(nodes := graph.get("nodes"), dict):
        graph["nodes"] = {key: _node(node) for key, node in nodes.items()}
    return graph


def _node(value: object) -> object:
    if not isinstance(value, dict):
        return value
    node = _renamed(value, _OF_A_NODE, TopologyNode)
    if isinstance(lock := node.get("lock"), dict):
        node["lock"] = _renamed(lock, _OF_A_LOCK, Lock)
    return node


def _renamed(value: Mapping[str, Any], names: Mapping[str, str], model: type[Body]) -> dict[str, Any]:
    known = {old: new for old, new in names.items() if new in model.model_fields}
    return {known.get(name, name): each for name, each in value.items()}
