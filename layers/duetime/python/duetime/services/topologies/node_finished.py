"""Handles the end of a node: counts the end for the node's children, advances the run, and reports the end.

Also handles the end of a topology's task, so that no node is left waiting.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.join_counters import edges_to_count, group_around, is_counted
from duetime.domain.topologies.node_status import counts_for
from duetime.domain.topologies.run_state import counted_status, is_awaited, status_of
from duetime.domain.topologies.trigger_rules import Counts, Verdict, verdict
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import NodeRef, Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Edge
    from duetime.domain.topologies.node_status import NodeStatus, Statuses
    from duetime.ports.runtime import Executor
    from duetime.ports.topologies import StateMachine, TopologyStore
    from duetime.services.enqueue import Enqueuer
    from duetime.services.topologies.node_tasks import NodeTasks
    from duetime.services.topologies.node_transitions import NodeActions
    from duetime.services.topologies.reconciler import TopologyReconciler
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun
    from duetime.services.topologies.state_machine_steps import StateMachineSteps


_AT_ONCE = 100
"""Number of children processed together, so that the first of many children start early."""
_FEW = 10
"""If there are this many other last nodes, they are not read, because each read costs a fifth of a write."""


@frozen
class NodeFinished:
    """Runs the steps that follow the end of a node or a topology.

    The steps may be repeated, and all of them are repeated after a crash.
    """

    topology_repository: TopologyRepository
    node_tasks: NodeTasks
    joins: Joins
    reconciler: TopologyReconciler
    state_machine_steps: StateMachineSteps
    store: TopologyStore
    machine: StateMachine

    def follow(self, task: Task) -> Millis | None:
        """Process the end of a node for its topology, or the end of a topology for its nodes.

        Returns:
            When the node or topology may expire; `None` for a node of a running topology.

        Raises:
            Unavailable: a store did not answer; the call must be repeated.
        """
        if isinstance(task.target, TopologyTarget):
            self.node_tasks.complete(task.id)
            if not self.reconciler.dissolve(task):
                self.reconciler.retention.let_expire(task.id)
        if task.node_ref is None or (topology_run := self._whole_of(task.id, task.node_ref)) is None:
            return 0
        self._tell_all(task, task.node_ref, topology_run)
        # The run is read after the node has ended. If the topology ends later, the steps that follow the topology's end
        # find the node.
        retention = self.reconciler.retention
        return None if retention.is_needed(topology_run) else retention.expiry_of_nodes(topology_run)

    def _tell_all(self, task: Task, node_ref: NodeRef, topology_run: TopologyRun | None) -> None:
        key, status = node_ref.key, status_of(task)
        if topology_run is None or status.outcome is None:
            return
        if _concerns_all(topology_run, status):
            # The run is reconciled first, because a stop must be known before a child of this node may start.
            if self.reconciler.is_large(topology_run):
                self.reconciler.hand_over(topology_run, status)
            else:
                found, _ = self.reconciler.reconcile(topology_run, {key: status})
                if found.is_over and topology_run.task.state is State.RUNNING:
                    # The run is over, which its execution would notice only at its next check.
                    self.state_machine_steps.finish(topology_run.task.id, topology_run.task.fence)
            topology_run = self._whole_of(task.id, node_ref)
            if topology_run is None:
                return
        if topology_run.task.state is State.ROLLING_BACK and not self.reconciler.is_large(topology_run):
            # The next step of the rollback is taken now, instead of at the rollback's next check.
            self.reconciler.roll_back(topology_run)
        edges = topology_run.graph.edges_out[key]
        for first in range(0, len(edges), _AT_ONCE):
            self.joins.follow(topology_run, key, task, edges[first : first + _AT_ONCE])
        if is_awaited(topology_run.graph, key):
            self._end_with_last(topology_run, key, status)
            if (token := self.store.read_token(task.id)) is not None:
                self.machine.answer(token)

    def _end_with_last(self, topology_run: TopologyRun, key: str, status: NodeStatus) -> None:
        """End the run at once if its last node has ended, without waiting for the run's execution.

        If several last nodes end together, only the node that ended last ends the run; otherwise, the other nodes would
        pay for writes that are rejected. A large run, or a run with many last nodes, is left to its execution, which
        also ends any run that is missed here.
        """
        graph, ran = topology_run.graph, topology_run.run_state.ran
        if topology_run.task.state is not State.RUNNING or self.reconciler.is_large(topology_run):
            return
        others = [each for each in graph.order if each not in ran and each != key and is_awaited(graph, each)]
        if len(others) >= _FEW:
            return
        found = self.topology_repository.read_nodes(topology_run, others) if others else {}
        last = status.ended_at or 0, key
        statuses = {each: status_of(found.get(each)) for each in others}
        if all(other.has_ended and (other.ended_at or 0, each) < last for each, other in statuses.items()):
            self.state_machine_steps.finish(topology_run.task.id, topology_run.task.fence)

    def _whole_of(self, task_id: TaskId, node_ref: NodeRef) -> TopologyRun | None:
        """The run that a node belongs to; `None` if another run is active, or about to become active."""
        topology_run = self.topology_repository.read(node_ref.topology)
        is_its = (
            topology_run is not None
            and topology_run.is_present
            and topology_run.run_state.task_id(node_ref.key) == task_id
        )
        return topology_run if is_its else None


def _concerns_all(topology_run: TopologyRun, status: NodeStatus) -> bool:
    """Whether the node's end affects nodes other than its children."""
    # The nodes are also affected while the topology waits for another execution, because its nodes continue.
    if topology_run.task.state not in {State.RUNNING, State.WAITING}:
        return False
    is_failure = status.is_failure and topology_run.graph.on_failure is not OnFailure.CONTINUE
    return is_failure or topology_run.run_state.stopped or topology_run.task.requested_action is not None


