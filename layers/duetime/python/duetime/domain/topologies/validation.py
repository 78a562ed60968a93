"""Validates graphs; errors name the node or the cycle's path.

Validation takes time that is linear in the number of nodes and edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_EXPECTED_SECONDS, MAX_NODES, MAX_TOPOLOGY_LEVELS
from duetime.domain.topologies.graph import Graph, Node, OnFailure
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime_common.conditions import ConditionInvalid, reject_condition
from duetime_common.graph_rules import cycle_fault, graph_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from duetime_common.graph_rules import GraphFault


_CONFLICT = FaultCode.CONFLICT
TOO_MANY_LEVELS = f"nests topologies more than {MAX_TOPOLOGY_LEVELS} levels deep"


def validated_graph(
    nodes: Iterable[Node],
    on_failure: OnFailure = OnFailure.STOP,
    timeout_seconds: int | None = None,
    outputs: tuple[str, ...] = (),
    parameters: Collection[str] | None = (),
) -> Graph:
    """Validates nodes and builds their graph.

    Args:
        nodes: the nodes in the given order.
        on_failure: what happens after a failure.
        timeout_seconds: time limit of a run; `None` for no limit.
        outputs: the nodes whose results are part of the run's result.
        parameters: names of the run's parameters; `None` if conditions were already checked with the parameters.

    Raises:
        FieldInvalid: there are no nodes, too many nodes or too many edges; a name is invalid or duplicate; a node
            depends on an unknown node, twice on the same node, or on itself, directly or through others; a node
            requests a result of a node that it does not depend on; a condition is invalid; a time is out of range; an
            output is not a node, or duplicate; topologies are nested too deeply, or have too many nodes in total.
    """
    given = tuple(nodes)
    for fault in graph_faults(given, outputs):
        raise _refusal(fault)
    for node in given:
        _reject_node(node, parameters)
    if timeout_seconds is not None and not 1 <= timeout_seconds <= MAX_DEADLINE_SECONDS:
        raise FieldInvalid("timeout_seconds", f"should be 1 to {MAX_DEADLINE_SECONDS}", FaultCode.OUT_OF_RANGE)
    graph = Graph(given, on_failure, timeout_seconds, outputs)
    if len(graph.order) < len(given) and (cycle := cycle_fault({node.key: node.depends_on for node in given})):
        raise _refusal(cycle)
    _reject_nesting(graph)
    return graph


def _reject_nesting(graph: Graph) -> None:
    for node in graph.nodes:
        if node.levels >= MAX_TOPOLOGY_LEVELS:
            raise FieldInvalid(f"nodes.{node.key}.payload", TOO_MANY_LEVELS, FaultCode.TOO_DEEP)
    if graph.size > MAX_NODES:
        reason = f"should be 1 to {MAX_NODES}, not {graph.size} with those of sub-topologies"
        raise FieldInvalid("nodes", reason, FaultCode.OUT_OF_RANGE)


def _refusal(fault: GraphFault) -> FieldInvalid:
    return FieldInvalid(fault.field, fault.reason, FaultCode(fault.code))


def _reject_node(node: Node, parameters: Collection[str] | None) -> None:
    def reject(field: str, reason: str, code: FaultCode) -> None:
        raise FieldInvalid(f"nodes.{node.key}.{field}", reason, code)

    _reject_condition(node, parameters, reject)
    _reject_map(node, reject)
    if node.inputs and node.is_topology:
        reject("inputs", "cannot be passed to a topology: its nodes take the results of their own parents", _CONFLICT)
    if node.spec.due_at is not None:
        reason = "cannot be given: a node is due when its trigger rule is met; use delay_seconds for an extra wait"
        reject("due_at", reason, FaultCode.NOT_ALLOWED)
    expected = node.expected_seconds
    if expected is not None and not 0 <= expected <= MAX_EXPECTED_SECONDS:
        reject("expected_seconds", f"should be 0 to {MAX_EXPECTED_SECONDS}", FaultCode.OUT_OF_RANGE)


def _reject_condition(
    node: Node, parameters: Collection[str] | None, reject: Callable[[str, str, FaultCode], None]
) -> None:
    if node.when is None:
        return
    if not node.depends_on or node.trigger_rule is TriggerRule.ALWAYS:
        reject("when", "needs parents that have ended: give depends_on, and a rule other than always", _CONFLICT)
    try:
        reject_condition(node.when, node.depends_on, parameters)
    except ConditionInvalid as fault:
        reject("when", str(fault), FaultCode.PATTERN)


def _reject_map(node: Node, reject: Callable[[str, str, FaultCode], None]) -> None:
    if node.map is None:
        return
    if not node.depends_on or node.trigger_rule is TriggerRule.ALWAYS:
        reject("map", "needs parents that have ended: give depends_on, and a rule other than always", _CONFLICT)
    try:
        reject_condition(node.map.over, node.depends_on)
    except ConditionInvalid as fault:
        reject("map.over", str(fault), FaultCode.PATTERN)
