"""The one place where use cases meet their adapters.

Each function asks here for what it needs, once a process. `use` exchanges the outside world (clock, chance,
threads, AWS clients) for another, which is how tests and the simulation run the unmodified functions.
"""

from __future__ import annotations

import os
from collections import ChainMap
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import Clients
from duetime.adapters.bulk_invoker import LambdaBulkStarter
from duetime.adapters.dynamodb.bulk import DynamoBulkStore
from duetime.adapters.dynamodb.calendars import DynamoCalendarStore
from duetime.adapters.dynamodb.circuit_breakers import DynamoCircuitStore
from duetime.adapters.dynamodb.cursors import DynamoCursorStore
from duetime.adapters.dynamodb.idempotency_keys import DynamoKeyStore
from duetime.adapters.dynamodb.locks import DynamoLockStore
from duetime.adapters.dynamodb.long_polls import DynamoLongPollStore
from duetime.adapters.dynamodb.schedules import DynamoScheduleStore
from duetime.adapters.dynamodb.shards import DynamoShardStore
from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.dynamodb.topologies import DynamoTopologyStore
from duetime.adapters.payload_store import SplitContentStore
from duetime.adapters.runtime.clock import SystemClock, SystemRandom
from duetime.adapters.runtime.telemetry import PowertoolsTelemetry
from duetime.adapters.runtime.threads import LambdaProcess, Threads
from duetime.adapters.sqs.events import readable
from duetime.adapters.sqs.queues import SqsQueues
from duetime.adapters.sqs.rejected_events import SqsRejects
from duetime.adapters.step_functions import StepFunctionsStateMachine
from duetime.adapters.targets import Targets
from duetime.adapters.targets.aws_resource_clients import Resources
from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.callbacks import HttpCallbacks
from duetime.adapters.targets.egress import Egress, EgressCaller, LambdaInvocation
from duetime.adapters.targets.http_client import DirectCaller
from duetime.adapters.targets.http_target import HttpRunner
from duetime.adapters.targets.python_handlers import HandlerRunner, HandlersPackage, known_types
from duetime.adapters.targets.signing import Signer, SigningSecrets
from duetime.adapters.targets.topology_target import TopologyRunner
from duetime.adapters.trigger_fan_out import LambdaFanOut
from duetime.canary_task import BUILT_IN
from duetime.domain.tasks.target_rules import TargetRules
from duetime.domain.topologies.stored_graph import outline_of
from duetime.handlers import REGISTRY
from duetime.services.bulk.executor import BulkExecutor
from duetime.services.bulk.filter_actions import BulkRequests
from duetime.services.bulk.filtered_tasks import FilteredTasks
from duetime.services.bulk.manage import BulkOperations
from duetime.services.enqueue import Enqueuer
from duetime.services.locks.admin import LockAdmin
from duetime.services.locks.locking import LockManager
from duetime.services.long_poll_limit import LongPolls
from duetime.services.outcomes.callbacks import CallbackSender
from duetime.services.outcomes.completion_steps import CompletionSteps, DelegatedCompletion, InlineCompletion
from duetime.services.outcomes.outcome import OutcomeWriter
from duetime.services.outcomes.rollback import RollbackWriter
from duetime.services.pull.lease import LeaseService
from duetime.services.pull.locks import PullLocks
from duetime.services.pull.report import LeaseReports
from duetime.services.schedules.calendars import CalendarManager
from duetime.services.schedules.expander import ScheduleExpander
from duetime.services.schedules.manage import ScheduleManager
from duetime.services.schedules.occurrence_tasks import OccurrenceTasks
from duetime.services.schedules.overlap import OverlapControl
from duetime.services.schedules.preview import SchedulePreview
from duetime.services.shards import Shards
from duetime.services.switches.admin import SwitchAdmin
from duetime.services.switches.gate import SwitchGate
from duetime.services.tasks.control import TaskControl
from duetime.services.tasks.create import TaskCreator
from duetime.services.tasks.endpoint_query import TargetQueryService
from duetime.services.tasks.from_events import EventTaskCreator
from duetime.services.tasks.read import TaskReader
from duetime.services.tasks.update import TaskUpdater
from duetime.services.tasks.wait import OutcomeWaiter
from duetime.services.topologies.bulk_node_actions import TopologySteps
from duetime.services.topologies.inputs import NodeInputs
from duetime.services.topologies.node_actions import NodeActions
from duetime.services.topologies.node_finished import NodeFinished
from duetime.services.topologies.node_tasks import NodeTasks
from duetime.services.topologies.reconciler import TopologyReconciler
from duetime.services.topologies.repository import TopologyRepository
from duetime.services.topologies.retention import Retention
from duetime.services.topologies.service import TopologyService
from duetime.services.topologies.state_machine import StateMachineSteps
from duetime.services.topologies.watchdog import TopologyWatchdog
from duetime.services.trigger.dispatcher import Dispatcher
from duetime.services.worker.attempt import AttemptRunner
from duetime.services.worker.batch import BatchWorker
from duetime.services.worker.circuit_breaker import CircuitBreakers
from duetime.services.worker.dead_letters import DeadLetterService
from duetime.services.worker.handler_availability import HandlerAvailability
from duetime.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.targets.http_messages import Caller
    from duetime.domain.bulk.filter_action import BulkRequest
    from duetime.domain.bulk.operation import BulkKind, BulkOperation, BulkProgress
    from duetime.domain.errors import RecordUnreadable
    from duetime.domain.schedules.calendars import Calendar, Kind
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.tasks.attempt_outcomes import Postponed, Skipped
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.queues import Delivery
    from duetime.ports.runtime import Clock, Executor, Process, RandomSource


