"""Composes the services that workers and pull workers share: locks, switches, gates, outcomes and dependencies."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import CoreServices, QuotaServices
from duetime.domain.tasks.targets import Phase
from duetime.services.locking import LockAdmin, LockManager
from duetime.services.outcomes.completion_steps import DelegatedCompletion, TracebackRecorder
from duetime.services.outcomes.outcome import OutcomeWriter
from duetime.services.start_gates import ApprovalGate, EventGate, HandlerAvailability, StartGates, SwitchGate

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.targets.python_handlers import HandlersPackage
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.services.attempt_steps import AttemptSteps
    from duetime.services.dependencies import DependencyChecker, DependencyReader
    from duetime.services.groups import CompletionGate
    from duetime.services.outcomes.completion_steps import CompletionSteps
    from duetime.services.pull.lease import LeaseService, PullLocks
    from duetime.services.pull.report import LeaseReports
    from duetime.services.quotas.at_once import LeaseQuota
    from duetime.services.schedules.overlap import OverlapControl
    from duetime.services.schedules.preview import AwaitedOccurrences
    from duetime.services.switch_admin import SwitchAdmin
    from duetime.services.tasks.control import TaskControl
    from duetime.services.worker.dead_letters import DeadLetterService


class LockServices(Part):
    """Takes, shows and releases locks."""

    @cached_property
    def manager(self) -> LockManager:
        """Takes locks, and hands released locks on to waiting tasks."""
        core = self.part(CoreServices)
        return LockManager(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            lease=self.settings.lease_ms,
            concurrency_caps=self.part(SwitchServices).gate,
        )

    @cached_property
    def admin(self) -> LockAdmin:
        """Shows locks, and releases locks by force."""
        return LockAdmin(self.part(CoreServices).stores.locks, self.manager, self.runtime)


class SwitchServices(Part):
    """Applies and sets switches."""

    @cached_property
    def gate(self) -> SwitchGate:
        """Applies switches to tasks that are about to start."""
        return SwitchGate(self.part(CoreServices).stores.switches, self.runtime)

    @cached_property
    def admin(self) -> SwitchAdmin:
        """Sets switches, and lists switches and circuits."""
        from duetime.services.switch_admin import SwitchAdmin

        return SwitchAdmin(self.part(CoreServices).stores, self.runtime)


class OccurrenceServices(Part):
    """Applies schedules' overlap policies to their runs. This part is created for the first task of a schedule."""

    @cached_property
    def overlap_control(self) -> OverlapControl:
        """Starts, queues, skips and replaces overlapping runs."""
        # The modules are imported here, because the module for schedule times takes long to import.
        from duetime.composition.schedules import ScheduleServices
        from duetime.services.schedules.overlap import OverlapControl, RunQueue

        core, expander = self.part(CoreServices), self.part(ScheduleServices).expander
        run_queue = RunQueue(core.stores.tasks, lambda: self._task_control, core.enqueuer, self.runtime.clock)
        return OverlapControl(core.stores, core.enqueuer, expander, self.runtime, run_queue)

    @cached_property
    def _task_control(self) -> TaskControl:
        """Stops runs that another run replaces."""
        from duetime.services.tasks.control import TaskControl, TaskReopener
        from duetime.services.tasks.update import TaskUpdater

        core, locks = self.part(CoreServices), self.part(LockServices).manager
        updater = TaskUpdater(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            retention=self.settings.retention,
            lock_manager=locks,
            rules=core.creation_rules,
            occurrence_listener=lambda: self.overlap_control,
            order_lines=lambda: core.order_lines,
        )
        return TaskControl(
            core.stores,
            core.enqueuer,
            updater,
            locks,
            self.runtime,
            TaskReopener(core.stores, core.enqueuer, self.runtime),
        )


class StartGateServices(Part):
    """Composes the gates that keep tasks from starting, for example because of a switch, an approval or a schedule."""

    @cached_property
    def gates(self) -> StartGates:
        """All gates, in the order in which they are checked."""
        return StartGates(
            (self.part(SwitchServices).gate, self.handler_availability),
            of_occurrences=lambda: self.part(OccurrenceServices).overlap_control,
            of_ordered=lambda: self.part(CoreServices).order_lines,
            of_completions=lambda: self._completion_gate,
            # Nobody is asked about a task that has to wait for its turn, or that its schedule skips.
            last=(ApprovalGate(self.runtime.clock), EventGate(lambda: self.part(CoreServices).event_waits)),
        )

    @cached_property
    def _completion_gate(self) -> CompletionGate:
        # Few tasks run after a group, so the modules are imported only for them.
        from duetime.services.groups import CompletionGate, GroupMembers

        core = self.part(CoreServices)
        members = GroupMembers(core.stores, core.enqueuer, self.runtime)
        return CompletionGate(core.stores, members, self.runtime)

    @cached_property
    def handler_availability(self) -> HandlerAvailability:
        """Decides whether the handler of a task can be called."""
        return HandlerAvailability(self.handlers_package, self.runtime, self.settings.packaged_types)

    @cached_property
    def handlers_package(self) -> HandlersPackage:
        """The user's handler package."""
        from duetime.adapters.targets.python_handlers import HandlersPackage

        return HandlersPackage(self.settings.handlers, self.runtime.clock)


