"""Composes the processing of message batches, the gates before a task starts, and the calls to targets."""

from __future__ import annotations

from collections import ChainMap
from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.runtime.process import MeasuredProcess
from duetime.adapters.targets import Targets, TopologyRunner
from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.callbacks import EventEncoding, HttpCallbacks
from duetime.adapters.targets.http_target import HttpRunner
from duetime.adapters.targets.job_calls import Resources
from duetime.adapters.targets.python_handlers import HandlerRunner
from duetime.canary_task import BUILT_IN
from duetime.composition import Part
from duetime.composition.attempts import (
    DependencyServices,
    LockServices,
    OccurrenceServices,
    OutcomeServices,
    StartGateServices,
    SwitchServices,
)
from duetime.composition.core import CoreServices, QuotaServices
from duetime.composition.invoked_functions import HttpServices
from duetime.domain.tasks.notices import ConsolePages
from duetime.handlers import REGISTRY
from duetime.services.outcomes.completion_steps import (
    CallbackTasks,
    InlineCompletion,
    LateNotices,
    NoticeSender,
    Repeater,
    TracebackRecorder,
)
from duetime.services.outcomes.outcome import RollbackWriter
from duetime.services.worker.attempt import AttemptPhases, AttemptRunner
from duetime.services.worker.attempt_lease import AttemptLease, AttemptLocks
from duetime.services.worker.batch import BatchWorker
from duetime.services.worker.target_caller import CircuitBreakers, TargetCaller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.targets.handler_client import HandlerClients
    from duetime.adapters.targets.packaged_work import PackagedHandlers
    from duetime.composition.tasks import TopologyServices
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work
    from duetime.services.job_watcher import JobWatcher
    from duetime.services.quotas.at_once import RunningTopologies


class WorkerServices(Part):
    """Processes batches of messages."""

    @cached_property
    def batch_worker(self) -> BatchWorker:
        """Processes batches of messages."""
        core = self.part(CoreServices)
        return BatchWorker(
            tasks=core.stores.tasks,
            queues=core.queues,
            attempt_runner=self._attempt_runner,
            runtime=self.runtime,
            process=MeasuredProcess(self.platform.process, self.telemetry.write_metrics),
            lease=self.settings.lease_ms,
            executed=self.settings.executed,
        )

    @cached_property
    def _attempt_runner(self) -> AttemptRunner:
        core, gates = self.part(CoreServices), self.part(StartGateServices)
        return AttemptRunner(
            stores=core.stores,
            completion=self._completion,
            phases=self._phases,
            runtime=self.runtime,
            handler_availability=gates.handler_availability,
            topology_checker=lambda: _topologies(self).watchdog,
            job_checker=lambda: self._job_watcher,
            dependency_listener=lambda: self.part(DependencyServices).checker,
            late_notices=LateNotices(core.stores.tasks, self._notice_sender, self.runtime),
            stores_nonces=bool(self.settings.packaged_types),
        )

    @cached_property
    def _job_watcher(self) -> JobWatcher:
        # Few tasks are jobs, so the modules are imported only for them.
        from duetime.composition.tasks import TaskServices
        from duetime.services.job_watcher import JobWatcher

        core = self.part(CoreServices)
        return JobWatcher(
            tasks=core.stores.tasks,
            jobs=self.part(TargetServices).targets.aws.jobs,
            attempt_reports=self.part(TaskServices).attempt_reports,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
        )

    @cached_property
    def _phases(self) -> AttemptPhases:
        core = self.part(CoreServices)
        quota = None
        if self.settings.has_quotas:
            quota = self.part(QuotaServices).attempts
        locks = AttemptLocks(self.part(LockServices).manager, quota)
        lease = AttemptLease(core.stores.tasks, locks, self.runtime, self.settings.lease_ms)
        outcome_writer = self.part(OutcomeServices).writer_with(self._completion)
        caller = TargetCaller(
            contents=core.stores.contents,
            targets=self.part(TargetServices).circuit_breakers,
            input_reader=lambda: core.node_inputs,
            switch_rates=self.part(SwitchServices).gate,
            rate_limits=lambda: core.rate_limiter,
            attempt_steps=self.part(OutcomeServices).attempt_steps,
            lease=lease,
            runtime=self.runtime,
        )
        return AttemptPhases(
            outcome_writer=outcome_writer,
            rollback_writer=RollbackWriter(outcome_writer, core.enqueuer, self.runtime),
            start_gate=self.part(StartGateServices).gates,
            caller=caller,
            locks=locks,
            lease=lease,
            traceback_recorder=self._traceback_recorder,
            runtime=self.runtime,
            counts_versions=bool(self.settings.canary),
        )

    @cached_property
    def _traceback_recorder(self) -> TracebackRecorder:
        settings = self.settings
        return TracebackRecorder(
            store=self.part(CoreServices).tracebacks,
            runtime=self.runtime,
            is_kept=settings.keeps_tracebacks,
            retention=settings.retention,
            pages=self._console_pages,
        )

    @cached_property
    def _console_pages(self) -> ConsolePages:
        return ConsolePages(self.settings.console_url)

    @cached_property
    def _callbacks(self) -> HttpCallbacks:
        caller, targets = self.part(HttpServices).caller, self.part(TargetServices)
        encoding = EventEncoding(task_entry, self._console_pages)
        return HttpCallbacks(caller, encoding, lambda: targets.aws_runner)

    @cached_property
    def _notice_sender(self) -> NoticeSender:
        return NoticeSender(self._callbacks, Repeater(self.runtime), self.runtime)

    @cached_property
    def _completion(self) -> InlineCompletion:
        core = self.part(CoreServices)
        return InlineCompletion(
            stores=core.stores,
            targets=self.part(TargetServices).targets,
            runtime=self.runtime,
            retention=self.settings.retention,
            callback_tasks=CallbackTasks(core.stores, core.enqueuer, self.runtime, core.shards, self._callbacks),
            notice_sender=self._notice_sender,
            attempt_steps=self.part(OutcomeServices).attempt_steps,
            occurrence_listener=lambda: self.part(OccurrenceServices).overlap_control,
            node_listener=lambda: _topologies(self).node_finished,
            dependency_listener=lambda: self.part(DependencyServices).checker,
            order_lines=lambda: core.order_lines,
        )


