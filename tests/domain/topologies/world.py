"""A simulation that runs a graph by the domain's decisions alone, with crashes, delays and repeats.

If the follow-up of a node's end crashes between any two writes or after the last, it restarts from its first write. It
may also come long after other nodes have ended.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.states import State
from duetime.domain.topologies.join_counters import (
    Chunk,
    JoinCount,
    chunk_of,
    chunks_for,
    edges_to_count,
    is_counted,
    reports,
)
from duetime.domain.topologies.node_status import NodeStatus, Reason, counts_for
from duetime.domain.topologies.run_progress import NextAction, is_stopped, next_action
from duetime.domain.topologies.run_state import arrivals, opening
from duetime.domain.topologies.trigger_rules import Counts, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from random import Random

    from duetime.domain.topologies.graph import Edge, Graph
    from duetime.domain.topologies.node_status import Statuses
    from duetime.domain.topologies.trigger_rules import Outcome

_REASONS = {Verdict.SKIPPED: Reason.SKIPPED, Verdict.UPSTREAM_FAILED: Reason.UPSTREAM_FAILED}


def with_report(join_count: JoinCount, chunk: int, counts: Counts) -> JoinCount:
    """The counts after a chunk's report, as stores keep them; a report with fewer edges changes nothing."""
    known = join_count.reports.get(chunk)
    if known is not None and known.ended >= counts.ended:
        return join_count
    return replace(join_count, reports={**join_count.reports, chunk: counts})


class Crash(Exception):
    """The simulated process dies between two writes."""


class World:
    """One run of a graph.

    Args:
        graph: the graph.
        dispositions: the nodes that succeed if they run.
        random_source: decides which follow-ups crash, are repeated, or are late.
    """

    def __init__(self, graph: Graph, dispositions: Mapping[str, bool], random_source: Random) -> None:
        self.graph = graph
        self.dispositions = dispositions
        self.random_source = random_source
        self.group = random_source.randint(1, 2)
        self.statuses: dict[str, NodeStatus] = dict.fromkeys(graph.by_key, NodeStatus())
        self.begun: list[str] = []
        self.undone: list[str] = []
        self._chunks: dict[tuple[str, int], Chunk] = {}
        self._tallies: dict[str, JoinCount] = {}
        self._to_follow: list[str] = []
        self._repeats: dict[str, int] = defaultdict(lambda: 3)

    def open(self, again: Collection[str] | None = None, kept: Statuses | None = None) -> None:
        """Begin a run, or a retry in which some nodes are kept."""
        if again is not None and kept is not None:
            self.statuses |= {key: status for key, status in kept.items() if key not in again}
            for arrival in [*arrivals(self.graph, again, kept, self.group)] * 2:
                self._count(arrival.child, arrival.edges)
        for key, found in opening(self.graph, again, kept).items():
            self._act(key, found)

    def run(self, priorities: Sequence[str], *, prompt: bool) -> NextAction:
        """Run to the end.

        Args:
            priorities: the order in which running nodes end.
            prompt: whether the follow-up of an end is done before the next node ends.
        """
        while True:
            if self._to_follow and (prompt or self.random_source.random() < 0.5):
                self._follow_one()
                continue
            if running := [key for key in priorities if self.statuses[key].state is State.RUNNING]:
                self._end(running[0])
            elif not self._to_follow:
                break
            if prompt or self.random_source.random() < 0.5:
                self.control()
        return self._finish()

    def control(self) -> NextAction:
        """Take the steps that the topology's state requires."""
        found = next_action(self.graph, self.statuses)
        for key in found.cancel:
            self._set(key, NodeStatus(State.CANCELLED, Reason.STOPPED))
        for key in found.undo:
            self.statuses[key] = replace(self.statuses[key], state=State.ROLLING_BACK)
            self.undone.append(key)
        return found

    def _finish(self) -> NextAction:
        """Control the topology until nothing is left to do; rollbacks end in any order."""
        while (found := self.control()).state not in {State.SUCCEEDED, State.FAILED, State.ROLLED_BACK}:
            undoing = [key for key, status in self.statuses.items() if status.state is State.ROLLING_BACK]
            assert undoing or found.cancel or self._to_follow, f"nothing happens, and it is {found}"
            if undoing:
                key = self.random_source.choice(undoing)
                self.statuses[key] = replace(self.statuses[key], state=State.ROLLED_BACK)
            while self._to_follow:
                self._follow_one()
        return found

    def _end(self, key: str) -> None:
        state = State.SUCCEEDED if self.dispositions[key] else State.FAILED
        self._set(key, replace(self.statuses[key], state=state, finished_at=2))

    def _set(self, key: str, status: NodeStatus) -> None:
        self.statuses[key] = status
        self._to_follow.append(key)

    def _follow_one(self) -> None:
        key = self._to_follow.pop(self.random_source.randrange(len(self._to_follow)))
        if self.statuses[key].outcome is None:  # the outcome follows after the node's rollback
            return
        try:
            for edge in self.graph.edges_out[key]:
                counts = self._counts(edge, key)
                self._act(edge.child, verdict(self.graph.by_key[edge.child].trigger_rule, counts))
                self._may_crash(key)
            self._may_crash(key)
        except Crash:
            self._to_follow.append(key)

    def _counts(self, edge: Edge, by: str) -> Counts:
        """The known outcomes of a child's parents, counted by outcome."""
        node = self.graph.by_key[edge.child]
        if not is_counted(node, self.group):
            return counts_for(node, self.statuses)
        arrived = edges_to_count(node, edge.position, self.statuses, self.group)
        return self._count(edge.child, arrived, by) if arrived else Counts(len(node.depends_on))

    def _count(self, child: str, arrived: Mapping[int, Outcome], by: str | None = None) -> Counts:
        """Count edges in one chunk, and report all known outcomes of the child's parents."""
        node = self.graph.by_key[child]
        edges, number = len(node.depends_on), chunk_of(min(arrived))
        before = self._chunks.get((child, number)) or Chunk.numbered(number, edges)
        after = before.with_edges(arrived)
        self._chunks[child, number] = after
        if chunks_for(edges) == 1:
            return after.counts
        self._may_crash(by)
        join_count = self._tallies.get(child, JoinCount(edges))
        if reports(node.trigger_rule, edges, before, after):
            join_count = with_report(join_count, number, after.counts)
            self._tallies[child] = join_count
            self._may_crash(by)
        return join_count.counts

    def _act(self, key: str, found: Verdict) -> None:
        if self.statuses[key].state is not State.BLOCKED or found is Verdict.WAIT:
            return
        if found is not Verdict.READY:
            self._set(key, NodeStatus(State.CANCELLED, _REASONS[found]))
        elif not is_stopped(self.graph, self.statuses):
            self.statuses[key] = NodeStatus(State.RUNNING, started_at=1)
            self.begun.append(key)

    def _may_crash(self, by: str | None) -> None:
        if by is not None and self._repeats[by] and self.random_source.random() < 0.3:
            self._repeats[by] -= 1
            raise Crash
