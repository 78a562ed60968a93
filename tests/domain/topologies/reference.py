"""A plain executor of graphs that looks at all nodes in each step, without counting edges or using chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.topologies.graph import OnFailure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.topologies.graph import Graph, Node

Ends: TypeAlias = dict[str, str]
"""How each node ended: `succeeded`, `failed`, `skipped`, `upstream_failed`, `stopped` or `rolled_back`."""
_BAD = {"failed", "upstream_failed", "stopped"}


def executed(graph: Graph, dispositions: Mapping[str, bool], priorities: Sequence[str]) -> Ends:
    """Run a graph.

    Args:
        graph: the graph.
        dispositions: the nodes that succeed if they run.
        priorities: the order in which running nodes end.
    """
    running: set[str] = set()
    ends: Ends = {}
    stopped = False
    while True:
        if not stopped:
            _look(graph, running, ends)
        if not running:
            break
        key = next(key for key in priorities if key in running)
        running.remove(key)
        ends[key] = "succeeded" if dispositions[key] else "failed"
        if ends[key] == "failed" and graph.on_failure is not OnFailure.CONTINUE:
            stopped = True
            ends |= {key: "stopped" for key in graph.by_key if key not in ends and key not in running}
    if stopped and graph.on_failure is OnFailure.ROLLBACK:
        ends |= {key: "rolled_back" for key, end in ends.items() if end in {"succeeded", "failed"}}
    return ends


def _look(graph: Graph, running: set[str], ends: Ends) -> None:
    """Start nodes, or end nodes that can never start, until no other node changes."""
    changed = True
    while changed:
        changed = False
        for node in graph.nodes:
            if node.key in running or node.key in ends:
                continue
            seen = [ends[parent] for parent in node.depends_on if parent in ends]
            if _may_start(node, seen):
                running.add(node.key)
                changed = True
            elif _never_starts(node, seen):
                ends[node.key] = "upstream_failed" if _BAD & set(seen) else "skipped"
                changed = True


def _may_start(node: Node, seen: list[str]) -> bool:
    bad = [end for end in seen if end in _BAD]
    all_seen = len(seen) == len(node.depends_on)
    return (
        not node.depends_on
        or {
            "all_success": all_seen and set(seen) == {"succeeded"},
            "all_done": all_seen,
            "one_success": "succeeded" in seen,
            "one_failed": bool(bad),
            "none_failed": all_seen and not bad,
            "always": True,
        }[node.trigger_rule.value]
    )


def _never_starts(node: Node, seen: list[str]) -> bool:
    if len(seen) == len(node.depends_on):
        return True
    return node.trigger_rule.value in {"all_success", "none_failed"} and bool(_BAD & set(seen))
