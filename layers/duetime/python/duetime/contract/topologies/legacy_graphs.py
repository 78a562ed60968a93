"""Graphs that were stored before API 1.0, in its words: what a user gave as a payload is never rewritten."""

from __future__ import annotations

from duetime.contract.tasks.legacy_bodies import renamed, task_fields

_OF_A_GRAPH = {"deadline_seconds": "timeout_seconds"}
_OF_A_NODE = {"rule": "trigger_rule"}


def in_present_words(value: object) -> object:
    """A stored graph with its fields under their present names; anything else is left as it is."""
    graph = renamed(value, _OF_A_GRAPH)
    if isinstance(graph, dict) and isinstance(nodes := graph.get("nodes"), dict):
        return {**graph, "nodes": {key: renamed(task_fields(node), _OF_A_NODE) for key, node in nodes.items()}}
    return graph
