"""Validates graphs; errors name the node or the path of a cycle. Linear in nodes and edges."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import (
    MAX_DEADLINE_SECONDS,
    MAX_EDGES,
    MAX_EXPECTED_SECONDS,
    MAX_NODE_KEY_LENGTH,
    MAX_NODES,
    MAX_TOPOLOGY_LEVELS,
)
from duetime.domain.topologies.conditions import ConditionInvalid, reject_condition
from duetime.domain.topologies.graph import Graph, Node, OnFailure
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence


NODE_KEY_PATTERN = rf"[A-Za-z0-9_][A-Za-z0-9_.:/-]{{0,{MAX_NODE_KEY_LENGTH - 1}}}"
_KEY = re.compile(NODE_KEY_PATTERN)
_CONFLICT = FaultCode.CONFLICT
TOO_MANY_LEVELS = f"makes more than {MAX_TOPOLOGY_LEVELS} levels of topologies within each other"


def validated_graph(
    nodes: Iterable[Node],
    on_failure: OnFailure = OnFailure.STOP,
    timeout_seconds: int | None = None,
    outputs: tuple[str, ...] = (),
    parameters: Collection[str] | None = (),
) -> Graph:
    """Validates nodes and builds their graph.

    Args:
        nodes: in the order given.
        on_failure: what happens after a failure.
        timeout_seconds: time limit of a run; `None` for no limit.
        outputs: the nodes whose results are part of the run's result.
        parameters: names of the run's parameters; `None` if conditions were checked with them before.

    Raises:
        FieldInvalid: there are no nodes, too many nodes or too many edges; a name is invalid or duplicate; a node
            depends on an unknown node, on itself, twice on the same node, or on itself through others; it requests a
            result of a node that it does not depend on; a condition is invalid; a time is out of range; an output is
            not a node, or duplicate; topologies are nested too deeply, or have too many nodes in total.
    """
    given = tuple(nodes)
    _reject_size(given)
    known = _names(given)
    for node in given:
        _reject_node(node, known, parameters)
    if timeout_seconds is not None and not 1 <= timeout_seconds <= MAX_DEADLINE_SECONDS:
        raise FieldInvalid("timeout_seconds", f"should be 1 to {MAX_DEADLINE_SECONDS}", FaultCode.OUT_OF_RANGE)
    _reject_outputs(outputs, known)
    graph = Graph(given, on_failure, timeout_seconds, outputs)
    if cycle := cycle_in(graph):
        raise FieldInvalid("nodes", f"depend on each other in a cycle: {shown(cycle)}", FaultCode.CONFLICT)
    _reject_nesting(graph)
    return graph


def _reject_size(nodes: tuple[Node, ...]) -> None:
    if not 1 <= len(nodes) <= MAX_NODES:
        raise FieldInvalid("nodes", f"should be 1 to {MAX_NODES}, not {len(nodes)}", FaultCode.OUT_OF_RANGE)
    if (edges := sum(len(node.depends_on) for node in nodes)) > MAX_EDGES:
        raise FieldInvalid("nodes", f"have {edges} dependencies; {MAX_EDGES} are allowed", FaultCode.OUT_OF_RANGE)


def _reject_nesting(graph: Graph) -> None:
    for node in graph.nodes:
        if node.levels >= MAX_TOPOLOGY_LEVELS:
            raise FieldInvalid(f"nodes.{node.key}.payload", TOO_MANY_LEVELS, FaultCode.TOO_DEEP)
    if graph.size > MAX_NODES:
        reason = f"should be 1 to {MAX_NODES}, not {graph.size} with those of sub-topologies"
        raise FieldInvalid("nodes", reason, FaultCode.OUT_OF_RANGE)


def _names(nodes: tuple[Node, ...]) -> Collection[str]:
    names = Counter(node.key for node in nodes)
    for name, times in names.items():
        if _KEY.fullmatch(name) is None:
            reason = "should be letters, digits and _ . : / -, begin with a letter, a digit or _, and be at most"
            text = f"the name {_short(name)} {reason} {MAX_NODE_KEY_LENGTH} long"
            raise FieldInvalid("nodes", text, FaultCode.PATTERN)
        if times > 1:
            raise FieldInvalid("nodes", f"name {name!r} {times} times", FaultCode.DUPLICATE)
    return names


def _reject_outputs(outputs: tuple[str, ...], known: Collection[str]) -> None:
    for name, times in Counter(outputs).items():
        if name not in known:
            raise FieldInvalid("outputs", f"names {_short(name)}, which is not a node", FaultCode.NOT_ALLOWED)
        if times > 1:
            raise FieldInvalid("outputs", f"names {name!r} {times} times", FaultCode.DUPLICATE)


def _reject_node(node: Node, known: Collection[str], parameters: Collection[str] | None) -> None:
    def reject(field: str, reason: str, code: FaultCode) -> None:
        raise FieldInvalid(f"nodes.{node.key}.{field}", reason, code)

    _reject_parents(node, known, reject)
    for name, times in Counter(node.inputs).items():
        if name not in node.depends_on:
            reject("inputs", f"names {_short(name)}, which is not among its depends_on", FaultCode.CONFLICT)
        if times > 1:
            reject("inputs", f"names {name!r} {times} times", FaultCode.DUPLICATE)
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


def _reject_parents(node: Node, known: Collection[str], reject: Callable[[str, str, FaultCode], None]) -> None:
    for name, times in Counter(node.depends_on).items():
        if name == node.key:
            reject("depends_on", "names the node itself", FaultCode.CONFLICT)
        if name not in known:
            reject("depends_on", f"names {_short(name)}, which is not a node", FaultCode.NOT_ALLOWED)
        if times > 1:
            reject("depends_on", f"names {name!r} {times} times", FaultCode.DUPLICATE)


def _reject_condition(
    node: Node, parameters: Collection[str] | None, reject: Callable[[str, str, FaultCode], None]
) -> None:
    if node.when is None:
        return
    if not node.depends_on or node.trigger_rule is TriggerRule.ALWAYS:
        reject("when", "is about parents that have ended: give depends_on, and another rule than always", _CONFLICT)
    try:
        reject_condition(node.when, node.depends_on, parameters)
    except ConditionInvalid as fault:
        reject("when", str(fault), FaultCode.PATTERN)


def _reject_map(node: Node, reject: Callable[[str, str, FaultCode], None]) -> None:
    if node.map is None:
        return
    if not node.depends_on or node.trigger_rule is TriggerRule.ALWAYS:
        reject("map", "is about parents that have ended: give depends_on, and another rule than always", _CONFLICT)
    try:
        reject_condition(node.map.over, node.depends_on)
    except ConditionInvalid as fault:
        reject("map.over", str(fault), FaultCode.PATTERN)


def _short(name: str) -> str:
    """A client's name in printable form, truncated if it is long."""
    cut = name if len(name) <= MAX_NODE_KEY_LENGTH else f"{name[:MAX_NODE_KEY_LENGTH]}…"
    return ascii(cut).replace("\\u2026", "…")


