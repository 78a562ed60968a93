"""What users ask of topologies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid, TaskUnknown
from duetime.domain.states import LEASED
from duetime.domain.task import TopologyTarget
from duetime.domain.topologies.statuses import NodeStatus

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.task import Task
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.head import Head
    from duetime.domain.topologies.statuses import Statuses
    from duetime.services.creating import Creating, Order
    from duetime.services.reading import Reading
    from duetime.services.steering import Steering
    from duetime.services.topologies.conducting import Conducting
    from duetime.services.topologies.wholes import Wholes


@dataclass(frozen=True, slots=True)
class View:
    """A topology as its user sees it.

    Attributes:
        head: how far it has come; `None` while it has not begun.
    """

    task: Task
    graph: Graph
    head: Head | None
    statuses: Statuses


@dataclass(frozen=True, slots=True)
class Directing:
    """Accepts, shows and steers topologies; each method raises `TaskUnknown` for what is no topology of the owner's.

    What is steered at a version is steered only if the topology's task is still at it.
    """

    wholes: Wholes
    conducting: Conducting
    creating: Creating
    reading: Reading
    steering: Steering

    def create(self, owner: str, order: Order, graph: Graph) -> Task:
        """Accept a topology: an ordinary task, whose payload is the graph.

        Raises:
            FieldInvalid: the target of a node may not be called, or no handler is known for its type.
        """
        for node in graph.nodes:
            try:
                self.creating.rules.accept(node.spec)
            except FieldInvalid as refusal:
                raise FieldInvalid(f"nodes.{node.key}.{refusal.field}", refusal.reason) from None
        return self.creating.create(owner, order)

    def get(self, owner: str, topology: TaskId) -> View:
        """Read a topology with all its nodes."""
        task = self._task(owner, topology)
        whole = self.wholes.read(topology)
        if whole is None:
            graph = self.wholes.graph_of(task)
            return View(task, graph, None, dict.fromkeys(graph.by_key, NodeStatus()))
        return View(whole.task, whole.graph, whole.head, self.wholes.statuses(whole))

    def rerun(self, owner: str, topology: TaskId, version: int | None = None) -> Task:
        """Run a failed topology again: what succeeded is kept."""
        self._task(owner, topology)
        return self.steering.retry(owner, topology, version)

    def cancel(self, owner: str, topology: TaskId, version: int | None = None) -> Task:
        """Take back what has not started, and ask what runs to stop."""
        self._task(owner, topology)
        return self.heed(self.steering.cancel_by_force(owner, topology, version))

    def pause(self, owner: str, topology: TaskId, version: int | None = None) -> Task:
        """Hold what has not started; what runs goes on to its end."""
        self._task(owner, topology)
        return self.heed(self.steering.pause(owner, topology, version))

    def resume(self, owner: str, topology: TaskId, version: int | None = None) -> Task:
        """Let a paused topology go on, with all its nodes."""
        self._task(owner, topology)
        return self.heed(self.steering.resume(owner, topology, version))

    def heed(self, task: Task) -> Task:
        """Have the nodes of a topology heed what was just asked of its task; any other task has none.

        Returns:
            The task as it was given.
        """
        if isinstance(task.target, TopologyTarget) and task.state in LEASED:
            if (whole := self.wholes.read(task.id)) is None:
                return task
            if task.asked is None:
                self.conducting.go_on(whole)
            else:
                self.conducting.steer(whole)
        return task

    def _task(self, owner: str, topology: TaskId) -> Task:
        task = self.reading.record(owner, topology)
        if not isinstance(task.target, TopologyTarget):
            raise TaskUnknown(topology)
        return task
