"""Running a topology again from its failed nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.topologies.node_status import counts_for
from duetime.domain.topologies.trigger_rules import Outcome, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection

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
    (`one_success`) stays.

    Args:
        graph: the topology's.
        statuses: how its nodes have ended.
        chosen: nodes that shall run again in any case, with what depends on them.

    Raises:
        FieldInvalid: a chosen name is no node, or there is nothing to run again.
    """
    for name in chosen:
        if name not in graph.by_key:
            raise FieldInvalid("nodes", f"there is no node {name!a} to run again", FaultCode.NOT_ALLOWED)
    wanted = frozenset(chosen)
    kept: set[str] = set()
    for key in graph.order:
        if key not in wanted and _stands(graph.by_key[key], statuses, kept):
            kept.add(key)
    again = tuple(key for key in graph.order if key not in kept)
    if not again:
        raise FieldInvalid("nodes", "have all succeeded; name those that shall run again")
    return RetryPlan(again, tuple(key for key in graph.order if key in kept))


def kept_by_retry(graph: Graph, statuses: Statuses) -> tuple[str, ...]:
    """The nodes that a retry of what has failed keeps; all of them, if nothing has."""
    try:
        return retry_plan(graph, statuses).kept
    except FieldInvalid:
        # Everything has succeeded, by what was done by hand, or the task did not get to hear of it.
        return graph.order


def _stands(node: Node, statuses: Statuses, kept: Collection[str]) -> bool:
    outcome, counts = statuses[node.key].outcome, counts_for(node, statuses, kept)
    found = verdict(node.trigger_rule, counts)
    if outcome is Outcome.SKIPPED and node.when is not None and found is Verdict.READY:
        # By its condition, which is false again if all that it was about is as it was.
        return counts.is_complete
    return outcome in _MADE_BY and found is _MADE_BY[outcome]
