"""Requests to nodes: pause, resume, stop. A node that is itself a topology passes them on to its own nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.bulk.operation import BulkKind
from duetime.domain.errors import RequestError, StateConflict
from duetime.domain.tasks.control_changes import by_topology
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.run_state import is_in_progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.node_status import NodeStatus
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.tasks.control import TaskControl
    from duetime.services.topologies.repository import TopologyRun

KINDS = {None: BulkKind.RESUME, RequestedAction.PAUSE: BulkKind.PAUSE, RequestedAction.CANCEL: BulkKind.CANCEL}
"""The operation on the nodes for each request on the topology's task."""


@dataclass(frozen=True, slots=True)
class NodeRequests:
    """Sends requests to nodes on behalf of their topology; drops those that a node's state no longer allows."""

    task_control: TaskControl
    bulk_operations: BulkOperations

    def pause(self, topology_run: TopologyRun, key: str) -> None:
        """Pause a node."""
        self._ask(self.task_control.pause, topology_run, key)

    def resume(self, topology_run: TopologyRun, key: str) -> None:
        """Resume a node."""
        self._ask(self._resumed, topology_run, key)

    def resume_version(self, topology_run: TopologyRun, key: str, version: int) -> None:
        """Resume a node, unless its task has been written since this version."""
        self._ask(self._resumed, topology_run, key, version)

    def is_held(self, topology_run: TopologyRun, key: str, status: NodeStatus) -> bool:
        """Whether a node is paused, or is a topology whose nodes were paused and not resumed with it."""
        if status.state is State.PAUSED or not status.is_topology:
            return status.state is State.PAUSED
        if status.is_pausing or status.state not in LEASED:
            return status.is_pausing
        # The process that resumed it may have crashed before passing the request on.
        return self.bulk_operations.is_last_pause(topology_run.run_state.task_id(key))

    def _resumed(self, owner: str, task_id: TaskId, version: int | None, by: Attribution) -> Task:
        try:
            return self.task_control.resume(owner, task_id, version, by)
        except StateConflict as refusal:
            if not is_in_progress(refusal.task):
                raise
            return refusal.task

    def stop(self, topology_run: TopologyRun, key: str) -> None:
        """Ask a running node to stop."""
        self._ask(self.task_control.stop, topology_run, key)

    def _ask(
        self,
        ask: Callable[[str, TaskId, int | None, Attribution], Task],
        topology_run: TopologyRun,
        key: str,
        version: int | None = None,
    ) -> None:
        owner, task_id = topology_run.task.owner, topology_run.run_state.task_id(key)
        try:
            task = ask(owner, task_id, version, by_topology(topology_run.task))
        except RequestError:
            return
        if task.is_topology and task.state in LEASED:
            self._pass_on(task)

    def _pass_on(self, task: Task) -> None:
        """Start a bulk operation that passes a request on to the nodes of a topology, however many there are."""
        kind = KINDS[task.requested_action]
        earlier = self.bulk_operations.replace_other(task.id, kind)
        if earlier is None or not earlier.is_running:
            self.bulk_operations.start_on(task.owner, task.id, kind, earlier)
