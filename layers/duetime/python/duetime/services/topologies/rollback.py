"""Rolling back a topology that is a node of another: its own nodes are rolled back, children before parents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import ROLLBACK_CHECK_PAUSE
from duetime.domain.tasks.attempt_results import Postponed, Succeeded, failure
from duetime.domain.tasks.states import State

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.services.topologies.reconciler import TopologyReconciler

_GOES_ON = "its nodes are being rolled back"


@dataclass(frozen=True, slots=True)
class TopologyRollback:
    """`duetime.ports.topologies.TopologyRollback`. It remembers nothing: each step reads where the nodes stand."""

    reconciler: TopologyReconciler

    def step(self, task: Task, until: Millis) -> Ending:
        """Have the nodes rolled back that may be now, and say how far the rollback is."""
        topology_run = self.reconciler.topology_repository.read(task.id)
        if topology_run is None:
            # Its run never began.
            return Succeeded(b"null")
        found, statuses = self.reconciler.roll_back(topology_run, until)
        if found.state is State.ROLLED_BACK:
            return Succeeded(b"null")
        if found.state is State.FAILED:
            stuck = next(key for key in topology_run.graph.order if statuses[key].rollback_failed)
            return failure("RollbackFailed", f"the node {stuck} could not be rolled back", retriable=False)
        return Postponed(self.reconciler.runtime.now() + ROLLBACK_CHECK_PAUSE, _GOES_ON)