@frozen
class Joins:
    """Starts those children of an ended node that wait for no other parent. Each call may be repeated."""

    topology_repository: TopologyRepository
    nodes: NodeActions
    enqueuer: Enqueuer
    executor: Executor

    def follow(self, topology_run: TopologyRun, key: str, ended: Task, edges: Sequence[Edge]) -> None:
        """Process the end of a node for some of its children, and send the children's messages together.

        Args:
            topology_run: the run, read after the node had ended.
            key: key of the node.
            ended: the node's ended task.
            edges: edges to the children.

        Raises:
            Unavailable: a store did not answer, or a child's task does not exist yet; the call must be repeated.
        """
        size = topology_run.run_state.join_group
        nodes = {edge: topology_run.graph.by_key[edge.child] for edge in edges}
        near = {parent for edge, node in nodes.items() for parent in group_around(node, edge.position, size).values()}
        children = dict.fromkeys(edge.child for edge in edges)
        # The tasks are read after the node's own end was written, so the last parent in a group that ends sees that all
        # other parents in the group have ended.
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
        """The current verdict of a child's rule."""
        task = tasks.get(edge.child)
        if task is None:
            raise Unavailable(f"the task of the node {edge.child} is not there yet")
        if task.state is not State.BLOCKED:
            return Verdict.WAIT
        rule = topology_run.graph.by_key[edge.child].trigger_rule
        return verdict(rule, self._counts(topology_run, statuses, edge))

    def _counts(self, topology_run: TopologyRun, statuses: Statuses, edge: Edge) -> Counts:
        """Counts of a child's parents, from the parents' records, or from stored counts if there are many parents."""
        node, size = topology_run.graph.by_key[edge.child], topology_run.run_state.join_group
        if not is_counted(node, size):
            return counts_for(node, statuses)
        arrived = edges_to_count(node, edge.position, statuses, size)
        return self.nodes.count(topology_run, edge.child, arrived) if arrived else Counts(len(node.depends_on))
