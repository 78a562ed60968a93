"""Composes the use cases for tasks and topologies.

Most requests create or read tasks, so the modules for changing and controlling tasks and for topologies are imported
within their properties.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import BulkServices, CoreServices
from duetime.services.tasks.create import BatchCreator, KeyConflicts, TaskCreator, Uploads
from duetime.services.tasks.read import OutcomeWaiter, TargetQueryService

if TYPE_CHECKING:
    from duetime.adapters.step_functions import StepFunctionsStateMachine
    from duetime.domain.cost_estimates import TaskWorkloads
    from duetime.domain.topologies.graph import Graph
    from duetime.services.dependencies import DependencyReader
    from duetime.services.explanations.tasks import TaskExplainer
    from duetime.services.tasks.approvals import Approvals
    from duetime.services.tasks.attempt_reports import AttemptReports
    from duetime.services.tasks.control import TaskControl
    from duetime.services.tasks.erase import TaskEraser
    from duetime.services.tasks.read import TaskReader
    from duetime.services.tasks.update import TaskUpdater
    from duetime.services.topologies.child_tasks import ChildCanceller
    from duetime.services.topologies.deletion import NodeEraser, TopologyEraser
    from duetime.services.topologies.node_finished import NodeFinished
    from duetime.services.topologies.node_tasks import NodeTasks
    from duetime.services.topologies.node_transitions import NodeActions
    from duetime.services.topologies.reconciler import TopologyReconciler, TopologyRollback
    from duetime.services.topologies.repository import TopologyRepository
    from duetime.services.topologies.service import TopologyService
    from duetime.services.topologies.state_machine_steps import StateMachineSteps, TopologyWatchdog


class TaskServices(Part):
    """Creates, reads, changes and controls tasks."""

    @cached_property
    def creator(self) -> TaskCreator:
        """Creates tasks."""
        core = self.part(CoreServices)
        conflicts = KeyConflicts(lambda: self.updater, core.stores.keys, self.runtime)
        return TaskCreator(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            shards=core.shards,
            rules=core.creation_rules,
            key_conflicts=conflicts,
            dependency_reader=self._dependency_reader,
        )

    def _dependency_reader(self) -> DependencyReader:
        from duetime.composition.attempts import DependencyServices

        return self.part(DependencyServices).reader

    @cached_property
    def batch_creator(self) -> BatchCreator:
        """Creates many tasks at once."""
        return BatchCreator(self.creator)

    @cached_property
    def reader(self) -> TaskReader:
        """Reads tasks."""
        return self.part(CoreServices).task_reader

    @cached_property
    def updater(self) -> TaskUpdater:
        """Changes and cancels tasks."""
        from duetime.composition.attempts import LockServices, OccurrenceServices
        from duetime.services.tasks.update import TaskUpdater

        core = self.part(CoreServices)
        return TaskUpdater(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            retention=self.settings.retention,
            lock_manager=self.part(LockServices).manager,
            rules=core.creation_rules,
            occurrence_listener=lambda: self.part(OccurrenceServices).overlap_control,
            order_lines=lambda: core.order_lines,
        )

    @cached_property
    def control(self) -> TaskControl:
        """Pauses, resumes, runs, retries and stops tasks."""
        from duetime.composition.attempts import LockServices
        from duetime.services.tasks.control import TaskControl, TaskReopener

        core = self.part(CoreServices)
        return TaskControl(
            stores=core.stores,
            enqueuer=core.enqueuer,
            task_updater=self.updater,
            lock_manager=self.part(LockServices).manager,
            runtime=self.runtime,
            reopener=TaskReopener(core.stores, core.enqueuer, self.runtime),
        )

    @cached_property
    def uploads(self) -> Uploads:
        """Begins payload uploads."""
        return Uploads(self.part(CoreServices).stores.uploads, self.runtime)

    @cached_property
    def eraser(self) -> TaskEraser:
        """Erases tasks."""
        from duetime.services.tasks.erase import TaskEraser

        return TaskEraser(self.part(CoreServices).stores, self.updater, self.runtime)

    @cached_property
    def approvals(self) -> Approvals:
        """Records decisions on tasks that wait for an approval."""
        # Few requests are decisions, so the module is imported only for them.
        from duetime.services.tasks.approvals import Approvals

        core = self.part(CoreServices)
        return Approvals(self.reader, core.stores, core.enqueuer, self.runtime, self.settings.retention)

    @cached_property
    def attempt_reports(self) -> AttemptReports:
        """Processes heartbeats and notifications from asynchronous targets."""
        from duetime.composition.attempts import LockServices, OutcomeServices
        from duetime.services.tasks.attempt_reports import AttemptReports

        core, outcomes = self.part(CoreServices), self.part(OutcomeServices)
        return AttemptReports(
            task_reader=self.reader,
            stores=core.stores,
            enqueuer=core.enqueuer,
            outcome_writer=outcomes.delegating_writer,
            completion=outcomes.delegated_completion,
            lock_manager=self.part(LockServices).manager,
            runtime=self.runtime,
        )

    @cached_property
    def waiter(self) -> OutcomeWaiter:
        """Waits for the outcomes of tasks."""
        core = self.part(CoreServices)
        return OutcomeWaiter(core.stores.tasks, self.runtime.clock, core.long_polls)

    @cached_property
    def explainer(self) -> TaskExplainer:
        """Explains why tasks wait, and how they spent their time."""
        from duetime.services.explanations.tasks import TaskExplainer

        core = self.part(CoreServices)
        return TaskExplainer(
            stores=core.stores,
            task_reader=self.reader,
            topology_repository=core.topology_outlines,
            steps=core.steps,
            clock=self.runtime.clock,
            lease=self.settings.lease_ms,
        )

    @cached_property
    def target_queries(self) -> TargetQueryService:
        """Sends queries to tasks' endpoints."""
        from duetime.adapters.targets.http_target import HttpRunner
        from duetime.composition.invoked_functions import HttpServices

        runner = HttpRunner(self.part(HttpServices).caller)
        return TargetQueryService(self.reader, runner, self.runtime.random_source)

    def workloads_of(self, owner: str) -> TaskWorkloads:
        """Computes the workloads of tasks that an owner wants to create."""
        from duetime.adapters.dynamodb.attribute_values import smaller
        from duetime.adapters.targets.callbacks import EventEncoding
        from duetime.contract.tasks.encoding import entry
        from duetime.domain.cost_estimates import Circumstances, TaskWorkloads
        from duetime.domain.tasks.notices import ConsolePages
        from duetime.domain.times import MINUTE
        from duetime_common.cost_estimate import Workload
        from duetime_common.prices import DEFAULT_REGION, PRICES

        settings = self.settings
        workload = Workload(
            tasks=1,
            precision=settings.precision.value,
            has_summary=bool(settings.summary_spread),
            has_lists=bool(settings.task_lists),
            has_traces=bool(settings.traces),
            region=settings.region if settings.region in PRICES else DEFAULT_REGION,
        )
        circumstances = Circumstances(
            owner=owner,
            now=self.runtime.clock.now(),
            # A minute is added, because the trigger reads complete minutes.
            soon=settings.look_ahead_ms + MINUTE,
            pulled_types=settings.pulled_queue_urls.keys(),
            stored_size=lambda payload: len(smaller(payload) or payload),
            outcome_event=EventEncoding(entry, ConsolePages(settings.console_url)).of_outcome,
            workload=workload,
        )
        return TaskWorkloads(circumstances)