@dataclass(frozen=True)
class Runtime:
    """The world around a function.

    Attributes:
        environ: the environment variables.
        clock: the time.
        random_source: randomness.
        clients: of AWS.
        process: what a stuck worker ends.
        threads: what runs things concurrently; `None` for threads.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = field(default_factory=SystemClock)
    random_source: RandomSource = field(default_factory=SystemRandom)
    clients: Clients = field(default_factory=Clients)
    process: Process = field(default_factory=LambdaProcess)
    threads: Executor | None = None

    @cached_property
    def executor(self) -> Executor:
        """Threads, unless something else was given."""
        return self.threads or Threads(self.clock)


class Composition:
    """The use cases of one process, each made when it is first asked for, over one set of adapters."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.settings = Settings(runtime.environ)

    @cached_property
    def telemetry(self) -> PowertoolsTelemetry:
        """Logs and metrics; the handler flushes them."""
        return PowertoolsTelemetry(self.settings.service_name, self.settings.metrics_namespace)

    @cached_property
    def tasks(self) -> DynamoTaskStore:
        """The tasks table's records."""
        return DynamoTaskStore(self._dynamodb, self.settings.table, self.runtime.executor, self._note_unreadable)

    @cached_property
    def contents(self) -> SplitContentStore:
        """Payloads and results."""
        return SplitContentStore(self._dynamodb, self.settings.table, self.runtime.clients.s3(), self.settings.bucket)

    @cached_property
    def queues(self) -> SqsQueues:
        """The work queues."""
        settings, runtime = self.settings, self.runtime
        return SqsQueues(runtime.clients.sqs(), settings.queue_urls, runtime.executor, settings.pulled_queue_urls)

    def _note_unreadable(self, error: RecordUnreadable) -> None:
        self.telemetry.count("unreadable")
        self.telemetry.note("an item was left out that cannot be read", key=error.key, error=str(error))

    @cached_property
    def enqueuer(self) -> Enqueuer:
        """How tasks are placed."""
        settings, runtime = self.settings, self.runtime
        return Enqueuer(
            self.tasks, self.queues, runtime.clock, runtime.random_source, settings.look_ahead_ms, settings.precision
        )

    @cached_property
    def lock_manager(self) -> LockManager:
        """Takes and hands on locks."""
        runtime = self.runtime
        return LockManager(
            locks=self._locks,
            tasks=self.tasks,
            enqueuer=self.enqueuer,
            clock=runtime.clock,
            random_source=runtime.random_source,
            telemetry=self.telemetry,
            lease=self.settings.lease_ms,
            caps=self.switch_gate.caps,
        )

    @cached_property
    def switch_gate(self) -> SwitchGate:
        """Heeds switches."""
        runtime = self.runtime
        return SwitchGate(self._switches, runtime.clock, runtime.random_source, self.telemetry)

    @cached_property
    def switch_admin(self) -> SwitchAdmin:
        """Sets switches, and shows what is held back."""
        runtime = self.runtime
        return SwitchAdmin(
            self._switches, self._circuits, self.settings.operators, runtime.clock, runtime.random_source
        )

    @cached_property
    def _switches(self) -> DynamoSwitchStore:
        return DynamoSwitchStore(self._dynamodb, self.settings.table)

    @cached_property
    def shards(self) -> Shards:
        """How many shards there are."""
        return Shards(DynamoShardStore(self._dynamodb, self.settings.table), self.runtime.clock, self.settings.shards)

    @cached_property
    def _circuits(self) -> DynamoCircuitStore:
        return DynamoCircuitStore(self._dynamodb, self.settings.table)

    @cached_property
    def lock_admin(self) -> LockAdmin:
        """Shows locks, and frees them by force."""
        return LockAdmin(self._locks, self.lock_manager, self.runtime.clock, self.runtime.random_source)

    @cached_property
    def _locks(self) -> DynamoLockStore:
        return DynamoLockStore(self._dynamodb, self.settings.table, self.runtime.executor)

    @cached_property
    def _target_rules(self) -> TargetRules:
        settings = self.settings
        known = known_types(settings.handler_types)
        handled = None if known is None else known | BUILT_IN.keys()
        return TargetRules(settings.pulled_queue_urls.keys(), settings.callable_arns, settings.http_allow, handled)

    @cached_property
    def task_creator(self) -> TaskCreator:
        """Accepts tasks."""
        runtime = self.runtime
        keys = DynamoKeyStore(self._dynamodb, self.settings.table)
        return TaskCreator(
            self.tasks,
            self.contents,
            keys,
            self.enqueuer,
            runtime.clock,
            runtime.random_source,
            runtime.executor,
            self.shards,
            self._target_rules,
        )

    @cached_property
    def event_tasks(self) -> EventTaskCreator:
        """Makes tasks of events."""
        settings, runtime = self.settings, self.runtime
        rejects = SqsRejects(runtime.clients.sqs(), settings.intake_rejects, runtime.executor)
        return EventTaskCreator(self.task_creator, rejects, self.telemetry, settings.intake_owner)

    @cached_property
    def task_reader(self) -> TaskReader:
        """Reads tasks."""
        return TaskReader(self.tasks, self.contents)

    @cached_property
    def task_updater(self) -> TaskUpdater:
        """Changes and cancels tasks."""
        runtime = self.runtime
        return TaskUpdater(
            self.tasks,
            self.contents,
            self.enqueuer,
            runtime.clock,
            runtime.random_source,
            self.settings.retention_ms,
            self.lock_manager,
            self._target_rules,
            _graph_of,
        )

    @cached_property
    def targets(self) -> Targets:
        """What tasks call."""
        aws = AwsRunner(Resources(self.runtime.clients), self.settings.callable_arns)
        topologies = TopologyRunner(self._machine)
        # Imported before its first task, while Lambda gives a starting process more of a processor.
        self._handlers.why_broken()
        handlers = HandlerRunner(ChainMap(REGISTRY, dict(BUILT_IN)), self._handlers.why_broken)
        return Targets(handlers, HttpRunner(self.caller), aws, topologies)

    @cached_property
    def _handlers(self) -> HandlersPackage:
        return HandlersPackage(self.settings.handlers, self.runtime.clock)

    @cached_property
    def _availability(self) -> HandlerAvailability:
        return HandlerAvailability(self._handlers.why_broken, self.runtime.clock, self.telemetry)

    @cached_property
    def _machine(self) -> StepFunctionsStateMachine:
        return StepFunctionsStateMachine(self.runtime.clients.step_functions(), self.settings.topology_machine)

    @cached_property
    def _topologies(self) -> DynamoTopologyStore:
        return DynamoTopologyStore(self._dynamodb, self.settings.table)

    @cached_property
    def _topology_repository(self) -> TopologyRepository:
        return self._repository(outline_of)

    def _repository(self, read_graph: Callable[[bytes], Graph]) -> TopologyRepository:
        runtime = self.runtime
        return TopologyRepository(
            self.tasks,
            self.contents,
            self._topologies,
            runtime.random_source,
            read_graph,
            runtime.clock,
            runtime.executor,
        )

    @cached_property
    def _nodes(self) -> NodeActions:
        clock, retention = self.runtime.clock, self.settings.retention_ms
        return NodeActions(
            self._topology_repository, self.tasks, self.contents, self._topologies, self.enqueuer, clock, retention
        )

    @cached_property
    def _reconciler(self) -> TopologyReconciler:
        runtime, period = self.runtime, self.settings.retention_ms
        retention = Retention(
            self._topology_repository,
            self.tasks,
            self.contents,
            runtime.clock,
            runtime.random_source,
            runtime.executor,
            period,
        )
        in_background = self.bulk_operations.end_topology
        return TopologyReconciler(
            self._topology_repository,
            self._nodes,
            retention,
            self.task_control,
            runtime.clock,
            runtime.executor,
            in_background,
        )

    @cached_property
    def node_finished(self) -> NodeFinished:
        """Does what follows the end of a topology's node."""
        return NodeFinished(
            topology_repository=self._topology_repository,
            node_tasks=self._node_tasks,
            nodes=self._nodes,
            reconciler=self._reconciler,
            store=self._topologies,
            machine=self._machine,
            executor=self.runtime.executor,
        )

    @cached_property
    def _node_tasks(self) -> NodeTasks:
        runtime = self.runtime
        return NodeTasks(
            in_full=self._repository(_graph_of),
            tasks=self.tasks,
            contents=self.contents,
            store=self._topologies,
            random_source=runtime.random_source,
            executor=runtime.executor,
            rules=self._target_rules,
        )

    @cached_property
    def node_inputs(self) -> NodeInputs:
        """Gives nodes the results of their parents."""
        return NodeInputs(self._topology_repository, self.tasks, self.contents)

    @cached_property
    def topology_service(self) -> TopologyService:
        """Accepts, shows and steers topologies."""
        topology_repository = self._repository(_graph_of)
        return TopologyService(
            topology_repository,
            self._reconciler,
            self.task_creator,
            self.task_reader,
            self.task_control,
            self.runtime.clock,
            self.bulk_operations,
        )

    @cached_property
    def state_machine_steps(self) -> StateMachineSteps:
        """Runs topologies, state by state."""
        runtime = self.runtime
        return StateMachineSteps(
            topology_repository=self._topology_repository,
            in_full=self._repository(_graph_of),
            node_tasks=self._node_tasks,
            nodes=self._nodes,
            reconciler=self._reconciler,
            task_control=self.task_control,
            tasks=self.tasks,
            store=self._topologies,
            machine=self._machine,
            clock=runtime.clock,
            random_source=runtime.random_source,
            executor=runtime.executor,
            shards=self.shards,
        )

    @cached_property
    def watchdog(self) -> TopologyWatchdog:
        """Looks after topologies that run."""
        runtime, outcome_writer = self.runtime, self._outcome_writer(DelegatedCompletion(self.queues))
        return TopologyWatchdog(
            topology_repository=self._topology_repository,
            state_machine_steps=self.state_machine_steps,
            machine=self._machine,
            outcome_writer=outcome_writer,
            enqueuer=self.enqueuer,
            clock=runtime.clock,
            telemetry=self.telemetry,
        )

    @cached_property
    def caller(self) -> Caller:
        """Makes HTTP calls: through the egress function if there is one, else from this process."""
        if function := self.settings.egress_function:
            return EgressCaller(LambdaInvocation(self.runtime.clients.calling_lambdas(), function))
        return self._direct_caller

    @cached_property
    def egress(self) -> Egress:
        """Makes the HTTP calls that other functions hand on."""
        return Egress(self._direct_caller, self.runtime.executor)

    @cached_property
    def _direct_caller(self) -> DirectCaller:
        settings, runtime = self.settings, self.runtime
        signer = None
        if secret := settings.signing_secret:
            signer = Signer(SigningSecrets(runtime.clients.secrets(), secret, runtime.clock), runtime.clock)
        return DirectCaller(settings.http_allow, signer)

    @cached_property
    def target_queries(self) -> TargetQueryService:
        """Asks the endpoints of tasks."""
        return TargetQueryService(self.task_reader, HttpRunner(self.caller), self.runtime.random_source)

    @cached_property
    def circuit_breakers(self) -> CircuitBreakers:
        """What tasks call, with a circuit breaker for each HTTP host."""
        runtime = self.runtime
        return CircuitBreakers(self.targets, self._circuits, runtime.clock, runtime.random_source, self.telemetry)

    @cached_property
    def bulk_requests(self) -> BulkRequests:
        """Does something with the tasks that a filter means."""
        runtime = self.runtime
        filtered_tasks = FilteredTasks(
            self.tasks, self.task_reader, self.task_updater, self.task_control, runtime.clock, runtime.executor
        )
        keys = DynamoKeyStore(self._dynamodb, self.settings.table)
        return BulkRequests(
            self.bulk_operations,
            filtered_tasks,
            self.contents,
            keys,
            runtime.clock,
            runtime.random_source,
            _bulk_request_of,
        )

    @cached_property
    def bulk_operations(self) -> BulkOperations:
        """Starts, shows and cancels bulk operations."""
        settings, runtime = self.settings, self.runtime
        return BulkOperations(
            self._bulk,
            self.tasks,
            LambdaBulkStarter(runtime.clients.lambdas(), settings.bulk_function, self.telemetry),
            runtime.clock,
            runtime.random_source,
            self.telemetry,
            self.shards,
            settings.look_ahead_ms,
        )

    @cached_property
    def bulk_executor(self) -> BulkExecutor:
        """Carries out bulk operations."""
        runtime = self.runtime
        of_topologies, of_filters = (
            TopologySteps(self._topology_repository, self._reconciler).step,
            self.bulk_requests.step,
        )

        def step(operation: BulkOperation, until: Millis) -> BulkProgress:
            return (of_filters if operation.topology is None else of_topologies)(operation, until)

        return BulkExecutor(self._bulk, runtime.clock, runtime.random_source, self.telemetry, step)

    @cached_property
    def _bulk(self) -> DynamoBulkStore:
        return DynamoBulkStore(self._dynamodb, self.settings.table)

    @cached_property
    def task_control(self) -> TaskControl:
        """Steers tasks that exist already."""
        runtime = self.runtime
        completion = DelegatedCompletion(self.queues)
        return TaskControl(
            self.tasks,
            self.contents,
            self.enqueuer,
            self.task_updater,
            self._outcome_writer(completion),
            completion,
            self.lock_manager,
            runtime.clock,
            runtime.random_source,
        )

    @cached_property
    def lease_service(self) -> LeaseService:
        """Hands out tasks to pull workers."""
        runtime = self.runtime
        return LeaseService(
            tasks=self.tasks,
            contents=self.contents,
            queues=self.queues,
            outcome_writer=self._outcome_writer(DelegatedCompletion(self.queues)),
            pull_locks=self._pull_locks,
            pullers=self.settings.pullers,
            clock=runtime.clock,
            random_source=runtime.random_source,
            executor=runtime.executor,
            telemetry=self.telemetry,
            long_polls=self._long_polls,
            inputs=self.node_inputs.inputs_of,
        )

    @cached_property
    def lease_reports(self) -> LeaseReports:
        """Hears of the leases of pull workers."""
        runtime = self.runtime
        return LeaseReports(
            tasks=self.tasks,
            contents=self.contents,
            queues=self.queues,
            outcome_writer=self._outcome_writer(DelegatedCompletion(self.queues)),
            pull_locks=self._pull_locks,
            pullers=self.settings.pullers,
            clock=runtime.clock,
            random_source=runtime.random_source,
            telemetry=self.telemetry,
        )

    @cached_property
    def _pull_locks(self) -> PullLocks:
        return PullLocks(self.lock_manager, self._held)

    def _held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a task that was just claimed may not begin: for an operator, its broken handler, or its schedule."""
        return self.switch_gate.held(task) or self._availability.held(task) or self.overlap_control.apply_gate(task)

    @cached_property
    def schedule_manager(self) -> ScheduleManager:
        """Makes and steers schedules."""
        settings, runtime = self.settings, self.runtime
        return ScheduleManager(
            self._schedules,
            self.tasks,
            self.contents,
            self.enqueuer,
            self._expander,
            runtime.clock,
            runtime.random_source,
            self.shards,
            settings.look_ahead_ms,
            settings.retention_ms,
        )

    @cached_property
    def schedule_preview(self) -> SchedulePreview:
        """Tells what schedules have done and will do."""
        return SchedulePreview(self._schedules, self._calendars, self.tasks, self.runtime.clock)

    @cached_property
    def calendar_manager(self) -> CalendarManager:
        """Keeps calendars."""
        return CalendarManager(
            self._calendars, self._schedules, self.runtime.clock, self.runtime.random_source, _calendar_from_ics
        )

    @cached_property
    def overlap_control(self) -> OverlapControl:
        """Keeps occurrences to their schedules."""
        runtime = self.runtime
        return OverlapControl(
            self._schedules, self.tasks, self.enqueuer, self._expander, runtime.clock, runtime.random_source
        )

    @cached_property
    def _expander(self) -> ScheduleExpander:
        settings, runtime = self.settings, self.runtime
        occurrence_tasks = OccurrenceTasks(self.contents, self.enqueuer, runtime.clock, self._target_rules)
        return ScheduleExpander(
            self._schedules,
            self._calendars,
            self.tasks,
            occurrence_tasks,
            runtime.clock,
            runtime.random_source,
            runtime.executor,
            self.telemetry,
            settings.look_ahead_ms,
        )

    @cached_property
    def _schedules(self) -> DynamoScheduleStore:
        return DynamoScheduleStore(self._dynamodb, self.settings.table, self.runtime.executor)

    @cached_property
    def _calendars(self) -> DynamoCalendarStore:
        return DynamoCalendarStore(self._dynamodb, self.settings.table, self.runtime.executor)

    @cached_property
    def outcome_waiter(self) -> OutcomeWaiter:
        """Waits for tasks to end."""
        return OutcomeWaiter(self.tasks, self.runtime.clock, self._long_polls)

    @cached_property
    def _long_polls(self) -> LongPolls:
        runtime, settings = self.runtime, self.settings
        store = DynamoLongPollStore(self._dynamodb, settings.table)
        return LongPolls(store, runtime.clock, runtime.random_source, self.telemetry, settings.long_polls)

    def _outcome_writer(self, completion: CompletionSteps) -> OutcomeWriter:
        runtime = self.runtime
        return OutcomeWriter(
            tasks=self.tasks,
            contents=self.contents,
            enqueuer=self.enqueuer,
            completion=completion,
            clock=runtime.clock,
            random_source=runtime.random_source,
            telemetry=self.telemetry,
            retention=self.settings.retention_ms,
        )

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Reads minutes."""
        settings, runtime = self.settings, self.runtime
        function = runtime.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
        return Dispatcher(
            tasks=self.tasks,
            cursors=DynamoCursorStore(self._dynamodb, settings.table),
            queues=self.queues,
            fan_out=LambdaFanOut(self.runtime.clients.lambdas(), function, runtime.executor),
            clock=runtime.clock,
            executor=runtime.executor,
            telemetry=self.telemetry,
            shards=self.shards,
            look_ahead=settings.look_ahead_ms,
            precision=settings.precision,
            expander=self._expander,
            bulk=self.bulk_operations,
        )

    @cached_property
    def batch_worker(self) -> BatchWorker:
        """Works on batches of messages."""
        settings, runtime = self.settings, self.runtime
        completion = InlineCompletion(
            tasks=self.tasks,
            contents=self.contents,
            targets=self.targets,
            clock=runtime.clock,
            random_source=runtime.random_source,
            telemetry=self.telemetry,
            retention=settings.retention_ms,
            callback_sender=CallbackSender(HttpCallbacks(self.caller, _entry), runtime.clock, self.telemetry),
            tell=self.overlap_control.follow,
            follow=self.node_finished.follow,
        )
        outcome_writer = self._outcome_writer(completion)
        attempt_runner = AttemptRunner(
            tasks=self.tasks,
            contents=self.contents,
            targets=self.circuit_breakers,
            outcome_writer=outcome_writer,
            rollback_writer=RollbackWriter(outcome_writer, self.enqueuer, runtime.clock, runtime.random_source),
            completion=completion,
            lock_manager=self.lock_manager,
            clock=runtime.clock,
            random_source=runtime.random_source,
            telemetry=self.telemetry,
            lease=settings.lease_ms,
            held=self._held,
            unavailable=self._availability.held,
            inputs=self.node_inputs.inputs_of,
            check_topology=self.watchdog.check_topology,
        )
        return BatchWorker(
            tasks=self.tasks,
            queues=self.queues,
            attempt_runner=attempt_runner,
            clock=runtime.clock,
            random_source=runtime.random_source,
            executor=runtime.executor,
            process=runtime.process,
            telemetry=self.telemetry,
            lease=settings.lease_ms,
        )

    @cached_property
    def dead_letters(self) -> DeadLetterService:
        """Looks into dead letters."""
        runtime = self.runtime
        completion = DelegatedCompletion(self.queues)
        outcome_writer = self._outcome_writer(completion)
        return DeadLetterService(
            self.tasks, self.queues, self.enqueuer, outcome_writer, completion, runtime.clock, self.telemetry
        )

    def deliveries(self, event: Mapping[str, Any]) -> list[Delivery]:
        """The deliveries in a Lambda event from SQS; what cannot be read is noted and left out."""
        return readable(event, self.queues, self.telemetry)

    @cached_property
    def _dynamodb(self) -> DynamoDBClient:
        return self.runtime.clients.dynamodb()