_SHOWN_AT_EACH_END = 5
"""Nodes of a long cycle that are shown at its start, and at its end."""


def cycle_in(graph: Graph) -> tuple[str, ...]:
    """The nodes of a cycle, each followed by one that depends on it; empty if there is none.

    The result is deterministic. The cycle starts with its node that comes first in the graph.
    """
    left = graph.by_key.keys() - set(graph.order)
    if not left:
        return ()
    # Every remaining node has a remaining parent, so following parents must lead to a visited node.
    key = next(node.key for node in graph.nodes if node.key in left)
    walked: dict[str, int] = {}
    while key not in walked:
        walked[key] = len(walked)
        key = next(parent for parent in graph.by_key[key].depends_on if parent in left)
    upwards = list(walked)[walked[key] :]
    cycle = upwards[::-1]
    node_refs = set(cycle)
    first = cycle.index(next(node.key for node in graph.nodes if node.key in node_refs))
    return (*cycle[first:], *cycle[:first])


def shown(cycle: Sequence[str]) -> str:
    """Formats a cycle: `a -> b -> c -> a`; the middle of a long one is left out."""
    path = [*cycle, cycle[0]]
    hidden = len(path) - 2 * _SHOWN_AT_EACH_END
    if hidden > 1:
        path = [*path[:_SHOWN_AT_EACH_END], f"({hidden} more)", *path[-_SHOWN_AT_EACH_END:]]
    return " -> ".join(path)