class TopologyServices(Part):
    """Runs, shows and controls topologies."""

    @cached_property
    def outlines(self) -> TopologyRepository:
        """Reads topologies with graph outlines only, which does not require importing other libraries."""
        return self.part(CoreServices).topology_outlines

    @cached_property
    def definitions(self) -> TopologyRepository:
        """Reads topologies with their complete graphs, including the templates for the nodes' tasks."""
        from duetime.services.topologies.repository import TopologyRepository

        return TopologyRepository(self.part(CoreServices).stores, self.runtime, read_stored_graph)

    @cached_property
    def service(self) -> TopologyService:
        """Shows and controls topologies."""
        from duetime.services.topologies.service import TopologyService

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
        """Cancels the child tasks of a task, which may be topologies."""
        from duetime.services.topologies.child_tasks import ChildCanceller

        tasks = self.part(TaskServices)
        return ChildCanceller(
            self.part(CoreServices).stores.tasks, tasks.reader, tasks.control, self.service, self.runtime
        )

    @cached_property
    def reconciler(self) -> TopologyReconciler:
        """Controls nodes as the state of their topology's run requires."""
        from duetime.services.topologies.deletion import Retention
        from duetime.services.topologies.reconciler import NodeRequests, TopologyReconciler

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
        """Rolls back topologies that are nodes of other topologies."""
        from duetime.services.topologies.reconciler import TopologyRollback

        return TopologyRollback(self.reconciler)

    @cached_property
    def eraser(self) -> TopologyEraser:
        """Erases tasks, including topologies with their nodes."""
        from duetime.services.topologies.deletion import TopologyEraser

        stores, operations = self.part(CoreServices).stores, self.part(BulkServices).operations
        return TopologyEraser(self.part(TaskServices).eraser, self.node_eraser, stores, self.runtime, operations)

    @cached_property
    def node_eraser(self) -> NodeEraser:
        """Erases the nodes of erased topologies."""
        from duetime.services.topologies.deletion import NodeEraser

        stores, task_eraser = self.part(CoreServices).stores, self.part(TaskServices).eraser
        return NodeEraser(self.outlines, task_eraser, stores, self.runtime, self.settings.retention)

    @cached_property
    def node_finished(self) -> NodeFinished:
        """Runs the steps that follow a topology node's end."""
        from duetime.services.topologies.node_finished import Joins, NodeFinished

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
        """Runs the states of the state machine for topologies."""
        from duetime.services.topologies.state_machine_steps import StateMachineSteps

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
        """Checks running topologies."""
        from duetime.composition.attempts import OutcomeServices
        from duetime.services.topologies.state_machine_steps import TopologyWatchdog

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
        from duetime.adapters.step_functions import StepFunctionsStateMachine

        return StepFunctionsStateMachine(self.platform.clients.step_functions(), self.settings.topology_machine)

    @cached_property
    def _nodes(self) -> NodeActions:
        from duetime.services.topologies.node_transitions import Conditions, NodeActions

        core, retention = self.part(CoreServices), self.settings.retention
        conditions = Conditions(self.outlines, core.stores)
        return NodeActions(self.outlines, core.stores, core.enqueuer, self.runtime, conditions, retention)

    @cached_property
    def _node_tasks(self) -> NodeTasks:
        from duetime.services.topologies.node_tasks import NodeTasks

        core = self.part(CoreServices)
        return NodeTasks(
            self.definitions, core.stores, core.enqueuer, self.runtime, core.target_rules, core.type_defaults
        )


def read_stored_graph(payload: bytes) -> Graph:
    """The `duetime.ports.topologies.GraphReader` for complete graphs that were accepted earlier."""
    # The module is imported here, because most steps read only outlines, which do not need pydantic.
    from duetime.contract.topologies import decoding

    return decoding.read_stored_graph(payload)
