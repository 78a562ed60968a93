"""Lets topologies and their nodes expire, and deletes them before their retention ends.

An ended node has no expiry while its topology may still need the node, because a child reads the node's result, the
state of the run depends on the node, or the node may be rolled back. The end of the run sets the expiry of all its
nodes. If a topology is a node of another topology, the end of the outermost topology sets this expiry. A retry removes
the expiry of the nodes that are not run again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.bulk import BulkKind
from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import StateConflict, TaskNotFound, Unavailable
from duetime.domain.operating_parameters import BULK_INLINE, NODE_MARGIN
from duetime.domain.tasks.states import Move
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.topologies.run_state import Run
from duetime.services.content_retention import let_expire, retain
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.domain.topologies.node_status import Statuses
    from duetime.domain.topologies.run_state import RunState
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.tasks.erase import TaskEraser
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun


_PAGE = 100
"""Number of nodes read in one request (Source: DynamoDB API Reference, BatchGetItem)."""


@frozen
class NodeEraser:
    """Erases the nodes of erased topologies.

    Attributes:
        policy: how long a finished task is kept.
    """

    topology_repository: TopologyRepository
    task_eraser: TaskEraser
    stores: Stores
    runtime: Runtime
    policy: RetentionPolicy

    def remember(self, task: Task) -> None:
        """Store the names of a topology's nodes, so that they can be found after its graph is erased.

        Raises:
            StateConflict: some nodes have not ended.
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
        """Erase as many nodes as time allows; returns whether no node is left.

        A node that is retried at the same time runs to its end, and then expires as usual.
        """
        run_state = self.stores.topologies.read(topology)
        if run_state is None or not run_state.ran:
            return True
        record = self.stores.tasks.read(topology)
        kept_until = (record.expires_at if record else None) or self.runtime.now() + self.policy.longest
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
        """Erase the nodes of an inner topology, while its record still shows that it is a topology."""
        if not node.is_topology or node.erased or not node.is_terminal:
            return True
        if (topology_run := self.topology_repository.read(node.id)) is not None:
            self._note_names(topology_run)
        return self.erase(node.id, until)

    def _erase_one(self, kept_until: Millis, node: Task) -> None:
        if node.is_terminal and not node.erased:
            self.task_eraser.erase_record(node, {"node_ref": None, "expires_at": node.expires_at or kept_until})


@frozen
class TopologyEraser:
    """Erases tasks, including topologies with their nodes."""

    task_eraser: TaskEraser
    node_eraser: NodeEraser
    stores: Stores
    runtime: Runtime
    bulk_operations: BulkOperations

    def erase(
        self,
        owner: str,
        task_id: TaskId,
        version: int | None = None,
        *,
        first: Callable[[Task], None] | None = None,
    ) -> None:
        """Erase a task; a task that has not started is cancelled first.

        If there are many nodes, a bulk operation erases them.

        Args:
            owner: owner who requests the erasure.
            task_id: id of the task.
            version: required version; `None` for any version.
            first: removes the task's data outside its record before the record is erased, so that a crash in between
                leaves no such data; a task that is retried at that moment fails, because its payload is missing.

        Raises:
            TaskNotFound: the task does not exist, belongs to another owner, or was erased before.
            StateConflict: the task is running, has steps left after its outcome, or is a node of a kept topology.
            VersionMismatch: the task is not at the required version.
            Unavailable: a store failed, or concurrent writes kept changing the task.
        """
        try:
            task = self.task_eraser.erase(owner, task_id, version, partial(self._prepare, first))
        except TaskNotFound:
            record = self.stores.tasks.read(task_id)
            if record is not None and record.owner == owner and record.erased:
                # The process that erased the topology may have crashed before erasing its nodes.
                self._erase_nodes(owner, task_id)
            raise
        if isinstance(task.target, TopologyTarget):
            self._erase_nodes(owner, task_id)

    def erase_topology(self, owner: str, topology: TaskId, version: int | None = None) -> None:
        """Erase a topology, as `erase` does; reject any other task.

        Raises:
            TaskNotFound: no topology has this id.
        """
        record = self.stores.tasks.read(topology)
        if record is not None and not (record.erased or isinstance(record.target, TopologyTarget)):
            raise TaskNotFound(topology)
        self.erase(owner, topology, version)

    def _prepare(self, first: Callable[[Task], None] | None, task: Task) -> None:
        if task.node_ref is not None:
            topology = self.stores.tasks.read(task.node_ref.topology)
            if topology is not None and not topology.erased:
                # This node is needed if the topology is retried or shown.
                raise StateConflict(task, "deleted on its own: delete its topology, which deletes all of its nodes")
        if isinstance(task.target, TopologyTarget):
            self.node_eraser.remember(task)
        if first is not None:
            first(task)

    def _erase_nodes(self, owner: str, topology: TaskId) -> None:
        if not self.node_eraser.erase(topology, self.runtime.now() + BULK_INLINE):
            running = self.bulk_operations.latest_of(topology)
            if running is None or not running.is_running or running.kind is not BulkKind.DELETE:
                self.bulk_operations.start_on(owner, topology, BulkKind.DELETE, None)


