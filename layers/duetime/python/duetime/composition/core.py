"""Composes the common parts of most use cases: stores, queues, the enqueuer, and the start of bulk operations."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.stores import DynamoStores
from duetime.adapters.sqs.queues import SqsQueues, readable
from duetime.adapters.targets.python_handlers import known_types
from duetime.canary_task import BUILT_IN
from duetime.composition.root import Part
from duetime.domain.tasks.allowed_targets import TargetRules
from duetime.services.enqueue import Enqueuer
from duetime.services.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.ports.queues import Delivery
    from duetime.ports.stores import TracebackStore
    from duetime.services.bulk.manage import BulkOperations


class CoreServices(Part):
    """Stores, queues, shards, and the allowed targets."""

    @cached_property
    def stores(self) -> DynamoStores:
        """All stores."""
        return DynamoStores(self.platform.clients, self.settings, self.runtime)

    @cached_property
    def tracebacks(self) -> TracebackStore:
        """Tracebacks of failed attempts; imported only by functions that need it."""
        from duetime.adapters.dynamodb.tracebacks import DynamoTracebackStore

        return DynamoTracebackStore(self.platform.clients.dynamodb(), self.settings.table)

    @cached_property
    def queues(self) -> SqsQueues:
        """The work queues."""
        settings, clients = self.settings, self.platform.clients
        return SqsQueues(clients.sqs(), settings.queue_urls, self.runtime.executor, settings.pulled_queue_urls)

    @cached_property
    def enqueuer(self) -> Enqueuer:
        """Schedules checks of tasks."""
        settings = self.settings
        return Enqueuer(self.stores.tasks, self.queues, self.runtime, settings.look_ahead_ms, settings.precision)

    @cached_property
    def shards(self) -> Shards:
        """The number of shards."""
        return Shards(self.stores.shards, self.runtime.clock, self.settings.shards)

    @cached_property
    def target_rules(self) -> TargetRules:
        """The targets that tasks may call."""
        settings = self.settings
        known = known_types(settings.handler_types)
        handled = None if known is None else known | BUILT_IN.keys()
        return TargetRules(
            settings.pulled_queue_urls.keys(),
            settings.callable_arns,
            settings.http_allow,
            handled,
            settings.http_secrets,
        )

    def deliveries(self, event: Mapping[str, Any]) -> list[Delivery]:
        """The deliveries in a Lambda event from SQS; unreadable ones are noted and left out."""
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
