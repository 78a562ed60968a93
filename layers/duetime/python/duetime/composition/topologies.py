"""Composes the use cases of topologies."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.step_functions import StepFunctionsStateMachine
from duetime.composition import Part
from duetime.composition.attempts import OutcomeServices
from duetime.composition.core import BulkServices, CoreServices
from duetime.composition.tasks import TaskServices
from duetime.services.topologies.deletion import NodeEraser, Retention, TopologyEraser
from duetime.services.topologies.node_finished import Joins, NodeFinished
from duetime.services.topologies.node_tasks import NodeTasks
from duetime.services.topologies.node_transitions import Conditions, NodeActions
from duetime.services.topologies.reconciler import NodeRequests, TopologyReconciler, TopologyRollback
from duetime.services.topologies.repository import TopologyRepository
from duetime.services.topologies.service import TopologyService
from duetime.services.topologies.state_machine_steps import StateMachineSteps, TopologyWatchdog

if TYPE_CHECKING:
    from duetime.domain.topologies.graph import Graph
    from duetime.services.topologies.child_tasks import ChildCanceller


class TopologyServices(Part):
    """Runs, shows and controls topologies."""

    @cached_property
    def outlines(self) -> TopologyRepository:
        """Reads topologies with the outlines of their graphs, without loading further libraries."""
        return self.part(CoreServices).topology_outlines

    @cached_property
    def definitions(self) -> TopologyRepository:
        """Reads topologies with their whole graphs, including the templates of their nodes' tasks."""
        return TopologyRepository(self.part(CoreServices).stores, self.runtime, read_stored_graph)

    @cached_property
    def service(self) -> TopologyService:
        """Shows and controls topologies."""
        return TopologyService(
            topology_repository=self.definitions,
            reconciler=self.reconciler,
            task_reader=self.part(TaskServices).reader,
            task_control=self.part(TaskServices).control,
            clock=self.runtime.clock,
            bulk_operations=self.part(BulkServices).operations,
        )

    @cached_property
    def child_canceller(self) -> ChildCanceller:
        """Cancels the tasks that a task started, which may be topologies."""
        from duetime.services.topologies.child_tasks import ChildCanceller

        tasks = self.part(TaskServices)
        return ChildCanceller(
            self.part(CoreServices).stores.tasks, tasks.reader, tasks.control, self.service, self.runtime
        )

    @cached_property
    def reconciler(self) -> TopologyReconciler:
        """Acts on nodes as the state of their run requires."""
        stores, retention = self.part(CoreServices).stores, self.settings.retention
        return TopologyReconciler(
            topology_repository=self.outlines,
            nodes=self._nodes,
            retention=Retention(self.outlines, stores, self.runtime, retention),
            node_requests=NodeRequests(self.part(TaskServices).control, self.part(BulkServices).operations),
            runtime=self.runtime,
            bulk_operations=self.part(BulkServices).operations,
        )

    @cached_property
    def rollback(self) -> TopologyRollback:
        """Rolls back topologies that are nodes of others."""
        return TopologyRollback(self.reconciler)

    @cached_property
    def eraser(self) -> TopologyEraser:
        """Erases tasks, including topologies with their nodes."""
        stores, operations = self.part(CoreServices).stores, self.part(BulkServices).operations
        return TopologyEraser(self.part(TaskServices).eraser, self.node_eraser, stores, self.runtime, operations)

    @cached_property
    def node_eraser(self) -> NodeEraser:
        """Erases the nodes of erased topologies."""
        stores, task_eraser = self.part(CoreServices).stores, self.part(TaskServices).eraser
        return NodeEraser(self.outlines, task_eraser, stores, self.runtime, self.settings.retention)

    @cached_property
    def node_finished(self) -> NodeFinished:
        """Does the steps after the end of a topology's node."""
        return NodeFinished(
            topology_repository=self.outlines,
            node_tasks=self._node_tasks,
            joins=Joins(self.outlines, self._nodes, self.part(CoreServices).enqueuer, self.runtime.executor),
            reconciler=self.reconciler,
            state_machine_steps=self.state_machine_steps,
            store=self.part(CoreServices).stores.topologies,
            machine=self.state_machine,
        )

    @cached_property
    def state_machine_steps(self) -> StateMachineSteps:
        """Runs topologies, state by state."""
        core = self.part(CoreServices)
        return StateMachineSteps(
            topology_repository=self.outlines,
            definitions=self.definitions,
            node_tasks=self._node_tasks,
            nodes=self._nodes,
            reconciler=self.reconciler,
            attempt_reports=self.part(TaskServices).attempt_reports,
            stores=core.stores,
            machine=self.state_machine,
            runtime=self.runtime,
            shards=core.shards,
        )

    @cached_property
    def watchdog(self) -> TopologyWatchdog:
        """Watches running topologies."""
        return TopologyWatchdog(
            topology_repository=self.outlines,
            state_machine_steps=self.state_machine_steps,
            task_control=self.part(TaskServices).control,
            machine=self.state_machine,
            outcome_writer=self.part(OutcomeServices).delegating_writer,
            enqueuer=self.part(CoreServices).enqueuer,
            runtime=self.runtime,
        )

    @cached_property
    def state_machine(self) -> StepFunctionsStateMachine:
        """The state machine that runs topologies."""
        return StepFunctionsStateMachine(self.platform.clients.step_functions(), self.settings.topology_machine)

    @cached_property
    def _nodes(self) -> NodeActions:
        core, retention = self.part(CoreServices), self.settings.retention
        conditions = Conditions(self.outlines, core.stores)
        return NodeActions(self.outlines, core.stores, core.enqueuer, self.runtime, conditions, retention)

    @cached_property
    def _node_tasks(self) -> NodeTasks:
        core = self.part(CoreServices)
        return NodeTasks(
            self.definitions, core.stores, core.enqueuer, self.runtime, core.target_rules, core.type_defaults
        )


def read_stored_graph(payload: bytes) -> Graph:
    """`duetime.ports.topologies.GraphReader` for whole graphs that were accepted before."""
    # Imported here: most steps read outlines only, without the models of the REST contract (pydantic).
    from duetime.contract.topologies import decoding

    return decoding.read_stored_graph(payload)