class TargetServices(Part):
    """Composes the calls to the targets of tasks."""

    @cached_property
    def targets(self) -> Targets:
        """Calls targets."""
        topologies = TopologyRunner(
            machine=lambda: _topologies(self).state_machine,
            rollback=lambda: _topologies(self).rollback,
            quota=self._topology_quota,
        )
        package = self.part(StartGateServices).handlers_package
        # Output is attributed before the package is imported, because the package's loggers keep the output stream
        # that is in place when they are created.
        self.telemetry.attribute_output()
        # This call imports the package during initialization, while Lambda gives the function a full vCPU.
        package.why_broken()
        handlers = HandlerRunner(
            ChainMap(REGISTRY, dict(BUILT_IN)), package, clients=self._clients_of, packaged=self._packaged
        )
        return Targets(
            handlers,
            HttpRunner(self.part(HttpServices).caller),
            self.aws_runner,
            topologies,
            lambda: self.part(CoreServices).event_waits,
        )

    def _topology_quota(self) -> RunningTopologies | None:
        if not self.settings.has_quotas:
            return None
        return self.part(QuotaServices).running_topologies

    @property
    def _packaged(self) -> PackagedHandlers | None:
        if not (types := self.settings.packaged_types):
            return None
        # Most deployments have one package, so the modules are imported only if there are several packages.
        from duetime.adapters.targets.egress import LambdaInvocation
        from duetime.adapters.targets.packaged_work import PackagedHandlers

        client = self.platform.clients.calling_lambdas()
        descriptions = self.part(CoreServices).handler_descriptions
        return PackagedHandlers(
            types,
            descriptions,
            lambda function, event, executed: LambdaInvocation(client, function, executed)(event),
            self.runtime,
            self.settings.lease_ms,
        )

    def _clients_of(self, work: Work) -> Callable[[], object]:
        return self.handler_clients.of(work)

    @cached_property
    def handler_clients(self) -> HandlerClients:
        """Creates the API clients for handlers."""
        # Most handlers use no client, so the client and httpx are imported only for handlers that use one.
        from duetime.adapters.targets.egress import LambdaInvocation
        from duetime.adapters.targets.handler_client import HandlerClients

        invocation = LambdaInvocation(self.platform.clients.calling_lambdas(), self.settings.api_function)
        return HandlerClients(invocation, self.runtime)

    @cached_property
    def aws_runner(self) -> AwsRunner:
        """Calls AWS resources that are targets or that receive notices."""
        return AwsRunner(Resources(self.platform.clients), self.settings.callable_arns)

    @cached_property
    def circuit_breakers(self) -> CircuitBreakers:
        """Calls targets, and applies a circuit breaker to each HTTP host."""
        return CircuitBreakers(self.targets, self.part(CoreServices).stores.circuit_breakers, self.runtime)


def _topologies(part: Part) -> TopologyServices:
    # Few tasks are topologies or nodes, so the module is imported only for them.
    from duetime.composition.tasks import TopologyServices

    return part.part(TopologyServices)


def task_entry(task: Task) -> Mapping[str, object]:
    """A task in the form of an entry in the API's lists."""
    # Few tasks have callbacks, so the REST contract's pydantic models, which take long to import, are imported only
    # here.
    from duetime.contract.tasks.encoding import entry

    return entry(task)
