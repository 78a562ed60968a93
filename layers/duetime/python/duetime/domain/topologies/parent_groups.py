"""How few writes make a parent's end known at its children: small groups of parents are read, not counted.

The outcome of a node is in its record before anything follows it. So whoever of a group of parents ends last reads that
the others have ended, however their ends overlap, and whatever crashes: what follows an end is done again.

A node with no more parents than a group holds is decided by their records alone. With more parents, the last one of a
group counts the whole group in one write; one whose outcome decides the node by itself is counted at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.topologies.node_status import counts_for
from duetime.domain.topologies.trigger_rules import Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.topologies.graph import Node
    from duetime.domain.topologies.node_status import Statuses
    from duetime.domain.topologies.trigger_rules import Outcome


def is_counted(node: Node, size: int) -> bool:
    """Whether a node has more parents than one group of this size holds."""
    return len(node.depends_on) > size


def group_around(node: Node, position: int, size: int) -> Mapping[int, str]:
    """The parents of an edge's group, by their places among the node's parents."""
    first = position - position % size
    return dict(enumerate(node.depends_on[first : first + size], first))


def edges_to_count(node: Node, position: int, statuses: Statuses, size: int) -> Mapping[int, Outcome]:
    """The edges that are counted now that an edge's parent has ended; all of them lie in one chunk.

    Args:
        node: the child.
        position: the edge's.
        statuses: where the parents of the edge's group stand, each read after that parent had ended.
        size: how many parents a group holds.
    """
    ends = {place: statuses[parent].outcome for place, parent in group_around(node, position, size).items()}
    ended = {place: outcome for place, outcome in ends.items() if outcome is not None}
    if len(ended) == len(ends):
        return ended
    own = counts_for(node, statuses, {node.depends_on[position]})
    is_decisive = verdict(node.trigger_rule, own) is not Verdict.WAIT
    return {place: outcome for place, outcome in ended.items() if is_decisive and place == position}


def kept_edges(node: Node, statuses: Statuses, kept: Collection[str], size: int) -> Mapping[int, Outcome]:
    """The edges of groups of which a retry keeps all parents: none of these will end, and count them, any more.

    Args:
        node: a node that runs again.
        statuses: how the parents that are kept have ended.
        kept: the parents that are kept.
        size: how many parents a group holds.
    """
    found: dict[int, Outcome] = {}
    for first in range(0, len(node.depends_on) if is_counted(node, size) else 0, size):
        group = group_around(node, first, size)
        if all(parent in kept for parent in group.values()):
            ends = {place: statuses[parent].outcome for place, parent in group.items()}
            found |= {place: outcome for place, outcome in ends.items() if outcome is not None}
    return found
