"""Composes the objects that most use cases share: stores, queues, the enqueuer, bulk operations, counts and quotas.

Objects that few invocations need are imported within their properties.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.stores import DynamoStores
from duetime.adapters.sqs import SqsQueues, readable
from duetime.adapters.targets.python_handlers import handler_descriptions, known_types
from duetime.canary_task import BUILT_IN
from duetime.composition import Part
from duetime.domain.tasks.allowed_targets import TargetRules
from duetime.services.enqueue import Enqueuer, Shards

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.adapters.dynamodb.summary import DynamoSummaryRecounts, DynamoSummaryStore
    from duetime.domain.tasks.type_defaults import HandlerDescription
    from duetime.domain.topologies.graph import Graph
    from duetime.ports.queues import Delivery
    from duetime.ports.stores import StepStore, TracebackStore
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.long_poll_limit import LongPolls
    from duetime.services.order_lines import OrderLines
    from duetime.services.quotas.admin import QuotaAdmin, QuotaUsage
    from duetime.services.quotas.at_once import AttemptQuota, LeaseQuota, RunningTopologies
    from duetime.services.quotas.book import DispatchPace, QuotaBook
    from duetime.services.quotas.rates import OpenTasks, QuotaGuard, RateMeter
    from duetime.services.rate_limiter import RateLimiter
    from duetime.services.signals import EventWaits
    from duetime.services.summary import SummaryReader
    from duetime.services.tasks.creation_rules import CreationRules, TypeAdmin, TypeDefaults
    from duetime.services.tasks.read import TaskReader
    from duetime.services.topologies.definitions import TopologyDefinitions
    from duetime.services.topologies.node_tasks import NodeInputs
    from duetime.services.topologies.repository import TopologyRepository
    from duetime.services.trigger.dispatcher import DispatchStatusReader


def read_graph(payload: bytes, parameters: Collection[str]) -> Graph:
    """The `duetime.ports.topologies.NewGraphReader` that parses graphs with the REST contract's pydantic models."""
    from duetime.contract.topologies import decoding

    return decoding.read_graph(payload, parameters)


