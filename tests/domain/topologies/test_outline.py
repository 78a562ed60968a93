from __future__ import annotations

import json

import pytest

from duetime.contract.topologies.decoding import read_graph, read_stored_graph
from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.topologies.graph import outline_of

BODY = {
    "on_failure": "rollback",
    "timeout_seconds": 60,
    "nodes": {
        "a": {"type": "x", "delay_seconds": 0.29, "payload": {"large": True}},
        "b": {"type": "y", "depends_on": ["a"], "inputs": ["a"], "trigger_rule": "all_done", "expected_seconds": 2},
        "c": {"type": "z", "depends_on": ["b", "a"], "delay_seconds": 0, "when": "parents.a.result.ok"},
    },
}


def test_an_outline_has_all_that_a_nodes_follow_up_needs() -> None:
    """An outline has all that is needed for a node's follow-up, without the nodes' contents."""
    for body in (BODY, {"nodes": BODY["nodes"]}):
        payload = json.dumps(body).encode()
        outline, graph = outline_of(payload), read_graph(payload)
        assert (outline.on_failure, outline.timeout_seconds) == (graph.on_failure, graph.timeout_seconds)
        assert outline.edges_out == graph.edges_out
        for one, other in zip(outline.nodes, graph.nodes, strict=True):
            assert (one.key, one.depends_on, one.trigger_rule, one.inputs) == (
                other.key,
                other.depends_on,
                other.trigger_rule,
                other.inputs,
            )
            assert (one.spec.type, one.spec.delay or 0) == (other.spec.type, other.spec.delay or 0)
            assert one.spec.payload == TaskSpec("x").payload
            assert (one.expected_seconds, one.when) == (other.expected_seconds, other.when)


def test_a_stored_graph_is_checked_again_with_the_same_messages() -> None:
    """A stored graph is checked again, except for parameters, with the same messages."""
    payload = json.dumps(BODY).encode()
    assert read_stored_graph(payload) == read_graph(payload)
    with pytest.raises(FieldInvalid, match="is not a known field"):
        read_stored_graph(payload.replace(b"trigger_rule", b"rule"))


@pytest.mark.parametrize("payload", [b"[]", b"{}", b'{"nodes": 5}', b'{"nodes": {"a": 5}}', b"{"])
def test_an_invalid_graph_is_rejected_when_stored_and_when_read(payload: bytes) -> None:
    """An invalid graph is refused with a field error when it is stored and when it is read."""
    for read in (read_graph, read_stored_graph):
        with pytest.raises(FieldInvalid):
            read(payload)


def test_a_process_reads_the_outline_of_a_graph_once() -> None:
    """All nodes of a graph share one outline, which is parsed only once."""
    text = json.dumps({"nodes": {"a": {"type": "report"}}})
    assert outline_of(text.encode()) is outline_of(text.encode())
    assert outline_of(text.replace("report", "other").encode()).nodes[0].spec.type == "other"
