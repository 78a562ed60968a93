"""Creates the stores that use the tasks table and the bucket.

Modules that few functions need are imported at first use.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from duetime.adapters.aws_clients import DeferredClient
from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb.task_store import DynamoTaskStore

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

    from duetime.adapters.aws_clients import Clients
    from duetime.adapters.dynamodb.bulk import DynamoBulkStore
    from duetime.adapters.dynamodb.circuit_breakers import DynamoCircuitStore
    from duetime.adapters.dynamodb.groups import DynamoGroupStore
    from duetime.adapters.dynamodb.intake_rules import DynamoIntakeRuleStore
    from duetime.adapters.dynamodb.keys import DynamoKeyStore, DynamoUniqueKeyStore
    from duetime.adapters.dynamodb.live_updates import DynamoWatchStore
    from duetime.adapters.dynamodb.locks import DynamoLockStore
    from duetime.adapters.dynamodb.long_polls import DynamoLongPollStore
    from duetime.adapters.dynamodb.order_lines import DynamoOrderLineStore
    from duetime.adapters.dynamodb.quotas import DynamoQuotaStore, DynamoQuotaUse
    from duetime.adapters.dynamodb.rates import DynamoRateStore
    from duetime.adapters.dynamodb.schedules import DynamoCalendarStore, DynamoScheduleStore
    from duetime.adapters.dynamodb.signals import DynamoSignalStore
    from duetime.adapters.dynamodb.switches import DynamoSwitchStore
    from duetime.adapters.dynamodb.task_lists import DynamoTaskLists
    from duetime.adapters.dynamodb.topology_definitions import DynamoDefinitionStore
    from duetime.adapters.dynamodb.topology_run_state import DynamoTopologyStore
    from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore, DynamoShardStore
    from duetime.adapters.dynamodb.type_defaults import DynamoTypeDefaultsStore
    from duetime.adapters.uploads import S3UploadStore
    from duetime.ports.runtime import Runtime
    from duetime.settings import Settings

# ruff: noqa: PLC0415 - see the docstring


class DynamoStores:
    """The `duetime.ports.stores.Stores` that creates each store and each client at first use."""

    def __init__(self, clients: Clients, settings: Settings, runtime: Runtime) -> None:
        self._clients = clients
        self._settings = settings
        self._runtime = runtime

    @cached_property
    def _client(self) -> DynamoDBClient:
        return self._clients.dynamodb()

    @property
    def _table(self) -> str:
        return self._settings.table

    @cached_property
    def tasks(self) -> DynamoTaskStore:
        """Records of tasks and their timers."""
        return DynamoTaskStore(self._client, self._table, self._runtime.executor, self._runtime.telemetry)

    @cached_property
    def task_lists(self) -> DynamoTaskLists:
        """Lists of tasks by state, type, name, tag and more."""
        from duetime.adapters.dynamodb.task_lists import DynamoTaskLists

        return DynamoTaskLists(self._client, self._table, self._runtime.executor, self._settings.task_lists)

    @cached_property
    def contents(self) -> SplitContentStore:
        """Payloads and results."""
        return SplitContentStore(self._client, self._table, self._s3, self._settings.bucket)

    @cached_property
    def uploads(self) -> S3UploadStore:
        """Uploaded payloads."""
        from duetime.adapters.uploads import S3UploadStore

        return S3UploadStore(self._s3, self._settings.bucket)

    @cached_property
    def _s3(self) -> S3Client:
        # The client is created at first use, because few contents are in S3, and startup should not wait for the
        # client.
        return cast("S3Client", DeferredClient(self._clients.s3))

    @cached_property
    def keys(self) -> DynamoKeyStore:
        """Idempotency keys."""
        from duetime.adapters.dynamodb.keys import DynamoKeyStore

        return DynamoKeyStore(self._client, self._table)

    @cached_property
    def unique_keys(self) -> DynamoUniqueKeyStore:
        """Unique keys of tasks."""
        from duetime.adapters.dynamodb.keys import DynamoUniqueKeyStore

        return DynamoUniqueKeyStore(self._client, self._table)

    @cached_property
    def groups(self) -> DynamoGroupStore:
        """Groups of tasks, and their members."""
        from duetime.adapters.dynamodb.groups import DynamoGroupStore

        return DynamoGroupStore(self._client, self._table, self._runtime.executor)

    @cached_property
    def schedules(self) -> DynamoScheduleStore:
        """Schedules and their active runs."""
        from duetime.adapters.dynamodb.schedules import DynamoScheduleStore

        return DynamoScheduleStore(self._client, self._table, self._runtime.executor)

    @cached_property
    def calendars(self) -> DynamoCalendarStore:
        """Calendars."""
        from duetime.adapters.dynamodb.schedules import DynamoCalendarStore

        return DynamoCalendarStore(self._client, self._table, self._runtime.executor)

    @cached_property
    def topologies(self) -> DynamoTopologyStore:
        """Run states of topologies."""
        from duetime.adapters.dynamodb.topology_run_state import DynamoTopologyStore

        return DynamoTopologyStore(self._client, self._table)

    @cached_property
    def definitions(self) -> DynamoDefinitionStore:
        """Topology definitions."""
        from duetime.adapters.dynamodb.topology_definitions import DynamoDefinitionStore

        return DynamoDefinitionStore(self._client, self._table, self._runtime.executor)

    @cached_property
    def bulk(self) -> DynamoBulkStore:
        """Bulk operations."""
        from duetime.adapters.dynamodb.bulk import DynamoBulkStore

        return DynamoBulkStore(self._client, self._table)

    @cached_property
    def locks(self) -> DynamoLockStore:
        """Locks and their lines."""
        from duetime.adapters.dynamodb.locks import DynamoLockStore

        return DynamoLockStore(self._client, self._table, self._runtime.executor)

    @cached_property
    def signals(self) -> DynamoSignalStore:
        """Signals, and the tasks that wait for them."""
        from duetime.adapters.dynamodb.signals import DynamoSignalStore

        return DynamoSignalStore(self._client, self._table)

    @cached_property
    def order_lines(self) -> DynamoOrderLineStore:
        """Lines of ordered keys."""
        from duetime.adapters.dynamodb.order_lines import DynamoOrderLineStore

        return DynamoOrderLineStore(self._client, self._table, self._runtime.executor)

    @cached_property
    def rates(self) -> DynamoRateStore:
        """States of rates."""
        from duetime.adapters.dynamodb.rates import DynamoRateStore

        return DynamoRateStore(self._client, self._table, self._runtime.executor)

    @cached_property
    def switches(self) -> DynamoSwitchStore:
        """Switches."""
        from duetime.adapters.dynamodb.switches import DynamoSwitchStore

        return DynamoSwitchStore(self._client, self._table)

    @cached_property
    def intake_rules(self) -> DynamoIntakeRuleStore:
        """Intake rules."""
        from duetime.adapters.dynamodb.intake_rules import DynamoIntakeRuleStore

        return DynamoIntakeRuleStore(self._client, self._table)

    @cached_property
    def quotas(self) -> DynamoQuotaStore:
        """Quotas of owners."""
        from duetime.adapters.dynamodb.quotas import DynamoQuotaStore

        return DynamoQuotaStore(self._client, self._table)

    @cached_property
    def quota_use(self) -> DynamoQuotaUse:
        """Usage of quotas."""
        from duetime.adapters.dynamodb.quotas import DynamoQuotaUse

        return DynamoQuotaUse(self._client, self._table)

    @cached_property
    def type_defaults(self) -> DynamoTypeDefaultsStore:
        """Defaults of task types."""
        from duetime.adapters.dynamodb.type_defaults import DynamoTypeDefaultsStore

        return DynamoTypeDefaultsStore(self._client, self._table)

    @cached_property
    def circuit_breakers(self) -> DynamoCircuitStore:
        """Circuits of HTTP hosts whose calls have failed."""
        from duetime.adapters.dynamodb.circuit_breakers import DynamoCircuitStore

        return DynamoCircuitStore(self._client, self._table)

    @cached_property
    def cursors(self) -> DynamoCursorStore:
        """The read position of each group of shards."""
        from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore

        return DynamoCursorStore(self._client, self._table, self._runtime.telemetry, self._settings.cursors_of)

    @cached_property
    def shards(self) -> DynamoShardStore:
        """Announced numbers of shards."""
        from duetime.adapters.dynamodb.trigger_cursors import DynamoShardStore

        return DynamoShardStore(self._client, self._table)

    @cached_property
    def long_polls(self) -> DynamoLongPollStore:
        """Places for waiting API requests."""
        from duetime.adapters.dynamodb.long_polls import DynamoLongPollStore

        return DynamoLongPollStore(self._client, self._table)

    @cached_property
    def subscriptions(self) -> DynamoWatchStore:
        """Connections and subscriptions of live updates."""
        from duetime.adapters.dynamodb.live_updates import DynamoWatchStore

        return DynamoWatchStore(self._client, self._table)