class CoreServices(Part):
    """Composes stores, queues, shards, rules, and other objects that many use cases need."""

    @cached_property
    def stores(self) -> DynamoStores:
        """The stores that most use cases need."""
        return DynamoStores(self.platform.clients, self.settings, self.runtime)

    @cached_property
    def tracebacks(self) -> TracebackStore:
        """The store for tracebacks of failed attempts, which is imported only by functions that need it."""
        from duetime.adapters.dynamodb.attempt_contents import DynamoTracebackStore

        return DynamoTracebackStore(self.platform.clients.dynamodb(), self.settings.table)

    @cached_property
    def steps(self) -> StepStore:
        """The store for step results, which is imported for the first handler with steps."""
        from duetime.adapters.dynamodb.attempt_contents import DynamoStepStore

        return DynamoStepStore(self.platform.clients.dynamodb(), self.settings.table)

    @cached_property
    def queues(self) -> SqsQueues:
        """The work queues."""
        settings, clients = self.settings, self.platform.clients
        return SqsQueues(clients.sqs(), settings.queue_urls, self.runtime.executor, settings.pulled_queue_urls)

    @cached_property
    def enqueuer(self) -> Enqueuer:
        """Schedules the checks of tasks."""
        settings = self.settings
        return Enqueuer(
            tasks=self.stores.tasks,
            queues=self.queues,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            precision=settings.precision,
            pace=self.pace,
            order_lines=lambda: self.stores.order_lines,
        )

    @cached_property
    def quota_book(self) -> QuotaBook:
        """The owners' quotas. Most deployments have no quotas, so the modules are imported only here.

        Raises:
            QuotasOff: the deployment has no quotas.
        """
        from duetime.domain.errors import QuotasOff
        from duetime.services.quotas.book import QuotaBook

        if (defaults := self.settings.quotas) is None:
            raise QuotasOff
        return QuotaBook(self.stores.quotas, self.runtime, defaults)

    @cached_property
    def pace(self) -> DispatchPace | None:
        """Spreads the messages of owners with a quota over time; `None` if the deployment has no quotas."""
        if not self.settings.has_quotas:
            return None
        from duetime.services.quotas.book import DispatchPace

        return DispatchPace(self.quota_book, self.runtime.clock)

    @cached_property
    def shards(self) -> Shards:
        """The number of shards."""
        return Shards(self.stores.shards, self.runtime.clock, self.settings.shards)

    @cached_property
    def target_rules(self) -> TargetRules:
        """The rules for the targets that tasks may call."""
        settings = self.settings
        known = known_types(settings.handler_types)
        handled = None if known is None else known | BUILT_IN.keys()
        return TargetRules(
            settings.pulled_queue_urls.keys(),
            settings.callable_arns,
            settings.http_allow,
            handled,
            settings.http_secrets,
            settings.type_owners,
            settings.target_owners,
        )

    @cached_property
    def creation_rules(self) -> CreationRules:
        """The rules for accepting tasks."""
        from duetime.services.tasks.creation_rules import CreationRules

        return CreationRules(self.target_rules, read_graph, lambda: self.topology_definitions, self.type_defaults)

    @cached_property
    def handler_descriptions(self) -> Mapping[str, HandlerDescription]:
        """The deployment's handlers by task type; empty if they are unknown."""
        return handler_descriptions(self.settings.handler_types)

    @cached_property
    def type_defaults(self) -> TypeDefaults:
        """Completes tasks with the defaults of their types."""
        from duetime.services.tasks.creation_rules import TypeDefaults

        return TypeDefaults(self.stores.type_defaults, self.handler_descriptions, self.shards, self.runtime)

    @cached_property
    def type_admin(self) -> TypeAdmin:
        """Lists task types, and sets their defaults."""
        from duetime.services.tasks.creation_rules import TypeAdmin

        return TypeAdmin(self.type_defaults, self.target_rules, BUILT_IN.keys(), self.runtime)

    @cached_property
    def task_reader(self) -> TaskReader:
        """Reads tasks."""
        from duetime.services.tasks.read import ArchiveAge, TaskReader

        settings = self.settings
        archive = None
        if settings.archive_bucket:
            archive = ArchiveAge(self.runtime.clock, settings.retention, settings.archive_retention)
        return TaskReader(self.stores, archive, self.runtime.clock, self.runtime.executor)

    @cached_property
    def topology_definitions(self) -> TopologyDefinitions:
        """Manages topology definitions, and creates their runs."""
        from duetime.services.topologies.definitions import TopologyDefinitions

        return TopologyDefinitions(self.stores, self.runtime)

    @cached_property
    def topology_outlines(self) -> TopologyRepository:
        """Reads topologies with graph outlines only, which does not require importing other libraries."""
        from duetime.domain.topologies.graph import outline_of
        from duetime.services.topologies.repository import TopologyRepository

        return TopologyRepository(self.stores, self.runtime, outline_of)

    @cached_property
    def node_inputs(self) -> NodeInputs:
        """Provides topology nodes with their parents' results."""
        from duetime.services.topologies.node_tasks import NodeInputs

        return NodeInputs(self.topology_outlines, self.stores)

    @cached_property
    def rate_limiter(self) -> RateLimiter:
        """Decides when the attempts of tasks with a rate can start."""
        from duetime.services.rate_limiter import RateLimiter

        return RateLimiter(self.stores.rates, self.runtime)

    @cached_property
    def order_lines(self) -> OrderLines:
        """Keeps the order of tasks with an ordered key."""
        from duetime.services.order_lines import OrderLines

        return OrderLines(self.stores, self.enqueuer, self.runtime)

    @cached_property
    def event_waits(self) -> EventWaits:
        """Lets tasks wait for signals."""
        from duetime.services.signals import EventWaits

        return EventWaits(self.stores, self.runtime)

    @cached_property
    def long_polls(self) -> LongPolls:
        """Limits how many requests wait at the same time."""
        from duetime.services.long_poll_limit import LongPolls

        of_owners = None
        if self.settings.has_quotas:
            from duetime.services.quotas.at_once import WaitingRequests

            of_owners = WaitingRequests(self.quota_book, self.stores.quota_use, self.runtime)
        return LongPolls(self.stores.long_polls, self.runtime, self.settings.long_polls, of_owners)

    def deliveries(self, event: Mapping[str, Any]) -> list[Delivery]:
        """The deliveries in a Lambda event from SQS. Unreadable messages are logged and left out."""
        return readable(event, self.queues, self.runtime.telemetry)


class BulkServices(Part):
    """Starts, shows and cancels bulk operations."""

    @cached_property
    def operations(self) -> BulkOperations:
        """Starts, shows and cancels bulk operations."""
        from duetime.adapters.lambda_invocations import LambdaBulkStarter
        from duetime.services.bulk.manage import BulkOperations

        core, settings = self.part(CoreServices), self.settings
        return BulkOperations(
            stores=core.stores,
            starter=LambdaBulkStarter(self.platform.clients.lambdas(), settings.bulk_function, self.runtime.telemetry),
            runtime=self.runtime,
            shards=core.shards,
            look_ahead=settings.look_ahead_ms,
        )


