"""Checks the node names, dependencies and cycles of a task graph. The API and the client share these rules.

A fault names the node or the path of the cycle. The run time is linear in the number of nodes and edges.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from duetime_common.frozen_classes import frozen
from duetime_common.limits import MAX_EDGES, MAX_NODE_KEY_LENGTH, MAX_NODES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

NODE_KEY_PATTERN = rf"[A-Za-z0-9_][A-Za-z0-9_.:/-]{{0,{MAX_NODE_KEY_LENGTH - 1}}}"
_KEY = re.compile(NODE_KEY_PATTERN)
_SHOWN_AT_EACH_END = 5
"""Number of nodes to show at the start and at the end of a long cycle."""


class GraphNode(Protocol):
    """A node in a graph: its name, its parents, and the parents whose results it receives."""

    @property
    def key(self) -> str: ...  # noqa: D102 - see the class
    @property
    def depends_on(self) -> Sequence[str]: ...  # noqa: D102 - same
    @property
    def inputs(self) -> Sequence[str]: ...  # noqa: D102 - same


@frozen
class GraphFault:
    """A fault in a graph.

    Attributes:
        field: path of the fault in the request.
        reason: a sentence without its subject.
        code: the API's code for the fault.
    """

    field: str
    reason: str
    code: str


def graph_faults(nodes: Sequence[GraphNode], outputs: Sequence[str] = ()) -> Iterator[GraphFault]:
    """Yield the faults in a graph's size, names, dependencies, inputs and outputs; `cycle_fault` finds cycles."""
    if not 1 <= len(nodes) <= MAX_NODES:
        yield GraphFault("nodes", f"should be 1 to {MAX_NODES}, not {len(nodes)}", "out_of_range")
    if (edges := sum(len(node.depends_on) for node in nodes)) > MAX_EDGES:
        yield GraphFault("nodes", f"have {edges} dependencies; {MAX_EDGES} are allowed", "out_of_range")
    names = Counter(node.key for node in nodes)
    yield from _name_faults(names)
    for node in nodes:
        yield from _node_faults(node, names)
    yield from _reference_faults("outputs", outputs, names, "not_allowed", "which is not a node")


def _name_faults(names: Mapping[str, int]) -> Iterator[GraphFault]:
    for name, times in names.items():
        if _KEY.fullmatch(name) is None:
            reason = "should be letters, digits and _ . : / -, begin with a letter, a digit or _, and be at most"
            yield GraphFault("nodes", f"the name {_short(name)} {reason} {MAX_NODE_KEY_LENGTH} long", "pattern")
        if times > 1:
            yield GraphFault("nodes", f"name {_short(name)} {times} times", "duplicate")


def _node_faults(node: GraphNode, names: Collection[str]) -> Iterator[GraphFault]:
    place = f"nodes.{node.key}"
    if node.key in node.depends_on:
        yield GraphFault(f"{place}.depends_on", "names the node itself", "conflict")
    yield from _reference_faults(f"{place}.depends_on", node.depends_on, names, "not_allowed", "which is not a node")
    absent = "which is not among its depends_on"
    yield from _reference_faults(f"{place}.inputs", node.inputs, node.depends_on, "conflict", absent)


def _reference_faults(
    field: str, names: Sequence[str], known: Collection[str], code: str, absent: str
) -> Iterator[GraphFault]:
    for name, times in Counter(names).items() if names else ():
        if name not in known:
            yield GraphFault(field, f"names {_short(name)}, {absent}", code)
        if times > 1:
            yield GraphFault(field, f"names {_short(name)} {times} times", "duplicate")


def cycle_fault(parents: Mapping[str, Sequence[str]]) -> GraphFault | None:
    """The fault for a cycle in a graph without other faults; `None` if there is no cycle.

    Args:
        parents: names of the parents of each node.
    """
    cycle = _cycle_in(parents)
    return GraphFault("nodes", f"depend on each other in a cycle: {_shown(cycle)}", "conflict") if cycle else None


def _cycle_in(parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The nodes of a cycle, each followed by a node that depends on it; empty if there is no cycle.

    The result is deterministic: the cycle starts with the node that comes first in the graph.
    """
    left = _without_order(parents)
    if not left:
        return ()
    # Every node in `left` has a parent in `left`, so following parents must lead to a visited node.
    key = next(iter(left))
    walked: dict[str, int] = {}
    while key not in walked:
        walked[key] = len(walked)
        key = next(parent for parent in parents[key] if parent in left)
    cycle = list(walked)[walked[key] :][::-1]
    on_it = frozenset(cycle)
    first = cycle.index(next(name for name in parents if name in on_it))
    return (*cycle[first:], *cycle[:first])


def _without_order(parents: Mapping[str, Sequence[str]]) -> Mapping[str, int]:
    """The nodes on a cycle or downstream of a cycle, in the given order."""
    open_parents = {key: len(names) for key, names in parents.items()}
    children: dict[str, list[str]] = {key: [] for key in parents}
    for key, names in parents.items():
        for name in names:
            children[name].append(key)
    ready = [key for key, count in open_parents.items() if not count]
    for key in ready:
        for child in children[key]:
            open_parents[child] -= 1
            if not open_parents[child]:
                ready.append(child)
    return {key: count for key, count in open_parents.items() if count}


def _short(name: str) -> str:
    """A client's name in printable form, truncated if it is long."""
    cut = name if len(name) <= MAX_NODE_KEY_LENGTH else f"{name[:MAX_NODE_KEY_LENGTH]}…"
    return ascii(cut).replace("\\u2026", "…")


def _shown(cycle: Sequence[str]) -> str:
    """Formats a cycle as `a -> b -> c -> a`, without the middle of a long cycle."""
    path = [*cycle, cycle[0]]
    hidden = len(path) - 2 * _SHOWN_AT_EACH_END
    if hidden > 1:
        path = [*path[:_SHOWN_AT_EACH_END], f"({hidden} more)", *path[-_SHOWN_AT_EACH_END:]]
    return " -> ".join(path)
