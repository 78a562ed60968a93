"""Tests that the documented topology schemas match the code."""

from __future__ import annotations

from tests.contract.test_openapi import SCHEMAS, fits


def test_a_node_has_no_due_time_in_the_document() -> None:
    """A node has no due time in the document, because a node is due when its trigger rule is met."""
    properties = SCHEMAS["TopologyNodeInput"]["properties"]
    assert not {"at", "due_at"} & properties.keys()
    fields = {"delay_seconds", "depends_on", "trigger_rule", "inputs", "when", "map", "expected_seconds"}
    assert fields <= properties.keys()
    assert fits("TopologyCreate", {"nodes": {"a": {"type": "x", "trigger_rule": "all_done"}}, "timeout_seconds": 60})
    assert not fits("TopologyCreate", {"nodes": {"a": {"type": "x", "at": "2030-01-01T00:00:00Z"}}})
