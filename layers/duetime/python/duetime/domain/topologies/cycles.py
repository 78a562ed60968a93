"""Finding one cycle in what should be a graph without any, and showing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.topologies.graph import Graph

_SHOWN_AT_EACH_END = 5
"""Nodes of a long cycle that are shown at its beginning, and at its end."""


def cycle_in(graph: Graph) -> tuple[str, ...]:
    """The nodes of one cycle, each followed by one that depends on it; empty if there is none.

    The same graph gives the same cycle, which begins with that node of it which was given first.
    """
    left = graph.by_key.keys() - set(graph.order)
    if not left:
        return ()
    # Every node that is left has a parent that is left: walking up must come back to where it has been.
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
    """A cycle as text: `a -> b -> c -> a`; a long one is cut in its middle."""
    path = [*cycle, cycle[0]]
    hidden = len(path) - 2 * _SHOWN_AT_EACH_END
    if hidden > 1:
        path = [*path[:_SHOWN_AT_EACH_END], f"({hidden} more)", *path[-_SHOWN_AT_EACH_END:]]
    return " -> ".join(path)