def _graph_of(payload: bytes) -> Graph:
    # Imported when a graph is read in full: no task should wait for pydantic.
    from duetime.contract.topologies.decoding import read_graph  # noqa: PLC0415 - see the line above

    return read_graph(payload)


def _bulk_request_of(kind: BulkKind, text: bytes) -> BulkRequest:
    # The same: pydantic.
    from duetime.contract.bulk.bodies import read_stored  # noqa: PLC0415 - see the line above

    return read_stored(kind, text)


def _entry(task: Task) -> Mapping[str, object]:
    # Pydantic comes with it, which no other task should wait for.
    from duetime.contract.tasks.encoding import entry  # noqa: PLC0415 - see the line above

    return entry(task)


def _calendar_from_ics(data: bytes, name: str, start: Millis, end: Millis, *, kind: Kind, zone: Zone) -> Calendar:
    # The reader of calendar files is large, and hardly ever needed.
    from duetime.adapters.calendars.icalendar import calendar_from_ics  # noqa: PLC0415 - see the line above

    return calendar_from_ics(data, name, start, end, kind=kind, zone=zone)


_runtime: Runtime | None = None


def use(runtime: Runtime | None) -> None:
    """Exchange the outside world; `None` goes back to the real one. What was composed before is forgotten."""
    global _runtime  # noqa: PLW0603 - a Lambda function's process has exactly one outside
    _runtime = runtime
    _only.cache_clear()


def use_by_process(find: Callable[[], Composition] | None) -> None:
    """Let `find` say which composition the caller has: a simulation has many processes in one. `None` ends that."""
    global _find  # noqa: PLW0603 - same
    _find = find or _only


def composed() -> Composition:
    """The use cases of this process."""
    return _find()


@cache
def _only() -> Composition:
    return Composition(_runtime or Runtime())


_find: Callable[[], Composition] = _only
