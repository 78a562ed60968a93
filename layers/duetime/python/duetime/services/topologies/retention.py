"""How long nodes are kept: as long as their topology, and that of a topology within another as long as the outermost.

A node that has ended has no expiry while its topology may still need it: as the parent of a node that is given its
result, in the state of the run, or to be rolled back. The end of the run gives all its nodes their expiry, and a
retry takes it from those that it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import NODE_MARGIN
from duetime.domain.tasks.states import Move
from duetime.services.content_retention import let_expire, retain

if TYPE_CHECKING:
    from collections.abc import Collection

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis
    from duetime.domain.topologies.node_status import Statuses
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Retention:
    """Keeps nodes, and lets them expire. Each may be done twice.

    Attributes:
        period: how long a finished task is kept, in milliseconds.
    """

    topology_repository: TopologyRepository
    stores: Stores
    runtime: Runtime
    period: Millis

    def keep(self, topology_run: TopologyRun, statuses: Statuses) -> None:
        """Keep the nodes of a run that goes on, if any of them would expire: those that a retry keeps do."""
        ids = [topology_run.run_state.task_id(key) for key, status in statuses.items() if status.expires_at is not None]
        if ids:
            for key, status in statuses.items():
                if status.is_topology and status.expires_at is not None:
                    # First of all: while the node itself would expire, a crash has this done again.
                    self._keep_inner(topology_run.run_state.task_id(key))
            self._set(ids, None)
            # If it has ended meanwhile, what its end has set was perhaps just taken away.
            self.let_expire(topology_run.task.id)

    def _keep_inner(self, topology: TaskId) -> None:
        if (inner := self.topology_repository.read(topology)) is not None:
            self.keep(inner, self.topology_repository.statuses(inner))

    def let_expire(self, topology: TaskId) -> None:
        """Let the nodes of a topology that has ended expire, after the topology itself.

        A node that ends later sees that the topology has ended, and is given its expiry by its own worker.
        """
        topology_run = self.topology_repository.read(topology)
        if topology_run is not None and not self.is_needed(topology_run):
            self._let_expire(topology_run, self.expiry_of(topology_run))

    def is_needed(self, topology_run: TopologyRun) -> bool:
        """Whether a topology may still need its nodes: it goes on, or it is a node of one that does."""
        if not topology_run.task.is_terminal:
            return True
        outer = self._outer(topology_run)
        return outer is not None and outer.is_present and self.is_needed(outer)

    def expiry_of(self, topology_run: TopologyRun) -> Millis:
        """When a topology expires that has ended, if it is finished now: after the one that it is a node of.

        A topology that is not finished yet may have an expiry from the one that it is a node of. It is finished with a
        later one if that takes days, so this does not count.
        """
        task = topology_run.task
        if task.finished_at is not None and task.expires_at is not None:
            return task.expires_at
        kept_until = self.runtime.now() + self.period + (NODE_MARGIN if task.node_ref is not None else 0)
        outer = self._outer(topology_run)
        return max(kept_until, task.expires_at or 0, 0 if outer is None else self.expiry_of_nodes(outer))

    def expiry_of_nodes(self, topology_run: TopologyRun) -> Millis:
        """When the nodes of a topology expire that has ended, at the earliest."""
        return self.expiry_of(topology_run) + NODE_MARGIN

    def _outer(self, topology_run: TopologyRun) -> TopologyRun | None:
        """The topology that one is a node of."""
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
        """Set or remove the expiry of those that have ended, and never make it earlier; returns all, as they were."""
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
            # By its version: a node that is written meanwhile is checked once more.
            guard = Guard(version=task.version)
            sets: TaskChanges = {"expires_at": expires_at}
            end = self.stores.tasks.apply(Write(task.id, Move.RETAIN, self.runtime.nonce(), guard, sets))
            if isinstance(end, Applied):
                return
            task = end.task
        raise Unavailable("a node was written by others again and again")


def _is_kept(present: Millis | None, wanted: Millis | None) -> bool:
    """Whether a node's expiry can stay. A difference of less than half the margin is not worth a write."""
    if present is None or wanted is None:
        return present is wanted
    return present >= wanted - NODE_MARGIN // 2