def _task_ids(run_state: RunState) -> Iterator[TaskId]:
    """The ids of a topology's nodes in all its runs; not every node took part in each run."""
    for number, begun in enumerate(run_state.runs, 1):
        run = Run(run_state.topology, number, begun.at, begun.shards)
        yield from (run.task_id(key) for key in run_state.ran)


_TRIES = 5


@frozen
class Retention:
    """Keeps nodes from expiring, or lets them expire. Each call may be repeated.

    Attributes:
        policy: how long a finished task is kept.
    """

    topology_repository: TopologyRepository
    stores: Stores
    runtime: Runtime
    policy: RetentionPolicy

    def keep(self, topology_run: TopologyRun, statuses: Statuses) -> None:
        """Remove the expiry from the nodes of an active run; nodes that a retry keeps may have an expiry."""
        ids = [topology_run.run_state.task_id(key) for key, status in statuses.items() if status.expires_at is not None]
        if ids:
            for key, status in statuses.items():
                if status.is_topology and status.expires_at is not None:
                    # Inner nodes come first, because these steps are repeated after a crash only while the node itself
                    # has an expiry.
                    self._keep_inner(topology_run.run_state.task_id(key))
            self._set(ids, None)
            # If the topology has ended in the meantime, this call may just have removed the expiry that the topology's
            # end set.
            self.let_expire(topology_run.task.id)

    def _keep_inner(self, topology: TaskId) -> None:
        if (inner := self.topology_repository.read(topology)) is not None:
            self.keep(inner, self.topology_repository.statuses(inner))

    def let_expire(self, topology: TaskId) -> None:
        """Let the nodes of an ended topology expire, after the topology itself.

        If a node ends later, its worker finds that the topology has ended, and sets the node's expiry.
        """
        topology_run = self.topology_repository.read(topology)
        if topology_run is not None and not self.is_needed(topology_run):
            self._let_expire(topology_run, self.expiry_of(topology_run))

    def is_needed(self, topology_run: TopologyRun) -> bool:
        """Whether a topology may still need its nodes, because it or a topology that contains it is running."""
        if not topology_run.task.is_terminal:
            return True
        outer = self._outer(topology_run)
        return outer is not None and outer.is_present and self.is_needed(outer)

    def expiry_of(self, topology_run: TopologyRun) -> Millis:
        """The expiry of an ended topology if it finishes now; an inner topology expires after its outer topology.

        The outer topology may already have set an expiry for an unfinished topology. If finishing takes days, the
        topology needs a later expiry, so the earlier expiry is not used.
        """
        task = topology_run.task
        if task.finished_at is not None and task.expires_at is not None:
            return task.expires_at
        kept_until = self.runtime.now() + self.policy.of(task.type) + (NODE_MARGIN if task.node_ref is not None else 0)
        outer = self._outer(topology_run)
        return max(kept_until, task.expires_at or 0, 0 if outer is None else self.expiry_of_nodes(outer))

    def expiry_of_nodes(self, topology_run: TopologyRun) -> Millis:
        """The earliest expiry of the nodes of an ended topology."""
        return self.expiry_of(topology_run) + NODE_MARGIN

    def _outer(self, topology_run: TopologyRun) -> TopologyRun | None:
        """The topology in which this topology is a node, if any."""
        node_ref = topology_run.task.node_ref
        outer = None if node_ref is None else self.topology_repository.read(node_ref.topology)
        if node_ref is None or outer is None:
            return None
        return outer if outer.run_state.task_id(node_ref.key) == topology_run.task.id else None

    def _let_expire(self, topology_run: TopologyRun, expires_at: Millis) -> None:
        ids = [topology_run.run_state.task_id(key) for key in topology_run.graph.by_key]
        for task in self._set(ids, expires_at + NODE_MARGIN):
            inner = self.topology_repository.read(task.id) if task.is_topology and task.is_terminal else None
            if inner is not None:
                self._let_expire(inner, inner.task.expires_at or expires_at + NODE_MARGIN)

    def _set(self, ids: Collection[TaskId], expires_at: Millis | None) -> Collection[Task]:
        """Set or remove the expiry of ended tasks, but never set an earlier time; returns all tasks as read."""
        found = self.stores.tasks.read_many(list(ids), consistent=True)
        self.runtime.executor.map(lambda task: self._set_one(task, expires_at), found.values())
        return found.values()

    def _set_one(self, task: Task | None, expires_at: Millis | None) -> None:
        for _ in range(_TRIES):
            if task is None or not task.is_terminal or _is_kept(task.expires_at, expires_at):
                return
            if expires_at is None:
                retain(self.stores.contents, task)
            else:
                let_expire(self.stores.contents, task, expires_at)
            # The version guards this write, so a node written in the meantime is checked again.
            guard = Guard(version=task.version)
            sets: TaskChanges = {"expires_at": expires_at}
            end = self.stores.tasks.apply(Write(task.id, Move.RETAIN, self.runtime.nonce(), guard, sets))
            if isinstance(end, Applied):
                return
            task = end.task
        raise Unavailable("a node has too many concurrent writes")


def _is_kept(present: Millis | None, wanted: Millis | None) -> bool:
    """Whether a node's expiry need not change; a difference of less than half the margin is not worth a write."""
    if present is None or wanted is None:
        return present is wanted
    return present >= wanted - NODE_MARGIN // 2