class DispatchStatusServices(Part):
    """Shows the progress of dispatching."""

    @cached_property
    def reader(self) -> DispatchStatusReader:
        """Reads the trigger's cursors and the queues."""
        from duetime.services.trigger.dispatcher import DispatchStatusReader

        core, settings = self.part(CoreServices), self.settings
        return DispatchStatusReader(
            cursors=core.stores.cursors,
            queues=core.queues,
            shards=core.shards,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            pulled_types=sorted(settings.pulled_queue_urls),
        )


class SummaryServices(Part):
    """Stores and reads the counts of tasks."""

    @cached_property
    def store(self) -> DynamoSummaryStore:
        """The store for counts, which is separate from the other stores, because only two functions use it."""
        from duetime.adapters.dynamodb.summary import DynamoSummaryStore

        return DynamoSummaryStore(self.platform.clients.dynamodb(), self.settings.table)

    @cached_property
    def recounts(self) -> DynamoSummaryRecounts:
        """The store for generations of counts and for the results of recounts."""
        from duetime.adapters.dynamodb.summary import DynamoSummaryRecounts

        return DynamoSummaryRecounts(self.platform.clients.dynamodb(), self.settings.table, self.runtime.clock)

    @cached_property
    def reader(self) -> SummaryReader:
        """Reads the counts."""
        from duetime.services.summary import SummaryReader

        settings = self.settings
        return SummaryReader(self.store, self.recounts, self.runtime, settings.summary_spread)


class QuotaServices(Part):
    """Applies, shows and sets quotas. Only deployments with quotas use this part."""

    @property
    def book(self) -> QuotaBook:
        """The owners' quotas."""
        return self.part(CoreServices).quota_book

    @cached_property
    def attempts(self) -> AttemptQuota:
        """Limits concurrent attempts."""
        from duetime.services.quotas.at_once import AttemptQuota

        return AttemptQuota(self.book, self.part(CoreServices).stores.quota_use, self.runtime)

    @cached_property
    def running_topologies(self) -> RunningTopologies:
        """Limits the nodes of running topologies."""
        from duetime.services.quotas.at_once import RunningTopologies

        stores = self.part(CoreServices).stores
        return RunningTopologies(self.book, stores.quota_use, stores.tasks, self.runtime)

    @cached_property
    def leases(self) -> LeaseQuota:
        """Limits the leases of pull workers."""
        from duetime.services.quotas.at_once import LeaseQuota

        stores = self.part(CoreServices).stores
        return LeaseQuota(self.book, stores.quota_use, stores.tasks, self.runtime)

    @cached_property
    def guard(self) -> QuotaGuard:
        """Admits requests that are within the owner's quotas."""
        from duetime.services.quotas.rates import QuotaGuard

        schedules = self.part(CoreServices).stores.schedules
        return QuotaGuard(self.book, self._rate_meter, self._open_tasks, schedules, self.running_topologies)

    @cached_property
    def admin(self) -> QuotaAdmin:
        """Shows and sets quotas."""
        from duetime.services.quotas.admin import QuotaAdmin

        store = self.part(CoreServices).stores.quotas
        return QuotaAdmin(store, self.book.defaults, self.runtime, self.usage)

    @cached_property
    def usage(self) -> QuotaUsage:
        """Reads how much of their quotas owners use."""
        from duetime.services.quotas.admin import QuotaUsage

        stores = self.part(CoreServices).stores
        return QuotaUsage(
            use=stores.quota_use,
            open_tasks=self._open_tasks,
            schedules=stores.schedules,
            running_topologies=self.running_topologies,
            leases=self.leases,
            runtime=self.runtime,
        )

    @cached_property
    def _rate_meter(self) -> RateMeter:
        from duetime.services.quotas.rates import RateMeter

        return RateMeter(self.part(CoreServices).stores.quota_use, self.runtime)

    @cached_property
    def _open_tasks(self) -> OpenTasks:
        from duetime.services.quotas.rates import OpenTasks

        counted = bool(self.settings.summary_spread)
        return OpenTasks(self._summary_reader if counted else None, self._rate_meter, self.runtime)

    def _summary_reader(self) -> SummaryReader:
        return self.part(SummaryServices).reader
