"""Decides the children of a node that has ended: one read of all that matters, then a write for each that may start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import counts_for
from duetime.domain.topologies.parent_groups import edges_to_count, group_around, is_counted
from duetime.domain.topologies.run_state import counted_status
from duetime.domain.topologies.trigger_rules import Counts, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.graph import Edge
    from duetime.domain.topologies.node_status import Statuses
    from duetime.ports.runtime import Executor
    from duetime.services.enqueue import Enqueuer
    from duetime.services.topologies.node_transitions import NodeActions
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun


@dataclass(frozen=True, slots=True)
class Joins:
    """Lets the children of an ended node start that wait for nothing any more. Doing it twice is doing it once."""

    topology_repository: TopologyRepository
    nodes: NodeActions
    enqueuer: Enqueuer
    executor: Executor

    def follow(self, topology_run: TopologyRun, key: str, ended: Task, edges: Sequence[Edge]) -> None:
        """Do what the end of a node means for some of its children; their messages are sent together.

        Args:
            topology_run: as it was read after the node had ended.
            key: the node.
            ended: its task, as it has ended.
            edges: those to the children.

        Raises:
            Unavailable: a store did not answer, or a child's task is not there yet; it is to be done again.
        """
        size = topology_run.run_state.join_group
        nodes = {edge: topology_run.graph.by_key[edge.child] for edge in edges}
        near = {parent for edge, node in nodes.items() for parent in group_around(node, edge.position, size).values()}
        children = dict.fromkeys(edge.child for edge in edges)
        # After the node's own end was written: of the parents in a group, the last one to end finds all others ended.
        tasks = self.topology_repository.read_nodes(topology_run, children | dict.fromkeys(sorted(near - {key})))
        ran = topology_run.run_state.ran
        seen = {**tasks, key: ended}
        statuses = {name: counted_status(seen.get(name), is_kept=name in ran) for name in near}
        verdicts = self.executor.map(partial(self._verdict, topology_run, tasks, statuses), edges)
        if Verdict.READY in verdicts:
            topology_run = self.topology_repository.refreshed(topology_run)
        decided = [
            (edge.child, found) for edge, found in zip(edges, verdicts, strict=True) if found is not Verdict.WAIT
        ]
        decide = partial(self._decide, topology_run, tasks)
        released = self.executor.map(decide, decided)
        self.enqueuer.send_due([task for task in released if task is not None])

    def _decide(
        self, topology_run: TopologyRun, tasks: Mapping[str, Task], decided: tuple[str, Verdict]
    ) -> Task | None:
        key, found = decided
        return self.nodes.decide(topology_run, key, found, tasks[key])

    def _verdict(self, topology_run: TopologyRun, tasks: Mapping[str, Task], statuses: Statuses, edge: Edge) -> Verdict:
        """What a child's rule says now."""
        task = tasks.get(edge.child)
        if task is None:
            raise Unavailable(f"the task of the node {edge.child} is not there yet")
        if task.state is not State.BLOCKED:
            return Verdict.WAIT
        rule = topology_run.graph.by_key[edge.child].trigger_rule
        return verdict(rule, self._counts(topology_run, statuses, edge))

    def _counts(self, topology_run: TopologyRun, statuses: Statuses, edge: Edge) -> Counts:
        """All that is known of a child's parents: by their records, or as they were counted if there are many."""
        node, size = topology_run.graph.by_key[edge.child], topology_run.run_state.join_group
        if not is_counted(node, size):
            return counts_for(node, statuses)
        arrived = edges_to_count(node, edge.position, statuses, size)
        return self.nodes.count(topology_run, edge.child, arrived) if arrived else Counts(len(node.depends_on))
