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

from duetime.adapters.aws import Clients
from duetime.adapters.bulk import LambdaBulkStarter
from duetime.adapters.contents import SplitContentStore
from duetime.adapters.dynamodb.bulk import DynamoBulkStore
from duetime.adapters.dynamodb.calendars import DynamoCalendarStore
from duetime.adapters.dynamodb.circuits import DynamoCircuitStore
from duetime.adapters.dynamodb.cursors import DynamoCursorStore
from duetime.adapters.dynamodb.keys import DynamoKeyStore
from duetime.adapters.dynamodb.locks import DynamoLockStore
from duetime.adapters.dynamodb.long_polls import DynamoLongPollStore
from duetime.adapters.dynamodb.schedules import DynamoScheduleStore
from duetime.adapters.dynamodb.shards import DynamoShardStore
from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.dynamodb.topologies import DynamoTopologyStore
from duetime.adapters.fan_out import LambdaFanOut
from duetime.adapters.machine import StepFunctionsMachine
from duetime.adapters.sqs.events import readable
from duetime.adapters.sqs.queues import SqsQueues
from duetime.adapters.sqs.rejects import SqsRejects
from duetime.adapters.surroundings.clock import SystemChance, SystemClock
from duetime.adapters.surroundings.telemetry import PowertoolsTelemetry
from duetime.adapters.surroundings.threads import LambdaProcess, Threads
from duetime.adapters.targets import Targets
from duetime.adapters.targets.aws import AwsRunner
from duetime.adapters.targets.callbacks import HttpCallbacks
from duetime.adapters.targets.direct import DirectCaller
from duetime.adapters.targets.egress import Egress, EgressCaller, LambdaInvocation
from duetime.adapters.targets.handlers import HandlerRunner, HandlersPackage, known_types
from duetime.adapters.targets.http import HttpRunner
from duetime.adapters.targets.resources import Resources
from duetime.adapters.targets.signing import Signer, SigningSecrets
from duetime.adapters.targets.topologies import TopologyRunner
from duetime.domain.target_rules import TargetRules
from duetime.domain.topologies.outline import outline_of
from duetime.handlers import REGISTRY
from duetime.probe import BUILT_IN
from duetime.services.asking import Asking
from duetime.services.attempting import Attempting
from duetime.services.breaking import Breaking
from duetime.services.bulk.executor import BulkExecutor
from duetime.services.bulk.operations import BulkOperations
from duetime.services.bulk.requests import BulkRequests
from duetime.services.bulk.topologies import TopologySteps
from duetime.services.burying import Burying
from duetime.services.calling_back import CallingBack
from duetime.services.changing import Changing
from duetime.services.closing import Closing, ClosingElsewhere, ClosingHere
from duetime.services.creating import Creating
from duetime.services.dispatching import Dispatching
from duetime.services.expanding import Expanding
from duetime.services.finishing import Finishing
from duetime.services.foreseeing import Foreseeing
from duetime.services.freeing import Freeing
from duetime.services.handler_availability import HandlerAvailability
from duetime.services.heeding import Heeding
from duetime.services.holding import Holding
from duetime.services.keeping_calendars import KeepingCalendars
from duetime.services.leasing import Leasing
from duetime.services.locking import Locking
from duetime.services.long_polls import LongPolls
from duetime.services.placing import Placing
from duetime.services.producing import Producing
from duetime.services.reading import Reading
from duetime.services.recurring import Recurring
from duetime.services.reporting import Reporting
from duetime.services.scheduling import Scheduling
from duetime.services.shards import Shards
from duetime.services.steering import Steering
from duetime.services.sweeping import Sweeping
from duetime.services.switching import Switching
from duetime.services.taking_in import TakingIn
from duetime.services.topologies.conducting import Conducting
from duetime.services.topologies.directing import Directing
from duetime.services.topologies.following import Following
from duetime.services.topologies.giving import Giving
from duetime.services.topologies.making import Making
from duetime.services.topologies.nodes import Nodes
from duetime.services.topologies.overseeing import Overseeing
from duetime.services.topologies.retention import Retention
from duetime.services.topologies.running import Running
from duetime.services.topologies.wholes import Wholes
from duetime.services.undoing import Undoing
from duetime.services.waiting import Waiting
from duetime.services.working import Working
from duetime.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.targets.calls import Caller
    from duetime.domain.attempts import HeldBack, Skipped
    from duetime.domain.bulk import BulkKind, BulkOperation, BulkProgress
    from duetime.domain.errors import RecordUnreadable
    from duetime.domain.schedules.calendars import Calendar, Kind
    from duetime.domain.schedules.zones import Zone
    from duetime.domain.sweeps import BulkRequest
    from duetime.domain.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.queues import Delivery
    from duetime.ports.surroundings import Chance, Clock, Crew, Process


