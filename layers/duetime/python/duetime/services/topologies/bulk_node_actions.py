"""Runs steps of bulk operations on a topology, which bring the nodes to the state requested for the run.

Between two steps, only counts of the work done are stored. Each step reads the nodes' states, so another executor can
take over, and nodes that became ready in the meantime are found too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.bulk import BulkKind
from duetime.domain.tasks.states import LEASED
from duetime.services.bulk.executor import Replaced
from duetime.services.topologies.reconciler import KINDS
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.bulk import BulkOperation, BulkProgress
    from duetime.domain.times import Millis
    from duetime.services.topologies.deletion import NodeEraser
    from duetime.services.topologies.reconciler import TopologyReconciler, Work
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun

STOP_REQUESTS = {kind: requested_action for requested_action, kind in KINDS.items()}
"""For each kind of operation, the request on the topology's task that the operation carries out."""


@frozen
class TopologySteps:
    """Runs steps of operations on topologies."""

    topology_repository: TopologyRepository
    reconciler: TopologyReconciler
    node_eraser: NodeEraser

    def step(self, operation: BulkOperation, until: Millis) -> BulkProgress:
        """Do as much work as fits before `until`.

        Raises:
            Replaced: a later request on the topology has replaced the operation.
        """
        if operation.kind is BulkKind.DELETE and operation.topology is not None:
            return replace(operation.progress, is_complete=self.node_eraser.erase(operation.topology, until))
        topology_run = None if operation.topology is None else self.topology_repository.read(operation.topology)
        if topology_run is None or self._is_over(operation, topology_run):
            return replace(operation.progress, is_complete=True)
        work = self._work(operation, topology_run)
        done = self.reconciler.do(work, until)
        before = operation.progress
        if not work and operation.kind is BulkKind.PAUSE and not self._hold(topology_run, until):
            return before
        if not work and topology_run.task.is_terminal:
            self.reconciler.retention.let_expire(topology_run.task.id)
        return replace(
            before,
            examined=len(topology_run.graph.nodes),
            matched=before.affected + len(work),
            affected=before.affected + done,
            is_complete=not work,
        )

    def _hold(self, topology_run: TopologyRun, until: Millis) -> bool:
        """Hold nodes that a concurrent process may be about to release; returns whether there was enough time."""
        holds = self.reconciler.holds(topology_run)
        return self.reconciler.do(holds, until) == len(holds) and self.reconciler.runtime.now() < until

    def _work(self, operation: BulkOperation, topology_run: TopologyRun) -> Work:
        if operation.kind is BulkKind.RESUME:
            return self.reconciler.resumption(topology_run)
        # The nodes of a run that has ended only need to expire.
        return () if topology_run.run_state.ended else self.reconciler.work(topology_run)

    @staticmethod
    def _is_over(operation: BulkOperation, topology_run: TopologyRun) -> bool:
        """Whether nothing is left to do, because the topology has ended or awaits another attempt or its plan."""
        if not topology_run.is_present:
            return True
        if operation.kind is BulkKind.END:
            return topology_run.run_state.ended and not topology_run.task.is_terminal
        if topology_run.task.state not in LEASED:
            return True
        if topology_run.task.requested_action is not STOP_REQUESTS[operation.kind]:
            raise Replaced
        return False
