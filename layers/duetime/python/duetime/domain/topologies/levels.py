"""Levels of a graph: sets of nodes that do not depend on each other, in order of dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.states import State

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.node_status import NodeStatus, Statuses


def levels(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """The nodes by their longest way from the top: each level's parents lie in levels before it."""
    level: dict[str, int] = {}
    for key in graph.order:
        level[key] = max((level[parent] + 1 for parent in graph.by_key[key].depends_on), default=0)
    return _grouped(level)


def reverse_levels(graph: Graph, among: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Some nodes, those first from which no way leads down to another of them.

    A way counts that leads through other nodes as well.
    """
    below: dict[str, int] = {}
    for key in reversed(graph.order):
        below[key] = max((below[e.child] + (e.child in among) for e in graph.edges_out[key]), default=0)
    return _grouped({key: level for key, level in below.items() if key in among})


def to_be_undone(status: NodeStatus) -> bool:
    """Whether a rollback of the run rolls this node back.

    What succeeded is undone, and what failed after it had begun, because it may have had effects. What never began has
    none, what was rolled back has none left, and one whose rollback failed is left to a person.
    """
    if status.state is State.SUCCEEDED:
        return not status.rollback_failed
    return status.state is State.FAILED and status.started_at is not None and not status.rollback_failed


def rollback_levels(graph: Graph, statuses: Statuses) -> tuple[tuple[str, ...], ...]:
    """What a rollback of the run undoes, level by level: before a node, everything that depends on it."""
    return reverse_levels(graph, {key for key, status in statuses.items() if to_be_undone(status)})


def undone_next(graph: Graph, statuses: Statuses) -> tuple[str, ...]:
    """The nodes whose rollback may start now: everything that depends on them is undone already."""
    rolling_back = {key for key, status in statuses.items() if status.state is State.ROLLING_BACK}
    wanted = {key for key, status in statuses.items() if to_be_undone(status)}
    first = next(iter(reverse_levels(graph, rolling_back | wanted)), ())
    return tuple(key for key in first if key in wanted)


def _grouped(level_of: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    groups: dict[int, list[str]] = {}
    for key, level in level_of.items():
        groups.setdefault(level, []).append(key)
    return tuple(tuple(groups[level]) for level in sorted(groups))
