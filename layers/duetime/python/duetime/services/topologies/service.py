"""User requests on topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.bulk import BulkKind
from duetime.domain.errors import StateConflict, TaskNotFound
from duetime.domain.operating_parameters import BULK_INLINE
from duetime.domain.tasks.action_history import BY_SYSTEM
from duetime.domain.tasks.states import LEASED
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import ContentPlace
from duetime.domain.topologies.node_status import NodeStatus
from duetime.domain.topologies.run_state import (
    View,
    is_in_progress,
    require_nodes,
    shown_statuses,
    status_of,
    was_retried,
)
from duetime.services.topologies.reconciler import KINDS
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection

    from duetime.domain.bulk import BulkOperation
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.read import TaskReader
    from duetime.services.topologies.reconciler import TopologyReconciler
    from duetime.services.topologies.repository import TopologyRepository


@frozen
class ControlResult:
    """The result of a request on a topology.

    Attributes:
        task: the topology's task.
        operation: bulk operation that continues after the response; `None` if the request was applied to all nodes.
    """

    task: Task
    operation: BulkOperation | None = None


@frozen
class TopologyService:
    """Reads and controls topologies; each method raises `TaskNotFound` if the owner does not have the topology.

    If a version is given, an action is rejected if the topology's task has a different version. `by` says who acts, and
    why.
    """

    topology_repository: TopologyRepository
    reconciler: TopologyReconciler
    task_reader: TaskReader
    task_control: TaskControl
    clock: Clock
    bulk_operations: BulkOperations

    def get(self, owner: str, topology: TaskId) -> View:
        """Read a topology with all its nodes."""
        task = self._task(owner, topology)
        topology_run = self.topology_repository.read(topology)
        if topology_run is None:
            graph = self.topology_repository.graph_of(task)
            nothing = dict.fromkeys(graph.by_key, NodeStatus(is_missing=True))
            return View(task, graph, None, shown_statuses(task, nothing))
        operation = self.bulk_operations.latest_of(topology)
        return View(
            topology_run.task,
            topology_run.graph,
            topology_run.run_state,
            shown_statuses(topology_run.task, self.topology_repository.statuses(topology_run)),
            operation,
        )

    def nodes(self, owner: str, topology: TaskId, first: int, limit: int) -> View:
        """Read only the given number of nodes, beginning at a position in the graph's order."""
        task = self._task(owner, topology)
        topology_run = self.topology_repository.read(topology)
        graph = self.topology_repository.graph_of(task) if topology_run is None else topology_run.graph
        keys = [node.key for node in graph.nodes[first : first + limit]]
        if topology_run is None:
            return View(task, graph, None, shown_statuses(task, dict.fromkeys(keys, NodeStatus(is_missing=True))))
        found = self.topology_repository.read_nodes(topology_run, keys)
        statuses = shown_statuses(topology_run.task, {key: status_of(found.get(key)) for key in keys})
        return View(topology_run.task, graph, topology_run.run_state, statuses)

    def retry(
        self,
        owner: str,
        topology: TaskId,
        version: int | None = None,
        by: Attribution = BY_SYSTEM,
        nodes: Collection[str] = (),
    ) -> Task:
        """Retry a failed topology, and keep its succeeded nodes; a topology already being retried does not change.

        Args:
            owner: owner of the topology.
            topology: id of the topology.
            version: required version of the topology's task; `None` for any version.
            by: who requests the retry, and why.
            nodes: nodes to run again, with all dependents, even if the topology has succeeded.

        Raises:
            FieldInvalid: the topology has no node with a given name.
        """
        task = self._task(owner, topology)
        wanted = tuple(sorted(nodes))
        if wanted:
            require_nodes(self.topology_repository.graph_of(task), wanted)
        try:
            return self.task_control.retry(owner, topology, version, by, wanted)
        except StateConflict as refusal:
            if not was_retried(refusal.task, wanted):
                raise
            return refusal.task

    def cancel(
        self, owner: str, topology: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM
    ) -> ControlResult:
        """Cancel nodes that have not started, and ask running nodes to stop."""
        self._task(owner, topology)
        return self.apply_gate(self.task_control.cancel_by_force(owner, topology, version, by))

    def pause(
        self, owner: str, topology: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM
    ) -> ControlResult:
        """Pause nodes that have not started; running nodes run to their end."""
        self._task(owner, topology)
        return self.apply_gate(self.task_control.pause(owner, topology, version, by))

    def resume(
        self, owner: str, topology: TaskId, version: int | None = None, by: Attribution = BY_SYSTEM
    ) -> ControlResult:
        """Resume a paused topology with all its nodes; also resumes paused nodes of a running topology."""
        self._task(owner, topology)
        try:
            task = self.task_control.resume(owner, topology, version, by)
        except StateConflict as refusal:
            if not is_in_progress(refusal.task):
                raise
            task = refusal.task
        return self.apply_gate(task)

    def apply_gate(self, task: Task) -> ControlResult:
        """Apply a request on a topology's task to its nodes; other tasks have no nodes.

        A small amount of work is done at once; a bulk operation does the rest.
        """
        if not isinstance(task.target, TopologyTarget) or task.state not in LEASED:
            return ControlResult(task)
        until = self.clock.now() + BULK_INLINE
        kind = KINDS[task.requested_action]
        earlier = self.bulk_operations.replace_other(task.id, kind)
        if earlier is not None and earlier.is_running:
            return ControlResult(task, earlier)
        # Reading the graph of a huge topology takes too long, and reading its nodes even longer.
        is_huge = task.payload.place is ContentPlace.OBJECT
        if earlier is None and not is_huge and self._is_done(task, kind, until):
            return ControlResult(task)
        return ControlResult(task, self.bulk_operations.start_on(task.owner, task.id, kind, earlier))

    def _is_done(self, task: Task, kind: BulkKind, until: Millis) -> bool:
        """Apply the request to the nodes at once, unless that takes too long; returns whether all nodes are done."""
        reconciler = self.reconciler
        topology_run = reconciler.topology_repository.read(task.id)
        if topology_run is None:
            return True
        if reconciler.is_large(topology_run):
            return False
        found = {BulkKind.RESUME: reconciler.resumption, BulkKind.PAUSE: reconciler.suspension}.get(
            kind, reconciler.work
        )
        work = found(topology_run)
        return reconciler.do(work, until) == len(work) and self.clock.now() < until

    def _task(self, owner: str, topology: TaskId) -> Task:
        task = self.task_reader.record(owner, topology)
        if not isinstance(task.target, TopologyTarget):
            raise TaskNotFound(topology)
        return task
