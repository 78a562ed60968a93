"""Running a topology again, from its failed nodes or from chosen ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.topologies.node_status import counts_for
from duetime.domain.topologies.trigger_rules import Outcome, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.node_status import Statuses

_MADE_BY = {Outcome.SUCCEEDED: Verdict.READY, Outcome.SKIPPED: Verdict.SKIPPED}
"""The verdict that a node's rule must have come to for the node to have ended so."""


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """What a retry does, parents before children.

    Attributes:
        again: nodes that run again, each as a new task.
        kept: nodes that stay as they ended, with their tasks and results.
    """

    again: tuple[str, ...]
    kept: tuple[str, ...]


def retry_plan(graph: Graph, statuses: Statuses, chosen: Collection[str] = ()) -> RetryPlan:
    """What runs again when all nodes have ended.

    Kept is a node that succeeded or was skipped, and whose rule says the same when only kept parents count. So
    everything runs again that did not succeed, and of what succeeded only that which had waited for a failure: what
    tidies up (`all_done`) or steps in (`one_failed`) after a node that runs again. What one kept parent sufficed for
    (`one_success`) stays, unless it depends on a chosen node.

    Args:
        graph: the topology's.
        statuses: how its nodes have ended.
        chosen: nodes that run again in any case, with all that depends on them.

    Raises:
        FieldInvalid: a chosen name is no node.
    """
    require_nodes(graph, chosen)
    wanted = _with_descendants(graph, chosen)
    kept: set[str] = set()
    for key in graph.order:
        if key not in wanted and _stands(graph.by_key[key], statuses, kept):
            kept.add(key)
    again = tuple(key for key in graph.order if key not in kept)
    return RetryPlan(again, tuple(key for key in graph.order if key in kept))


def require_nodes(graph: Graph, names: Iterable[str]) -> None:
    """Refuse names that are no nodes.

    Raises:
        FieldInvalid: one is not.
    """
    for name in names:
        if name not in graph.by_key:
            raise FieldInvalid("nodes", f"there is no node {name!a} to run again", FaultCode.NOT_ALLOWED)


def _with_descendants(graph: Graph, chosen: Collection[str]) -> frozenset[str]:
    """Nodes, and all that depend on them, directly or not."""
    wanted = set(chosen)
    for key in graph.order if wanted else ():
        if key in wanted:
            wanted.update(edge.child for edge in graph.edges_out[key])
    return frozenset(wanted)


def _stands(node: Node, statuses: Statuses, kept: Collection[str]) -> bool:
    outcome, counts = statuses[node.key].outcome, counts_for(node, statuses, kept)
    found = verdict(node.trigger_rule, counts)
    if outcome is Outcome.SKIPPED and node.when is not None and found is Verdict.READY:
        # By its condition, which is false again if all that it was about is as it was.
        return counts.is_complete
    return outcome in _MADE_BY and found is _MADE_BY[outcome]