@dataclass(frozen=True)
class Outside:
    """The world around a function.

    Attributes:
        environ: the environment variables.
        clock: the time.
        chance: randomness.
        clients: of AWS.
        process: what a stuck worker ends.
        threads: what runs things concurrently; `None` for threads.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = field(default_factory=SystemClock)
    chance: Chance = field(default_factory=SystemChance)
    clients: Clients = field(default_factory=Clients)
    process: Process = field(default_factory=LambdaProcess)
    threads: Crew | None = None

    @cached_property
    def crew(self) -> Crew:
        """Threads, unless something else was given."""
        return self.threads or Threads(self.clock)


class Composition:
    """The use cases of one process, each made when it is first asked for, over one set of adapters."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.settings = Settings(outside.environ)

    @cached_property
    def telemetry(self) -> PowertoolsTelemetry:
        """Logs and metrics; the handler flushes them."""
        return PowertoolsTelemetry(self.settings.service_name, self.settings.metrics_namespace)

    @cached_property
    def tasks(self) -> DynamoTaskStore:
        """The tasks table's records."""
        return DynamoTaskStore(self._dynamodb, self.settings.table, self.outside.crew, self._note_unreadable)

    @cached_property
    def contents(self) -> SplitContentStore:
        """Payloads and results."""
        return SplitContentStore(self._dynamodb, self.settings.table, self.outside.clients.s3(), self.settings.bucket)

    @cached_property
    def queues(self) -> SqsQueues:
        """The work queues."""
        settings, outside = self.settings, self.outside
        return SqsQueues(outside.clients.sqs(), settings.queue_urls, outside.crew, settings.pulled_queue_urls)

    def _note_unreadable(self, error: RecordUnreadable) -> None:
        self.telemetry.count("unreadable")
        self.telemetry.note("an item was left out that cannot be read", key=error.key, error=str(error))

    @cached_property
    def placing(self) -> Placing:
        """How tasks are placed."""
        settings, outside = self.settings, self.outside
        return Placing(
            self.tasks, self.queues, outside.clock, outside.chance, settings.look_ahead_ms, settings.precision
        )

    @cached_property
    def locking(self) -> Locking:
        """Takes and hands on locks."""
        outside = self.outside
        return Locking(
            locks=self._locks,
            tasks=self.tasks,
            placing=self.placing,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
            lease=self.settings.lease_ms,
            caps=self.heeding.caps,
        )

    @cached_property
    def heeding(self) -> Heeding:
        """Heeds switches."""
        outside = self.outside
        return Heeding(self._switches, outside.clock, outside.chance, self.telemetry)

    @cached_property
    def switching(self) -> Switching:
        """Sets switches, and shows what is held back."""
        outside = self.outside
        return Switching(self._switches, self._circuits, self.settings.operators, outside.clock, outside.chance)

    @cached_property
    def _switches(self) -> DynamoSwitchStore:
        return DynamoSwitchStore(self._dynamodb, self.settings.table)

    @cached_property
    def shards(self) -> Shards:
        """How many shards there are."""
        return Shards(DynamoShardStore(self._dynamodb, self.settings.table), self.outside.clock, self.settings.shards)

    @cached_property
    def _circuits(self) -> DynamoCircuitStore:
        return DynamoCircuitStore(self._dynamodb, self.settings.table)

    @cached_property
    def freeing(self) -> Freeing:
        """Shows locks, and frees them by force."""
        return Freeing(self._locks, self.locking, self.outside.clock, self.outside.chance)

    @cached_property
    def _locks(self) -> DynamoLockStore:
        return DynamoLockStore(self._dynamodb, self.settings.table, self.outside.crew)

    @cached_property
    def _target_rules(self) -> TargetRules:
        settings = self.settings
        known = known_types(settings.handler_types)
        handled = None if known is None else known | BUILT_IN.keys()
        return TargetRules(settings.pulled_queue_urls.keys(), settings.callable_arns, settings.http_allow, handled)

    @cached_property
    def creating(self) -> Creating:
        """Accepts tasks."""
        outside = self.outside
        keys = DynamoKeyStore(self._dynamodb, self.settings.table)
        return Creating(
            self.tasks,
            self.contents,
            keys,
            self.placing,
            outside.clock,
            outside.chance,
            outside.crew,
            self.shards,
            self._target_rules,
        )

    @cached_property
    def taking_in(self) -> TakingIn:
        """Makes tasks of events."""
        settings, outside = self.settings, self.outside
        rejects = SqsRejects(outside.clients.sqs(), settings.intake_rejects, outside.crew)
        return TakingIn(self.creating, rejects, self.telemetry, settings.intake_owner)

    @cached_property
    def reading(self) -> Reading:
        """Reads tasks."""
        return Reading(self.tasks, self.contents)

    @cached_property
    def changing(self) -> Changing:
        """Changes and cancels tasks."""
        outside = self.outside
        return Changing(
            self.tasks,
            self.contents,
            self.placing,
            outside.clock,
            outside.chance,
            self.settings.retention_ms,
            self.locking,
            self._target_rules,
            _graph_of,
        )

    @cached_property
    def targets(self) -> Targets:
        """What tasks call."""
        aws = AwsRunner(Resources(self.outside.clients), self.settings.callable_arns)
        topologies = TopologyRunner(self._machine)
        # Imported before its first task, while Lambda gives a starting process more of a processor.
        self._handlers.why_broken()
        handlers = HandlerRunner(ChainMap(REGISTRY, dict(BUILT_IN)), self._handlers.why_broken)
        return Targets(handlers, HttpRunner(self.caller), aws, topologies)

    @cached_property
    def _handlers(self) -> HandlersPackage:
        return HandlersPackage(self.settings.handlers, self.outside.clock)

    @cached_property
    def _availability(self) -> HandlerAvailability:
        return HandlerAvailability(self._handlers.why_broken, self.outside.clock, self.telemetry)

    @cached_property
    def _machine(self) -> StepFunctionsMachine:
        return StepFunctionsMachine(self.outside.clients.step_functions(), self.settings.topology_machine)

    @cached_property
    def _topologies(self) -> DynamoTopologyStore:
        return DynamoTopologyStore(self._dynamodb, self.settings.table)

    @cached_property
    def _wholes(self) -> Wholes:
        return self._wholes_reading(outline_of)

    def _wholes_reading(self, read_graph: Callable[[bytes], Graph]) -> Wholes:
        outside = self.outside
        return Wholes(
            self.tasks, self.contents, self._topologies, outside.chance, read_graph, outside.clock, outside.crew
        )

    @cached_property
    def _nodes(self) -> Nodes:
        clock, retention = self.outside.clock, self.settings.retention_ms
        return Nodes(self._wholes, self.tasks, self.contents, self._topologies, self.placing, clock, retention)

    @cached_property
    def _conducting(self) -> Conducting:
        outside, period = self.outside, self.settings.retention_ms
        retention = Retention(
            self._wholes, self.tasks, self.contents, outside.clock, outside.chance, outside.crew, period
        )
        in_background = self.bulk_operations.end_topology
        return Conducting(
            self._wholes, self._nodes, retention, self.steering, outside.clock, outside.crew, in_background
        )

    @cached_property
    def following(self) -> Following:
        """Does what follows the end of a topology's node."""
        return Following(
            wholes=self._wholes,
            making=self._making,
            nodes=self._nodes,
            conducting=self._conducting,
            store=self._topologies,
            machine=self._machine,
            crew=self.outside.crew,
        )

    @cached_property
    def _making(self) -> Making:
        outside = self.outside
        return Making(
            in_full=self._wholes_reading(_graph_of),
            tasks=self.tasks,
            contents=self.contents,
            store=self._topologies,
            chance=outside.chance,
            crew=outside.crew,
            rules=self._target_rules,
        )

    @cached_property
    def giving(self) -> Giving:
        """Gives nodes the results of their parents."""
        return Giving(self._wholes, self.tasks, self.contents)

    @cached_property
    def directing(self) -> Directing:
        """Accepts, shows and steers topologies."""
        wholes = self._wholes_reading(_graph_of)
        return Directing(
            wholes,
            self._conducting,
            self.creating,
            self.reading,
            self.steering,
            self.outside.clock,
            self.bulk_operations,
        )

    @cached_property
    def running(self) -> Running:
        """Runs topologies, state by state."""
        outside = self.outside
        return Running(
            wholes=self._wholes,
            in_full=self._wholes_reading(_graph_of),
            making=self._making,
            nodes=self._nodes,
            conducting=self._conducting,
            steering=self.steering,
            tasks=self.tasks,
            store=self._topologies,
            machine=self._machine,
            clock=outside.clock,
            chance=outside.chance,
            crew=outside.crew,
            shards=self.shards,
        )

    @cached_property
    def overseeing(self) -> Overseeing:
        """Looks after topologies that run."""
        outside, finishing = self.outside, self._finishing(ClosingElsewhere(self.queues))
        return Overseeing(
            wholes=self._wholes,
            running=self.running,
            machine=self._machine,
            finishing=finishing,
            placing=self.placing,
            clock=outside.clock,
            telemetry=self.telemetry,
        )

    @cached_property
    def caller(self) -> Caller:
        """Makes HTTP calls: through the egress function if there is one, else from this process."""
        if function := self.settings.egress_function:
            return EgressCaller(LambdaInvocation(self.outside.clients.calling_lambdas(), function))
        return self._direct_caller

    @cached_property
    def egress(self) -> Egress:
        """Makes the HTTP calls that other functions hand on."""
        return Egress(self._direct_caller, self.outside.crew)

    @cached_property
    def _direct_caller(self) -> DirectCaller:
        settings, outside = self.settings, self.outside
        signer = None
        if secret := settings.signing_secret:
            signer = Signer(SigningSecrets(outside.clients.secrets(), secret, outside.clock), outside.clock)
        return DirectCaller(settings.http_allow, signer)

    @cached_property
    def asking(self) -> Asking:
        """Asks the endpoints of tasks."""
        return Asking(self.reading, HttpRunner(self.caller), self.outside.chance)

    @cached_property
    def breaking(self) -> Breaking:
        """What tasks call, with a circuit breaker for each HTTP host."""
        outside = self.outside
        return Breaking(self.targets, self._circuits, outside.clock, outside.chance, self.telemetry)

    @cached_property
    def bulk_requests(self) -> BulkRequests:
        """Does something with the tasks that a filter means."""
        outside = self.outside
        sweeping = Sweeping(self.tasks, self.reading, self.changing, self.steering, outside.clock, outside.crew)
        keys = DynamoKeyStore(self._dynamodb, self.settings.table)
        return BulkRequests(
            self.bulk_operations, sweeping, self.contents, keys, outside.clock, outside.chance, _bulk_request_of
        )

    @cached_property
    def bulk_operations(self) -> BulkOperations:
        """Starts, shows and cancels bulk operations."""
        settings, outside = self.settings, self.outside
        return BulkOperations(
            self._bulk,
            self.tasks,
            LambdaBulkStarter(outside.clients.lambdas(), settings.bulk_function, self.telemetry),
            outside.clock,
            outside.chance,
            self.telemetry,
            self.shards,
            settings.look_ahead_ms,
        )

    @cached_property
    def bulk_executor(self) -> BulkExecutor:
        """Carries out bulk operations."""
        outside = self.outside
        of_topologies, of_filters = TopologySteps(self._wholes, self._conducting).step, self.bulk_requests.step

        def step(operation: BulkOperation, until: Millis) -> BulkProgress:
            return (of_filters if operation.topology is None else of_topologies)(operation, until)

        return BulkExecutor(self._bulk, outside.clock, outside.chance, self.telemetry, step)

    @cached_property
    def _bulk(self) -> DynamoBulkStore:
        return DynamoBulkStore(self._dynamodb, self.settings.table)

    @cached_property
    def steering(self) -> Steering:
        """Steers tasks that exist already."""
        outside = self.outside
        closing = ClosingElsewhere(self.queues)
        return Steering(
            self.tasks,
            self.contents,
            self.placing,
            self.changing,
            self._finishing(closing),
            closing,
            self.locking,
            outside.clock,
            outside.chance,
        )

    @cached_property
    def leasing(self) -> Leasing:
        """Hands out tasks to pull workers."""
        outside = self.outside
        return Leasing(
            tasks=self.tasks,
            contents=self.contents,
            queues=self.queues,
            finishing=self._finishing(ClosingElsewhere(self.queues)),
            holding=self._holding,
            pullers=self.settings.pullers,
            clock=outside.clock,
            chance=outside.chance,
            crew=outside.crew,
            telemetry=self.telemetry,
            long_polls=self._long_polls,
            inputs=self.giving.inputs_of,
        )

    @cached_property
    def reporting(self) -> Reporting:
        """Hears of the leases of pull workers."""
        outside = self.outside
        return Reporting(
            tasks=self.tasks,
            contents=self.contents,
            queues=self.queues,
            finishing=self._finishing(ClosingElsewhere(self.queues)),
            holding=self._holding,
            pullers=self.settings.pullers,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
        )

    @cached_property
    def _holding(self) -> Holding:
        return Holding(self.locking, self._held)

    def _held(self, task: Task) -> HeldBack | Skipped | None:
        """Whether a task that was just claimed may not begin: for an operator, its broken handler, or its schedule."""
        return self.heeding.held(task) or self._availability.held(task) or self.recurring.heed(task)

    @cached_property
    def scheduling(self) -> Scheduling:
        """Makes and steers schedules."""
        settings, outside = self.settings, self.outside
        return Scheduling(
            self._schedules,
            self.tasks,
            self.contents,
            self.placing,
            self._expanding,
            outside.clock,
            outside.chance,
            self.shards,
            settings.look_ahead_ms,
            settings.retention_ms,
        )

    @cached_property
    def foreseeing(self) -> Foreseeing:
        """Tells what schedules have done and will do."""
        return Foreseeing(self._schedules, self._calendars, self.tasks, self.outside.clock)

    @cached_property
    def keeping_calendars(self) -> KeepingCalendars:
        """Keeps calendars."""
        return KeepingCalendars(
            self._calendars, self._schedules, self.outside.clock, self.outside.chance, _calendar_from_ics
        )

    @cached_property
    def recurring(self) -> Recurring:
        """Keeps occurrences to their schedules."""
        outside = self.outside
        return Recurring(self._schedules, self.tasks, self.placing, self._expanding, outside.clock, outside.chance)

    @cached_property
    def _expanding(self) -> Expanding:
        settings, outside = self.settings, self.outside
        producing = Producing(self.contents, self.placing, outside.clock, self._target_rules)
        return Expanding(
            self._schedules,
            self._calendars,
            self.tasks,
            producing,
            outside.clock,
            outside.chance,
            outside.crew,
            self.telemetry,
            settings.look_ahead_ms,
        )

    @cached_property
    def _schedules(self) -> DynamoScheduleStore:
        return DynamoScheduleStore(self._dynamodb, self.settings.table, self.outside.crew)

    @cached_property
    def _calendars(self) -> DynamoCalendarStore:
        return DynamoCalendarStore(self._dynamodb, self.settings.table, self.outside.crew)

    @cached_property
    def waiting(self) -> Waiting:
        """Waits for tasks to end."""
        return Waiting(self.tasks, self.outside.clock, self._long_polls)

    @cached_property
    def _long_polls(self) -> LongPolls:
        outside, settings = self.outside, self.settings
        store = DynamoLongPollStore(self._dynamodb, settings.table)
        return LongPolls(store, outside.clock, outside.chance, self.telemetry, settings.long_polls)

    def _finishing(self, closing: Closing) -> Finishing:
        outside = self.outside
        return Finishing(
            tasks=self.tasks,
            contents=self.contents,
            placing=self.placing,
            closing=closing,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
            retention=self.settings.retention_ms,
        )

    @cached_property
    def dispatching(self) -> Dispatching:
        """Reads minutes."""
        settings, outside = self.settings, self.outside
        function = outside.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
        return Dispatching(
            tasks=self.tasks,
            cursors=DynamoCursorStore(self._dynamodb, settings.table),
            queues=self.queues,
            fan_out=LambdaFanOut(self.outside.clients.lambdas(), function, outside.crew),
            clock=outside.clock,
            crew=outside.crew,
            telemetry=self.telemetry,
            shards=self.shards,
            look_ahead=settings.look_ahead_ms,
            precision=settings.precision,
            expanding=self._expanding,
            bulk=self.bulk_operations,
        )

    @cached_property
    def working(self) -> Working:
        """Works on batches of messages."""
        settings, outside = self.settings, self.outside
        closing = ClosingHere(
            tasks=self.tasks,
            contents=self.contents,
            targets=self.targets,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
            retention=settings.retention_ms,
            calling_back=CallingBack(HttpCallbacks(self.caller, _entry), outside.clock, self.telemetry),
            tell=self.recurring.follow,
            follow=self.following.follow,
        )
        finishing = self._finishing(closing)
        attempting = Attempting(
            tasks=self.tasks,
            contents=self.contents,
            targets=self.breaking,
            finishing=finishing,
            undoing=Undoing(finishing, self.placing, outside.clock, outside.chance),
            closing=closing,
            locking=self.locking,
            clock=outside.clock,
            chance=outside.chance,
            telemetry=self.telemetry,
            lease=settings.lease_ms,
            held=self._held,
            unavailable=self._availability.held,
            inputs=self.giving.inputs_of,
            look_after=self.overseeing.look_after,
        )
        return Working(
            tasks=self.tasks,
            queues=self.queues,
            attempting=attempting,
            clock=outside.clock,
            chance=outside.chance,
            crew=outside.crew,
            process=outside.process,
            telemetry=self.telemetry,
            lease=settings.lease_ms,
        )

    @cached_property
    def burying(self) -> Burying:
        """Looks into dead letters."""
        outside = self.outside
        closing = ClosingElsewhere(self.queues)
        finishing = self._finishing(closing)
        return Burying(self.tasks, self.queues, self.placing, finishing, closing, outside.clock, self.telemetry)

    def deliveries(self, event: Mapping[str, Any]) -> list[Delivery]:
        """The deliveries in a Lambda event from SQS; what cannot be read is noted and left out."""
        return readable(event, self.queues, self.telemetry)

    @cached_property
    def _dynamodb(self) -> DynamoDBClient:
        return self.outside.clients.dynamodb()


