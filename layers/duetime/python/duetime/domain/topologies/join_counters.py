"""Counting down a node's parents so that crashes, repeats and any order come to the same count.

Only nodes with more parents than a group are counted (`parent_groups`), a group at a time.

An edge is a number: the parent's place among the child's parents. A chunk keeps, for a hundred edges, the numbers of
those that have arrived, by outcome: a set, so that an edge which arrives again changes nothing, and one write both
counts and tells the count. A node with few parents has one chunk, and that is all there is to ask.

With more, each chunk reports its counts to the node's tally, which keeps the fullest report of each chunk. A report is
the same whenever it is made from the same edges, and a fuller one wins over an emptier one, so reports too may be
repeated and may come in any order. A chunk reports when it is complete, and once before that if its own edges already
decide the node.

Whoever writes an edge goes on to report and to decide each time, the repeats included: what a crash left undone, the
repeat does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import EDGES_PER_CHUNK
from duetime.domain.topologies.node_status import counts_for
from duetime.domain.topologies.trigger_rules import Counts, Outcome, TriggerRule, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.topologies.graph import Node
    from duetime.domain.topologies.node_status import Statuses


def chunk_of(position: int) -> int:
    """The chunk that an edge is counted in."""
    return position // EDGES_PER_CHUNK


def chunks_for(edges: int) -> int:
    """How many chunks a node with so many edges has."""
    return -(-edges // EDGES_PER_CHUNK)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some of a node's edges, and which of them have arrived as what.

    Attributes:
        edges: how many belong to it.
    """

    edges: int
    succeeded: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    skipped: frozenset[int] = frozenset()

    @classmethod
    def numbered(cls, number: int, edges: int) -> Chunk:
        """A node's chunk of this number, none of its edges arrived.

        Args:
            number: from 0.
            edges: how many the node has in all.
        """
        return cls(min(EDGES_PER_CHUNK, edges - number * EDGES_PER_CHUNK))

    def has(self, position: int) -> bool:
        """Whether an edge has arrived."""
        return position in self.succeeded or position in self.failed or position in self.skipped

    def with_edge(self, position: int, outcome: Outcome) -> Chunk:
        """The chunk once an edge has arrived; each counts once, as what its parent ended as first."""
        if self.has(position):
            return self
        match outcome:
            case Outcome.SUCCEEDED:
                return replace(self, succeeded=self.succeeded | {position})
            case Outcome.FAILED:
                return replace(self, failed=self.failed | {position})
            case Outcome.SKIPPED:
                return replace(self, skipped=self.skipped | {position})

    def with_edges(self, arrived: Mapping[int, Outcome]) -> Chunk:
        """The chunk once these edges have arrived."""
        chunk = self
        for position, outcome in arrived.items():
            chunk = chunk.with_edge(position, outcome)
        return chunk

    @property
    def counts(self) -> Counts:
        """How many of its edges have arrived, and as what."""
        return Counts(self.edges, len(self.succeeded), len(self.failed), len(self.skipped))


@dataclass(frozen=True, slots=True)
class JoinCount:
    """What the chunks of one node have reported.

    Attributes:
        edges: how many the node has in all.
        reports: the fullest counts of each chunk that has reported.
    """

    edges: int
    reports: Mapping[int, Counts] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """How many of the node's parents have ended, as far as it has been told."""
        reports = self.reports.values()
        return Counts(
            self.edges,
            sum(report.succeeded for report in reports),
            sum(report.failed for report in reports),
            sum(report.skipped for report in reports),
        )


def reports(rule: TriggerRule, edges: int, before: Chunk, after: Chunk) -> bool:
    """Whether a chunk is to report now that an edge has arrived, or has arrived again.

    Args:
        rule: the node's.
        edges: how many the node has in all.
        before: the chunk without the edge; the same as `after` if the edge had arrived before.
        after: the chunk with it.
    """
    if after.counts.is_complete:
        return True
    return _decides(rule, edges, after) and (before == after or not _decides(rule, edges, before))


def _decides(rule: TriggerRule, edges: int, chunk: Chunk) -> bool:
    """Whether a chunk's own edges are enough for a final verdict on the node."""
    return verdict(rule, replace(chunk.counts, total=edges)) is not Verdict.WAIT


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
