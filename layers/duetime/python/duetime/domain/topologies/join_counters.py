"""Counts a node's ended parents correctly despite crashes, repetitions and any order.

Only nodes with more parents than one group are counted (`parent_groups`), one group at a time.

An edge is a number: the index of the parent among the child's parents. A chunk stores, for a hundred edges, the numbers
of arrived ones by outcome. It is a set, so repeated arrivals change nothing, and a single write both adds an edge and
returns the count. A node with few parents has only one chunk.

With more parents, each chunk reports its counts to the node's tally, which keeps the report with most edges of each
chunk. A report depends only on the arrived edges, and a fuller report replaces an emptier one, so reports may be
repeated and may arrive in any order. A chunk reports when it is complete, and once earlier if its own edges decide the
node.

Each write of an edge is followed by reporting and deciding, even if it is repeated: a repetition completes what a crash
left unfinished.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.operating_parameters import EDGES_PER_CHUNK
from duetime.domain.tasks.states import NOT_STARTED, State
from duetime.domain.topologies.trigger_rules import Counts, Outcome, TriggerRule, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph, Node


class Reason(StrEnum):
    """Why a node was cancelled, if not by a user."""

    SKIPPED = "skipped"
    """Its rule can no longer be met, and no ancestor has failed; or its condition was false."""
    UPSTREAM_FAILED = "upstream_failed"
    """Its rule can no longer be met, because an ancestor has failed."""
    STOPPED = "stopped"
    """The topology was stopped before the node started."""


WHOLE = 100
"""Percentage of a succeeded node, whatever it reported last."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The status of a node: the relevant part of its task's record.

    Attributes:
        reason: why it was cancelled, if not by its user.
        percent: its reported progress; 100 once it has succeeded.
        started_at: when its first attempt started.
        ended_at: when its last attempt ended, before any follow-ups.
        finished_at: when its outcome was stored and all follow-ups were done; children may have started before.
        rollback_failed: whether its rollback was tried and has failed for good.
        has_result: whether it once succeeded, whatever happened to it since.
        expires_at: when its task may be removed; `None` while its topology may need it.
        is_missing: whether it has no task: none was created yet, or it was removed with the run's records.
        is_stopping: whether a stop of its running attempt has been requested.
        is_pausing: whether a pause of its running attempt has been requested.
        is_topology: whether it is itself a topology.
        is_held_by_topology: whether it is paused, or a pause is requested, because its topology was paused, not by its
            user.
    """

    state: State = State.BLOCKED
    reason: Reason | None = None
    percent: int = 0
    started_at: Millis | None = None
    ended_at: Millis | None = None
    finished_at: Millis | None = None
    rollback_failed: bool = False
    has_result: bool = False
    expires_at: Millis | None = None
    is_missing: bool = False
    is_stopping: bool = False
    is_pausing: bool = False
    is_topology: bool = False
    is_held_by_topology: bool = False

    @property
    def outcome(self) -> Outcome | None:
        """Its outcome from the view of its children; `None` if it is open.

        A node counts as failed if its work is not in effect: it failed, it was rolled back, or it was cancelled by its
        user, by a stop, or because an ancestor failed.
        """
        match self.state:
            case State.SUCCEEDED:
                return Outcome.SUCCEEDED
            case State.CANCELLED if self.reason is Reason.SKIPPED:
                return Outcome.SKIPPED
            case State.FAILED | State.ROLLED_BACK | State.CANCELLED:
                return Outcome.FAILED
            case _:
                return None

    @property
    def has_ended(self) -> bool:
        """Whether it has an outcome and is not being rolled back."""
        return self.outcome is not None

    @property
    def is_open(self) -> bool:
        """Whether it has a task that is open or being rolled back."""
        return not (self.has_ended or self.is_missing)

    @property
    def is_failure(self) -> bool:
        """Whether its work is not in effect, or is being rolled back."""
        return self.state is State.ROLLING_BACK or self.outcome is Outcome.FAILED

    @property
    def has_failed_itself(self) -> bool:
        """Whether its own work has failed, even if it was rolled back since."""
        return self.state in {State.FAILED, State.ROLLED_BACK} and not self.has_result

    @property
    def was_taken_back(self) -> bool:
        """Whether its user cancelled it."""
        return self.state is State.CANCELLED and self.reason is None

    @property
    def has_not_begun(self) -> bool:
        """Whether none of its attempts has started, and it can still be cancelled."""
        return self.state in NOT_STARTED and self.started_at is None


Statuses: TypeAlias = "Mapping[str, NodeStatus]"
"""The status of each node of a graph, by name."""


def counts_for(node: Node, statuses: Statuses, among: Collection[str] | None = None) -> Counts:
    """How a node's parents have ended, according to their own states.

    Args:
        node: the node.
        statuses: of its parents; those that are not checked may be missing.
        among: the parents to check; the others count as open. `None` for all.
    """
    seen = Counter(statuses[parent].outcome for parent in node.depends_on if among is None or parent in among)
    return Counts(len(node.depends_on), seen[Outcome.SUCCEEDED], seen[Outcome.FAILED], seen[Outcome.SKIPPED])


def decided(graph: Graph, statuses: Statuses) -> Mapping[str, Verdict]:
    """The blocked nodes that need not wait any more, with the verdict on each.

    Uses only the states, so it finds edges that a crash left uncounted: recovery scans use it.
    """
    blocked = (node for node in graph.nodes if statuses[node.key].state is State.BLOCKED)
    verdicts = {node.key: verdict(node.trigger_rule, counts_for(node, statuses)) for node in blocked}
    return {key: found for key, found in verdicts.items() if found is not Verdict.WAIT}


def chunk_of(position: int) -> int:
    """The chunk of an edge."""
    return position // EDGES_PER_CHUNK


def chunks_for(edges: int) -> int:
    """Number of chunks of a node with this many edges."""
    return -(-edges // EDGES_PER_CHUNK)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A group of a node's edges, with the outcomes of arrived ones.

    Attributes:
        edges: number of edges in it.
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
        """A copy with an arrived edge; each edge counts once, with its first outcome."""
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
        """A copy with several arrived edges."""
        chunk = self
        for position, outcome in arrived.items():
            chunk = chunk.with_edge(position, outcome)
        return chunk

    @property
    def counts(self) -> Counts:
        """Counts of its arrived edges by outcome."""
        return Counts(self.edges, len(self.succeeded), len(self.failed), len(self.skipped))


@dataclass(frozen=True, slots=True)
class JoinCount:
    """The reports of a node's chunks.

    Attributes:
        edges: total number of the node's edges.
        reports: the fullest counts of each chunk that has reported.
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
        rule: of the node.
        edges: total number of the node's edges.
        before: the chunk without the edge; equal to `after` if the edge had arrived before.
        after: the chunk with it.
    """
    if after.counts.is_complete:
        return True
    return _decides(rule, edges, after) and (before == after or not _decides(rule, edges, before))


def _decides(rule: TriggerRule, edges: int, chunk: Chunk) -> bool:
    """Whether a chunk's edges alone lead to a final verdict on the node."""
    return verdict(rule, replace(chunk.counts, total=edges)) is not Verdict.WAIT


def is_counted(node: Node, size: int) -> bool:
    """Whether a node has more parents than one group of this size."""
    return len(node.depends_on) > size


def group_around(node: Node, position: int, size: int) -> Mapping[int, str]:
    """The parents in an edge's group, by their index among the node's parents."""
    first = position - position % size
    return dict(enumerate(node.depends_on[first : first + size], first))


def edges_to_count(node: Node, position: int, statuses: Statuses, size: int) -> Mapping[int, Outcome]:
    """The edges to count after an edge's parent has ended; all of them are in one chunk.

    Args:
        node: the child.
        position: of the edge.
        statuses: of the parents in the edge's group, each read after that parent had ended.
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
    """The edges of groups whose parents are all kept by a retry: no parent will end and count them any more.

    Args:
        node: a node that runs again.
        statuses: of the kept parents.
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
