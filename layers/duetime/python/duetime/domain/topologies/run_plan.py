"""What a run of a topology creates: a blocked task for each node, with the same id however often it is planned."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.ids import TaskId
from duetime.domain.topologies.join_counters import chunk_of, kept_edges
from duetime.domain.topologies.node_status import counts_for
from duetime.domain.topologies.trigger_rules import AFTER_ALL, Counts, Outcome, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.node_status import Statuses


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a topology: its first, or a retry.

    Attributes:
        topology: the id of the topology's task.
        number: counts its runs, from 1.
        begun_at: when this run began, stored before anything is created: the ids of its nodes' tasks derive from it.
        shards: how many shards there were then, stored likewise.
    """

    topology: TaskId
    number: int
    begun_at: Millis
    shards: int

    def task_id(self, key: str) -> TaskId:
        """The id of the task that a node has in this run. Nodes of one run are spread over all shards."""
        # No node's name holds a NUL, so no two runs and nodes are written alike.
        digest = sha256("\0".join((str(self.topology), str(self.number), key)).encode()).digest()
        spread, tail = int.from_bytes(digest[:2], "big"), int.from_bytes(digest[2:10], "big")
        return TaskId.of(self.begun_at, spread % self.shards, tail)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Edges of one chunk that are counted from the beginning of a run: their parents are kept from an earlier one."""

    child: str
    edges: Mapping[int, Outcome]


def creation_order(graph: Graph, again: Collection[str] | None = None) -> tuple[str, ...]:
    """The nodes whose tasks a run creates, children before parents: whatever ends finds its children there.

    Args:
        graph: the topology's.
        again: the nodes that a retry runs again; all, if it is left out.
    """
    return tuple(key for key in reversed(graph.order) if again is None or key in again)


def starts_at_once(node: Node) -> bool:
    """Whether a node waits for no other, however others end."""
    return verdict(node.trigger_rule, Counts(len(node.depends_on))) is Verdict.READY


def is_awaited(graph: Graph, key: str) -> bool:
    """Whether the execution of a run waits for a node: for those that no child outlasts as long as nothing fails."""
    return not any(graph.by_key[edge.child].trigger_rule in AFTER_ALL for edge in graph.edges_out[key])


def opening(
    graph: Graph, again: Collection[str] | None = None, statuses: Statuses | None = None
) -> Mapping[str, Verdict]:
    """What is decided as soon as all nodes are created, parents before children: those that nothing postpones.

    In a first run these are the nodes that are ready. In a retry there may be others, which no parent that is still to
    run would ever decide: one under `one_failed` whose parents have all been kept is skipped.

    Args:
        graph: the topology's.
        again: the nodes that a retry runs again; all, if it is left out.
        statuses: how the nodes that a retry keeps have ended.
    """
    wanted = graph.by_key.keys() if again is None else set(again)
    kept = graph.by_key.keys() - wanted
    verdicts = {
        key: verdict(graph.by_key[key].trigger_rule, counts_for(graph.by_key[key], statuses or {}, kept))
        for key in graph.order
        if key in wanted
    }
    return {key: found for key, found in verdicts.items() if found is not Verdict.WAIT}


def arrivals(graph: Graph, again: Collection[str], statuses: Statuses, group: int) -> Iterator[Arrival]:
    """The edges from kept nodes that a retry counts before it starts any node.

    Args:
        graph: the topology's.
        again: the nodes that run again.
        statuses: how those have ended that are kept.
        group: how many parents a group holds (`parent_groups`).
    """
    running = set(again)
    kept = graph.by_key.keys() - running
    for key in creation_order(graph, running):
        chunks: dict[int, dict[int, Outcome]] = {}
        for position, outcome in kept_edges(graph.by_key[key], statuses, kept, group).items():
            chunks.setdefault(chunk_of(position), {})[position] = outcome
        yield from (Arrival(key, edges) for edges in chunks.values())


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