def _graph_of(payload: bytes) -> Graph:
    # Imported when a graph is read in full: no task should wait for pydantic.
    from duetime.contract.topology_decoding import read_graph  # noqa: PLC0415 - see the line above

    return read_graph(payload)


def _bulk_request_of(kind: BulkKind, text: bytes) -> BulkRequest:
    # The same: pydantic.
    from duetime.contract.sweeps import read_stored  # noqa: PLC0415 - see the line above

    return read_stored(kind, text)


def _entry(task: Task) -> Mapping[str, object]:
    # Pydantic comes with it, which no other task should wait for.
    from duetime.contract.encoding import entry  # noqa: PLC0415 - see the line above

    return entry(task)


def _calendar_from_ics(data: bytes, name: str, start: Millis, end: Millis, *, kind: Kind, zone: Zone) -> Calendar:
    # The reader of calendar files is large, and hardly ever needed.
    from duetime.adapters.calendars.icalendar import calendar_from_ics  # noqa: PLC0415 - see the line above

    return calendar_from_ics(data, name, start, end, kind=kind, zone=zone)


_outside: Outside | None = None


def use(outside: Outside | None) -> None:
    """Exchange the outside world; `None` goes back to the real one. What was composed before is forgotten."""
    global _outside  # noqa: PLW0603 - a Lambda function's process has exactly one outside
    _outside = outside
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
    return Composition(_outside or Outside())


_find: Callable[[], Composition] = _only
