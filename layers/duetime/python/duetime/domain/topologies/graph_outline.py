"""The outline of a graph: all that the end of a node asks of it, read from the payload without checking it again.

Whoever accepts a topology checks its graph with the models of the REST contract, which take long to import and to run.
A worker that ends a node needs neither: what stands in the payload of a topology that has begun has been checked.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.task_spec import TaskSpec
from duetime.domain.times import SECOND
from duetime.domain.topologies.graph import Graph, Node, OnFailure
from duetime.domain.topologies.maps import NodeMap, graph_of_map, is_map
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from collections.abc import Mapping


_KNOWN = 8
"""Graphs that a process remembers: each node of a running topology asks for the run, again and again."""


@lru_cache(_KNOWN)
def outline_of(payload: bytes) -> Graph:
    """The graph of a topology that has begun; of its nodes' templates only the type and the delay."""
    value = json.loads(payload)
    body = graph_of_map(value) if is_map(value) else value
    nodes = tuple(_node(key, node) for key, node in body["nodes"].items())
    on_failure = OnFailure(body.get("on_failure", OnFailure.STOP))
    graph = Graph(nodes, on_failure, body.get("timeout_seconds"), tuple(body.get("outputs", ())))
    return replace(graph, is_map=True, tolerated_failures=value["tolerated_failures"]) if is_map(value) else graph


def _node(key: str, body: Mapping[str, Any]) -> Node:
    delay = int((Decimal(str(body.get("delay_seconds", 0))) * SECOND).to_integral_value(ROUND_CEILING))
    return Node(
        key=key,
        spec=TaskSpec(body["type"], delay=delay or None),
        depends_on=tuple(body.get("depends_on", ())),
        trigger_rule=TriggerRule(body.get("trigger_rule", TriggerRule.ALL_SUCCESS)),
        inputs=tuple(body.get("inputs", ())),
        expected_seconds=body.get("expected_seconds"),
        when=body.get("when"),
        map=NodeMap.of(body.get("map")),
    )
