"""Deleting topologies with all their nodes, before their retention is over.

The order makes it safe to stop anywhere. What is kept of the run remembers the names of its nodes, then the topology's
task is erased, in one write: from then on nobody can retry, read or change the topology. Then its nodes are erased, of
all runs, and at last their names. A repeated request goes on where the one before has stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.bulk.operation import BulkKind
from duetime.domain.errors import StateConflict, TaskNotFound
from duetime.domain.operating_parameters import BULK_INLINE, NODE_MARGIN
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.topologies.run_plan import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.run_state import RunState
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.tasks.erase import TaskEraser
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun

_PAGE = 100
"""Nodes that one request reads (Source: DynamoDB API Reference, BatchGetItem)."""


@dataclass(frozen=True, slots=True)
class NodeEraser:
    """Erases the nodes of topologies that were erased.

    Attributes:
        period: how long a finished task is kept, in milliseconds.
    """

    topology_repository: TopologyRepository
    task_eraser: TaskEraser
    stores: Stores
    runtime: Runtime
    period: Millis

    def remember(self, task: Task) -> None:
        """Keep the names of a topology's nodes, by which they are found once its graph is gone.

        Raises:
            StateConflict: some of them have not ended.
        """
        topology_run = self.topology_repository.read(task.id)
        if topology_run is not None:
            self._require_ended(task, topology_run)
            self._note_names(topology_run)

    def _require_ended(self, task: Task, topology_run: TopologyRun) -> None:
        statuses = self.topology_repository.statuses(topology_run)
        if any(status.finished_at is None for status in statuses.values() if not status.is_missing):
            raise StateConflict(task, "deleted before all of its nodes have ended")
        inner = (key for key, status in statuses.items() if status.is_topology)
        for found in map(self.topology_repository.read, map(topology_run.run_state.task_id, inner)):
            if found is not None:
                self._require_ended(task, found)

    def _note_names(self, topology_run: TopologyRun) -> None:
        keys = topology_run.graph.by_key
        self.topology_repository.save(
            topology_run.run_state,
            lambda run_state: replace(run_state, ran={key: run_state.number_of(key) for key in keys}),
        )

    def erase(self, topology: TaskId, until: Millis) -> bool:
        """Erase as many nodes as there is time for; says whether none is left.

        A node that somebody retries at that very moment runs to its end, and expires as any task does.
        """
        run_state = self.stores.topologies.read(topology)
        if run_state is None or not run_state.ran:
            return True
        record = self.stores.tasks.read(topology)
        kept_until = (record.expires_at if record else None) or self.runtime.now() + self.period
        erase = partial(self._erase_one, kept_until + NODE_MARGIN)
        ids = list(_task_ids(run_state))
        for first in range(0, len(ids), _PAGE):
            if self.runtime.now() >= until:
                return False
            found = self.stores.tasks.read_many(ids[first : first + _PAGE], consistent=True)
            if not all(self._erase_inner(node, until) for node in found.values()):
                return False
            self.runtime.executor.map(erase, found.values())
        self.topology_repository.save(run_state, lambda known: replace(known, ran={}))
        return True

    def _erase_inner(self, node: Task, until: Millis) -> bool:
        """Erase the nodes of a node that is a topology, before its own record says no more that it is one."""
        if not node.is_topology or node.erased or not node.is_terminal:
            return True
        if (topology_run := self.topology_repository.read(node.id)) is not None:
            self._note_names(topology_run)
        return self.erase(node.id, until)

    def _erase_one(self, kept_until: Millis, node: Task) -> None:
        if node.is_terminal and not node.erased:
            self.task_eraser.erase_record(node, {"node_ref": None, "expires_at": node.expires_at or kept_until})


@dataclass(frozen=True, slots=True)
class TopologyEraser:
    """Erases tasks, topologies with their nodes among them."""

    task_eraser: TaskEraser
    node_eraser: NodeEraser
    stores: Stores
    runtime: Runtime
    bulk_operations: BulkOperations

    def erase(self, owner: str, task_id: TaskId, version: int | None = None) -> None:
        """Erase a task; one that has not started is cancelled first. What takes long is done in a bulk operation.

        Raises:
            TaskNotFound: there is none, or it is another owner's, or was erased before.
            StateConflict: it runs, or what follows its outcome is not done, or it is a node of a topology that is kept.
            VersionMismatch: it is at another version.
            Unavailable: a store failed, or others kept writing the task.
        """
        try:
            task = self.task_eraser.erase(owner, task_id, version, self._prepare)
        except TaskNotFound:
            record = self.stores.tasks.read(task_id)
            if record is not None and record.owner == owner and record.erased:
                # Whoever erased it may not have come to its nodes.
                self._erase_nodes(owner, task_id)
            raise
        if isinstance(task.target, TopologyTarget):
            self._erase_nodes(owner, task_id)

    def erase_topology(self, owner: str, topology: TaskId, version: int | None = None) -> None:
        """Erase a topology, as `erase` does; any other task is none.

        Raises:
            TaskNotFound: there is no such topology.
        """
        record = self.stores.tasks.read(topology)
        if record is not None and not (record.erased or isinstance(record.target, TopologyTarget)):
            raise TaskNotFound(topology)
        self.erase(owner, topology, version)

    def _prepare(self, task: Task) -> None:
        if task.node_ref is not None:
            topology = self.stores.tasks.read(task.node_ref.topology)
            if topology is not None and not topology.erased:
                # Its topology may be retried, or shown, and needs it then.
                raise StateConflict(task, "deleted by itself: delete its topology, which deletes all of its nodes")
        if isinstance(task.target, TopologyTarget):
            self.node_eraser.remember(task)

    def _erase_nodes(self, owner: str, topology: TaskId) -> None:
        if not self.node_eraser.erase(topology, self.runtime.now() + BULK_INLINE):
            running = self.bulk_operations.latest_of(topology)
            if running is None or not running.is_running or running.kind is not BulkKind.DELETE:
                self.bulk_operations.start_on(owner, topology, BulkKind.DELETE, None)


def _task_ids(run_state: RunState) -> Iterator[TaskId]:
    """The ids that nodes have in all runs of a topology; not every one ran in each."""
    for number, begun in enumerate(run_state.runs, 1):
        run = Run(run_state.topology, number, begun.at, begun.shards)
        yield from (run.task_id(key) for key in run_state.ran)