class OutcomeServices(Part):
    """Writes outcomes, and delegates the next steps."""

    @cached_property
    def delegated_completion(self) -> DelegatedCompletion:
        """Delegates the steps after an outcome to a worker."""
        return DelegatedCompletion(self.part(CoreServices).queues)

    @cached_property
    def delegating_writer(self) -> OutcomeWriter:
        """Writes outcomes, and lets a worker run the steps after an outcome."""
        return self.writer_with(self.delegated_completion)

    def attempt_steps(self, has_lease: Callable[[], bool], task: Task, phase: Phase) -> AttemptSteps:
        """The store for the steps of an attempt's phase, which retries writes for the duration of a lease."""
        return self._steps(has_lease, task, phase, self.settings.lease_ms)

    def reported_steps(self, task: Task) -> AttemptSteps:
        """The store for a pull worker's steps, which does not retry writes, because the worker repeats its request."""
        return self._steps(lambda: True, task, Phase.RUN, 0)

    def _steps(self, has_lease: Callable[[], bool], task: Task, phase: Phase, patience: Millis) -> AttemptSteps:
        # Few handlers have steps, so the modules are imported only for them.
        from duetime.services.attempt_steps import AttemptSteps

        store, retention = self.part(CoreServices).steps, self.settings.retention
        return AttemptSteps(store, has_lease, task, phase, self.runtime, retention, patience)

    def writer_with(self, completion: CompletionSteps) -> OutcomeWriter:
        """Writes outcomes, and lets `completion` run the steps after an outcome."""
        core = self.part(CoreServices)
        return OutcomeWriter(
            stores=core.stores,
            enqueuer=core.enqueuer,
            completion=completion,
            runtime=self.runtime,
            retention=self.settings.retention,
            order_lines=lambda: core.order_lines,
        )


class DeadLetterServices(Part):
    """Handles dead letters."""

    @cached_property
    def dead_letters(self) -> DeadLetterService:
        """Fails the tasks of dead letters, or sends their messages again."""
        from duetime.services.worker.dead_letters import DeadLetterService

        core, outcomes = self.part(CoreServices), self.part(OutcomeServices)
        return DeadLetterService(
            tasks=core.stores.tasks,
            queues=core.queues,
            enqueuer=core.enqueuer,
            outcome_writer=outcomes.delegating_writer,
            completion=outcomes.delegated_completion,
            runtime=self.runtime,
        )


class PullServices(Part):
    """Leases tasks to pull workers."""

    @cached_property
    def leases(self) -> LeaseService:
        """Leases tasks to pull workers."""
        from duetime.services.pull.lease import LeaseClaims, LeaseService, PullMessages

        core = self.part(CoreServices)
        claims = LeaseClaims(
            stores=core.stores,
            queues=core.queues,
            outcome_writer=self.part(OutcomeServices).delegating_writer,
            pull_locks=self._pull_locks,
            input_reader=lambda: core.node_inputs,
            switch_rates=self.part(SwitchServices).gate,
            rate_limits=lambda: core.rate_limiter,
            runtime=self.runtime,
        )
        return LeaseService(
            queues=core.queues,
            claims=claims,
            messages=PullMessages(core.queues, self.runtime),
            pullers=self.settings.pullers,
            long_polls=core.long_polls,
            quota=self._lease_quota,
            runtime=self.runtime,
        )

    @property
    def _lease_quota(self) -> LeaseQuota | None:
        if not self.settings.has_quotas:
            return None
        return self.part(QuotaServices).leases

    @cached_property
    def reports(self) -> LeaseReports:
        """Processes reports from pull workers."""
        from duetime.domain.tasks.notices import ConsolePages
        from duetime.services.pull.report import LeaseReports

        core = self.part(CoreServices)
        return LeaseReports(
            stores=core.stores,
            queues=core.queues,
            outcome_writer=self.part(OutcomeServices).delegating_writer,
            pull_locks=self._pull_locks,
            pullers=self.settings.pullers,
            traceback_recorder=TracebackRecorder(
                store=core.tracebacks,
                runtime=self.runtime,
                is_kept=self.settings.keeps_tracebacks,
                retention=self.settings.retention,
                pages=ConsolePages(self.settings.console_url),
            ),
            attempt_steps=self.part(OutcomeServices).reported_steps,
            runtime=self.runtime,
        )

    @cached_property
    def _pull_locks(self) -> PullLocks:
        from duetime.services.pull.lease import PullLocks

        return PullLocks(self.part(LockServices).manager, self.part(StartGateServices).gates)


class DependencyServices(Part):
    """Starts tasks that depend on other tasks."""

    @cached_property
    def reader(self) -> DependencyReader:
        """Reads the dependencies of tasks."""
        from duetime.services.dependencies import DependencyReader

        return DependencyReader(self.part(CoreServices).stores.tasks, lambda: self._occurrences)

    @cached_property
    def _occurrences(self) -> AwaitedOccurrences:
        # Few dependent tasks wait for an occurrence, and the modules for schedule times take long to import.
        from duetime.services.schedules.preview import AwaitedOccurrences

        return AwaitedOccurrences(self.part(CoreServices).stores, self.runtime.clock)

    @cached_property
    def checker(self) -> DependencyChecker:
        """Starts or ends tasks whose dependencies have ended."""
        from duetime.adapters.dynamodb.dependencies import DynamoDependentStore
        from duetime.services.dependencies import DependencyChecker

        core = self.part(CoreServices)
        return DependencyChecker(
            reader=self.reader,
            stores=core.stores,
            dependents=DynamoDependentStore(self.platform.clients.dynamodb(), self.settings.table),
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            retention=self.settings.retention,
        )
