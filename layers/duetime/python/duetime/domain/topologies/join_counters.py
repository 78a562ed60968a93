"""Counts a node's ended parents correctly despite crashes and repetitions, in any order.

Parents are counted only for nodes with more parents than fit into one group (`parent_groups`); the parents in a group
are counted together.

An edge is identified by the parent's index among the child's parents, and arrives when the parent has ended. A chunk
stores which of a hundred edges have arrived, in one set per outcome. Repeated arrivals therefore change nothing, and a
single write both adds an edge and returns the count. A node with few parents has only one chunk.

With more parents, each chunk reports its counts to the node's tally, which keeps the report with the most edges from
each chunk. Reports may be repeated and may arrive in any order, because a report depends only on the arrived edges and
the fullest report is kept. A chunk reports when all its edges have arrived, and once earlier if its own edges are
enough to decide about the node. Each write of an edge, even if repeated, is followed by the report and the decision, so
repeating the write completes the work that a crash interrupted.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import EDGES_PER_CHUNK
from duetime.domain.topologies.node_status import Statuses, counts_for
from duetime.domain.topologies.trigger_rules import Counts, Outcome, TriggerRule, Verdict, verdict
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.topologies.graph import Node


def chunk_of(position: int) -> int:
    """Number of the chunk that contains an edge."""
    return position // EDGES_PER_CHUNK


def chunks_for(edges: int) -> int:
    """Number of chunks of a node with this many edges."""
    return -(-edges // EDGES_PER_CHUNK)


@frozen
class Chunk:
    """A group of a node's edges, with the outcomes of the edges that have arrived.

    Attributes:
        edges: number of edges in the chunk.
    """

    edges: int
    succeeded: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    skipped: frozenset[int] = frozenset()

    @classmethod
    def numbered(cls, number: int, edges: int) -> Chunk:
        """An empty chunk of a node.

        Args:
            number: index from 0.
            edges: total number of the node's edges.
        """
        return cls(min(EDGES_PER_CHUNK, edges - number * EDGES_PER_CHUNK))

    def has(self, position: int) -> bool:
        """Whether an edge has arrived."""
        return position in self.succeeded or position in self.failed or position in self.skipped

    def with_edge(self, position: int, outcome: Outcome) -> Chunk:
        """A copy in which an edge has arrived; each edge counts once, with its first outcome."""
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
        """A copy in which several edges have arrived."""
        chunk = self
        for position, outcome in arrived.items():
            chunk = chunk.with_edge(position, outcome)
        return chunk

    @property
    def counts(self) -> Counts:
        """Counts of the chunk's arrived edges by outcome."""
        return Counts(self.edges, len(self.succeeded), len(self.failed), len(self.skipped))


@frozen
class JoinCount:
    """The reports of a node's chunks.

    Attributes:
        edges: total number of the node's edges.
        reports: the counts with the most edges from each chunk that has reported.
    """

    edges: int
    reports: Mapping[int, Counts] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """Counts of the node's ended parents according to the reports."""
        reports = self.reports.values()
        return Counts(
            self.edges,
            sum(report.succeeded for report in reports),
            sum(report.failed for report in reports),
            sum(report.skipped for report in reports),
        )


def reports(rule: TriggerRule, edges: int, before: Chunk, after: Chunk) -> bool:
    """Whether a chunk must report after an edge has arrived, or has arrived again.

    Args:
        rule: rule of the node.
        edges: total number of the node's edges.
        before: the chunk without the edge; equal to `after` if the edge had arrived before.
        after: the chunk with the edge.
    """
    if after.counts.is_complete:
        return True
    return _decides(rule, edges, after) and (before == after or not _decides(rule, edges, before))


def _decides(rule: TriggerRule, edges: int, chunk: Chunk) -> bool:
    """Whether a chunk's edges are enough for a final verdict on the node."""
    return verdict(rule, replace(chunk.counts, total=edges)) is not Verdict.WAIT


def is_counted(node: Node, size: int) -> bool:
    """Whether a node has more parents than a group of this size holds."""
    return len(node.depends_on) > size


def group_around(node: Node, position: int, size: int) -> Mapping[int, str]:
    """The parents in the group that contains an edge, by their index among the node's parents."""
    first = position - position % size
    return dict(enumerate(node.depends_on[first : first + size], first))


def edges_to_count(node: Node, position: int, statuses: Statuses, size: int) -> Mapping[int, Outcome]:
    """The edges to count after an edge's parent has ended, which are all in the same chunk.

    Args:
        node: the child.
        position: position of the edge.
        statuses: statuses of the parents in the edge's group, read after the edge's parent had ended.
        size: number of parents in a group.
    """
    ends = {place: statuses[parent].outcome for place, parent in group_around(node, position, size).items()}
    ended = {place: outcome for place, outcome in ends.items() if outcome is not None}
    if len(ended) == len(ends):
        return ended
    own = counts_for(node, statuses, {node.depends_on[position]})
    is_decisive = verdict(node.trigger_rule, own) is not Verdict.WAIT
    return {place: outcome for place, outcome in ended.items() if is_decisive and place == position}


def kept_edges(node: Node, statuses: Statuses, kept: Collection[str], size: int) -> Mapping[int, Outcome]:
    """The edges to count for groups whose parents a retry keeps entirely, because no parent's end will count them.

    Args:
        node: a node that runs again.
        statuses: statuses of the kept parents.
        kept: the kept parents.
        size: number of parents in a group.
    """
    found: dict[int, Outcome] = {}
    for first in range(0, len(node.depends_on) if is_counted(node, size) else 0, size):
        group = group_around(node, first, size)
        if all(parent in kept for parent in group.values()):
            ends = {place: statuses[parent].outcome for place, parent in group.items()}
            found |= {place: outcome for place, outcome in ends.items() if outcome is not None}
    return found
