"""The clients: `Client` (blocking) and `AsyncClient` (asynchronous).

Each resource is imported on first use, because the response models take longer to import than everything else.
"""

from __future__ import annotations

import random
import time
from functools import cached_property
from typing import TYPE_CHECKING, Self

from duetime_client.live_connection import AsyncWebSocketConnection, WebSocketConnection
from duetime_client.polling import utc_now
from duetime_client.retries import Retries
from duetime_client.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    import httpx

    from duetime_client.api_keys import ApiKeys, AsyncApiKeys
    from duetime_client.bulk_operations import AsyncBulkOperations, BulkOperations
    from duetime_client.calendars import AsyncCalendars, Calendars
    from duetime_client.dead_letters import AsyncDeadLetters, DeadLetters
    from duetime_client.deployment_settings import AsyncSettingsResource, SettingsResource
    from duetime_client.dispatch_status import AsyncDispatchResource, DispatchResource
    from duetime_client.exports import AsyncExports, Exports
    from duetime_client.groups import AsyncGroups, Groups
    from duetime_client.intake_rules import AsyncIntakeRules, IntakeRules
    from duetime_client.leases import AsyncLeases, Leases
    from duetime_client.live_connection import AsyncConnect, Connect
    from duetime_client.locks import AsyncLocks, Locks
    from duetime_client.ordered_keys import AsyncOrderedKeys, OrderedKeys
    from duetime_client.purges import AsyncPurges, Purges
    from duetime_client.quotas import AsyncQuotas, Quotas
    from duetime_client.rates import AsyncRates, Rates
    from duetime_client.schedules import AsyncSchedules, Schedules
    from duetime_client.session import PageRead
    from duetime_client.signals import AsyncSignals, Signals
    from duetime_client.signing_secrets import AsyncSigningSecretsResource, SigningSecretsResource
    from duetime_client.summary import AsyncSummaryResource, SummaryResource
    from duetime_client.switches import AsyncSwitches, Switches
    from duetime_client.task_links import AsyncTaskLinks, TaskLinks
    from duetime_client.task_types import AsyncTypes, Types
    from duetime_client.tasks import AsyncTasks, Tasks
    from duetime_client.topologies import AsyncTopologies, Topologies
    from duetime_client.topology_definitions import AsyncTopologyDefinitions, TopologyDefinitions
    from duetime_client.unique_keys import AsyncUniqueKeys, UniqueKeys
    from duetime_client.watch_tickets import AsyncWatchTickets, WatchTickets
    from duetime_common.payload_codecs import PayloadCodec

OWNER_HEADER = "X-Duetime-Owner"
"""Header with the owner to act for: the caller, one of the caller's teams or, on the local stack, any owner."""
TIMEOUT_SECONDS = 35.0
"""The default timeout; a longer timeout would not help, because the API's gateway times out after 30 seconds."""


class Client:
    """A client for one deployment.

    Close the client after use, or use it as a context manager. Threads can share a client.

    Args:
        url: The address of the API.
        auth: How requests are authenticated: `BearerToken`, or `SigV4` of `duetime_client.sigv4`.
        api_key: An API key of the deployment, instead of `auth`.
        owner: The owner to act for, such as one of the caller's teams; by default the caller.
        timeout: Timeout of one request in seconds; connecting can take at most 5 seconds.
        retries: How often requests are retried if a retry is safe; three times by default.
        codec: Encrypts payloads, results and error messages, so that only processes with the codec can read them.
        sleep: Waits for the given number of seconds.
        random_source: Returns a number in [0, 1).
        now: Returns the current time.
        connect: Opens a WebSocket.
        http_transport: Sends HTTP requests.
        storage_transport: Uploads large payloads to S3, and downloads them.
    """

    def __init__(  # noqa: PLR0913 - what it runs on, for tests to exchange
        self,
        url: str,
        *,
        auth: httpx.Auth | None = None,
        api_key: str | None = None,
        owner: str | None = None,
        timeout: float | httpx.Timeout = TIMEOUT_SECONDS,
        retries: Retries | None = None,
        codec: PayloadCodec | None = None,
        sleep: Callable[[float], object] = time.sleep,
        random_source: Callable[[], float] = random.random,
        now: Callable[[], datetime] = utc_now,
        connect: Connect = WebSocketConnection,
        http_transport: httpx.BaseTransport | None = None,
        storage_transport: httpx.BaseTransport | None = None,
    ) -> None:
        import httpx

        from duetime_client.http import authorized, checked, http_options
        from duetime_client.io_runners import Runner

        url, auth = authorized(checked(url), auth, api_key)
        session = Session(url, retries or Retries(), random_source, now, codec=codec)
        options = http_options(session.url, {OWNER_HEADER: owner} if owner else {}, timeout)
        http = httpx.Client(auth=auth, transport=http_transport, **options)
        self._runner = Runner(session, http, sleep, connect, storage_transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connections."""
        self._runner.close()

    @property
    def page_listeners(self) -> list[Callable[[PageRead], object]]:
        """Callbacks that run after each list page is read; a filtered list can need many pages."""
        return self._runner.session.page_listeners

    @cached_property
    def tasks(self) -> Tasks:
        """Tasks."""
        from duetime_client.tasks import Tasks

        return Tasks(self._runner)

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules, their runs and their backfills."""
        from duetime_client.schedules import Schedules

        return Schedules(self._runner)

    @cached_property
    def topologies(self) -> Topologies:
        """Topologies: graphs of tasks."""
        from duetime_client.topologies import Topologies

        return Topologies(self._runner)

    @cached_property
    def topology_definitions(self) -> TopologyDefinitions:
        """Topology definitions: graphs of tasks with a name, versions and parameters."""
        from duetime_client.topology_definitions import TopologyDefinitions

        return TopologyDefinitions(self._runner)

    @cached_property
    def calendars(self) -> Calendars:
        """Calendars: the times at which scheduled tasks may or may not run."""
        from duetime_client.calendars import Calendars

        return Calendars(self._runner)

    @cached_property
    def groups(self) -> Groups:
        """Groups of tasks, and what runs when a group is complete."""
        from duetime_client.groups import Groups

        return Groups(self._runner)

    @cached_property
    def locks(self) -> Locks:
        """Locks, their holders and waiting tasks."""
        from duetime_client.locks import Locks

        return Locks(self._runner)

    @cached_property
    def rates(self) -> Rates:
        """Rates, their usage and their waiting tasks."""
        from duetime_client.rates import Rates

        return Rates(self._runner)

    @cached_property
    def unique_keys(self) -> UniqueKeys:
        """Unique keys, and the tasks that hold them."""
        from duetime_client.unique_keys import UniqueKeys

        return UniqueKeys(self._runner)

    @cached_property
    def ordered_keys(self) -> OrderedKeys:
        """Ordered keys, and the tasks in the line of each key."""
        from duetime_client.ordered_keys import OrderedKeys

        return OrderedKeys(self._runner)

    @cached_property
    def leases(self) -> Leases:
        """Leases of tasks that a pull worker runs."""
        from duetime_client.leases import Leases

        return Leases(self._runner)

    @cached_property
    def types(self) -> Types:
        """Task types, and the default options of their tasks."""
        from duetime_client.task_types import Types

        return Types(self._runner)

    @cached_property
    def signals(self) -> Signals:
        """Signals, which wake the tasks that wait for an event."""
        from duetime_client.signals import Signals

        return Signals(self._runner)

    @cached_property
    def intake_rules(self) -> IntakeRules:
        """Intake rules, by which events create, cancel or wake tasks."""
        from duetime_client.intake_rules import IntakeRules

        return IntakeRules(self._runner)

    @cached_property
    def quotas(self) -> Quotas:
        """Quotas of owners, and their usage."""
        from duetime_client.quotas import Quotas

        return Quotas(self._runner)

    @cached_property
    def switches(self) -> Switches:
        """Switches that stop or limit dispatch."""
        from duetime_client.switches import Switches

        return Switches(self._runner)

    @cached_property
    def bulk_operations(self) -> BulkOperations:
        """Bulk operations: background changes to many tasks."""
        from duetime_client.bulk_operations import BulkOperations

        return BulkOperations(self._runner)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """Tasks that failed after all their attempts."""
        from duetime_client.dead_letters import DeadLetters

        return DeadLetters(self._runner)

    @cached_property
    def summary(self) -> SummaryResource:
        """Counts of tasks."""
        from duetime_client.summary import SummaryResource

        return SummaryResource(self._runner)

    @cached_property
    def settings(self) -> SettingsResource:
        """Settings of the deployment that matter to its callers."""
        from duetime_client.deployment_settings import SettingsResource

        return SettingsResource(self._runner)

    @cached_property
    def dispatch(self) -> DispatchResource:
        """Progress of dispatch: the last tick and the queue lengths."""
        from duetime_client.dispatch_status import DispatchResource

        return DispatchResource(self._runner)

    @cached_property
    def exports(self) -> Exports:
        """Exports of all of the caller's data."""
        from duetime_client.exports import Exports

        return Exports(self._runner)

    @cached_property
    def purges(self) -> Purges:
        """Purges: removal of all stored data of tasks, or of an owner."""
        from duetime_client.purges import Purges

        return Purges(self._runner)

    @cached_property
    def task_links(self) -> TaskLinks:
        """Links to tasks, for people without credentials."""
        from duetime_client.task_links import TaskLinks

        return TaskLinks(self._runner)

    @cached_property
    def api_keys(self) -> ApiKeys:
        """API keys, for administrators."""
        from duetime_client.api_keys import ApiKeys

        return ApiKeys(self._runner)

    @cached_property
    def signing_secrets(self) -> SigningSecretsResource:
        """The secrets that sign HTTP calls for you."""
        from duetime_client.signing_secrets import SigningSecretsResource

        return SigningSecretsResource(self._runner)

    @cached_property
    def watch_tickets(self) -> WatchTickets:
        """Tickets for connections to the WebSocket API."""
        from duetime_client.watch_tickets import WatchTickets

        return WatchTickets(self._runner)


class AsyncClient:
    """An asynchronous client for one deployment. Close the client with `aclose`, or use it with `async with`.

    The arguments, resources and methods are the same as in `Client`. Methods that return an iterator in `Client` return
    an asynchronous iterator here; all other methods are awaited. `sleep`, `connect` and the transports are also
    asynchronous.
    """

    def __init__(  # noqa: PLR0913 - what it runs on, for tests to exchange
        self,
        url: str,
        *,
        auth: httpx.Auth | None = None,
        api_key: str | None = None,
        owner: str | None = None,
        timeout: float | httpx.Timeout = TIMEOUT_SECONDS,
        retries: Retries | None = None,
        codec: PayloadCodec | None = None,
        sleep: Callable[[float], Awaitable[object]] | None = None,
        random_source: Callable[[], float] = random.random,
        now: Callable[[], datetime] = utc_now,
        connect: AsyncConnect = AsyncWebSocketConnection.open,
        http_transport: httpx.AsyncBaseTransport | None = None,
        storage_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        import asyncio

        import httpx

        from duetime_client.http import authorized, checked, http_options
        from duetime_client.io_runners import AsyncRunner

        url, auth = authorized(checked(url), auth, api_key)
        session = Session(url, retries or Retries(), random_source, now, codec=codec)
        options = http_options(session.url, {OWNER_HEADER: owner} if owner else {}, timeout)
        http = httpx.AsyncClient(auth=auth, transport=http_transport, **options)
        self._runner = AsyncRunner(session, http, sleep or asyncio.sleep, connect, storage_transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the open connections."""
        await self._runner.aclose()

    @property
    def page_listeners(self) -> list[Callable[[PageRead], object]]:
        """Callbacks that run after each list page is read; a filtered list can need many pages."""
        return self._runner.session.page_listeners

    @cached_property
    def tasks(self) -> AsyncTasks:
        """Tasks."""
        from duetime_client.tasks import AsyncTasks

        return AsyncTasks(self._runner)

    @cached_property
    def schedules(self) -> AsyncSchedules:
        """Schedules, their runs and their backfills."""
        from duetime_client.schedules import AsyncSchedules

        return AsyncSchedules(self._runner)

    @cached_property
    def topologies(self) -> AsyncTopologies:
        """Topologies: graphs of tasks."""
        from duetime_client.topologies import AsyncTopologies

        return AsyncTopologies(self._runner)

    @cached_property
    def topology_definitions(self) -> AsyncTopologyDefinitions:
        """Topology definitions: graphs of tasks with a name, versions and parameters."""
        from duetime_client.topology_definitions import AsyncTopologyDefinitions

        return AsyncTopologyDefinitions(self._runner)

    @cached_property
    def calendars(self) -> AsyncCalendars:
        """Calendars: the times at which scheduled tasks may or may not run."""
        from duetime_client.calendars import AsyncCalendars

        return AsyncCalendars(self._runner)

    @cached_property
    def groups(self) -> AsyncGroups:
        """Groups of tasks, and what runs when a group is complete."""
        from duetime_client.groups import AsyncGroups

        return AsyncGroups(self._runner)

    @cached_property
    def locks(self) -> AsyncLocks:
        """Locks, their holders and waiting tasks."""
        from duetime_client.locks import AsyncLocks

        return AsyncLocks(self._runner)

    @cached_property
    def rates(self) -> AsyncRates:
        """Rates, their usage and their waiting tasks."""
        from duetime_client.rates import AsyncRates

        return AsyncRates(self._runner)

    @cached_property
    def unique_keys(self) -> AsyncUniqueKeys:
        """Unique keys, and the tasks that hold them."""
        from duetime_client.unique_keys import AsyncUniqueKeys

        return AsyncUniqueKeys(self._runner)

    @cached_property
    def ordered_keys(self) -> AsyncOrderedKeys:
        """Ordered keys, and the tasks in the line of each key."""
        from duetime_client.ordered_keys import AsyncOrderedKeys

        return AsyncOrderedKeys(self._runner)

    @cached_property
    def leases(self) -> AsyncLeases:
        """Leases of tasks that a pull worker runs."""
        from duetime_client.leases import AsyncLeases

        return AsyncLeases(self._runner)

    @cached_property
    def types(self) -> AsyncTypes:
        """Task types, and the default options of their tasks."""
        from duetime_client.task_types import AsyncTypes

        return AsyncTypes(self._runner)

    @cached_property
    def signals(self) -> AsyncSignals:
        """Signals, which wake the tasks that wait for an event."""
        from duetime_client.signals import AsyncSignals

        return AsyncSignals(self._runner)

    @cached_property
    def intake_rules(self) -> AsyncIntakeRules:
        """Intake rules, by which events create, cancel or wake tasks."""
        from duetime_client.intake_rules import AsyncIntakeRules

        return AsyncIntakeRules(self._runner)

    @cached_property
    def quotas(self) -> AsyncQuotas:
        """Quotas of owners, and their usage."""
        from duetime_client.quotas import AsyncQuotas

        return AsyncQuotas(self._runner)

    @cached_property
    def switches(self) -> AsyncSwitches:
        """Switches that stop or limit dispatch."""
        from duetime_client.switches import AsyncSwitches

        return AsyncSwitches(self._runner)

    @cached_property
    def bulk_operations(self) -> AsyncBulkOperations:
        """Bulk operations: background changes to many tasks."""
        from duetime_client.bulk_operations import AsyncBulkOperations

        return AsyncBulkOperations(self._runner)

    @cached_property
    def dead_letters(self) -> AsyncDeadLetters:
        """Tasks that failed after all their attempts."""
        from duetime_client.dead_letters import AsyncDeadLetters

        return AsyncDeadLetters(self._runner)

    @cached_property
    def summary(self) -> AsyncSummaryResource:
        """The number of tasks."""
        from duetime_client.summary import AsyncSummaryResource

        return AsyncSummaryResource(self._runner)

    @cached_property
    def settings(self) -> AsyncSettingsResource:
        """Settings of the deployment that matter to its callers."""
        from duetime_client.deployment_settings import AsyncSettingsResource

        return AsyncSettingsResource(self._runner)

    @cached_property
    def dispatch(self) -> AsyncDispatchResource:
        """Progress of dispatch: the last tick and the queue lengths."""
        from duetime_client.dispatch_status import AsyncDispatchResource

        return AsyncDispatchResource(self._runner)

    @cached_property
    def exports(self) -> AsyncExports:
        """Exports of all of the caller's data."""
        from duetime_client.exports import AsyncExports

        return AsyncExports(self._runner)

    @cached_property
    def purges(self) -> AsyncPurges:
        """Purges: removal of all stored data of tasks, or of an owner."""
        from duetime_client.purges import AsyncPurges

        return AsyncPurges(self._runner)

    @cached_property
    def task_links(self) -> AsyncTaskLinks:
        """Links to tasks, for people without credentials."""
        from duetime_client.task_links import AsyncTaskLinks

        return AsyncTaskLinks(self._runner)

    @cached_property
    def api_keys(self) -> AsyncApiKeys:
        """API keys, for administrators."""
        from duetime_client.api_keys import AsyncApiKeys

        return AsyncApiKeys(self._runner)

    @cached_property
    def signing_secrets(self) -> AsyncSigningSecretsResource:
        """The secrets that sign HTTP calls for you."""
        from duetime_client.signing_secrets import AsyncSigningSecretsResource

        return AsyncSigningSecretsResource(self._runner)

    @cached_property
    def watch_tickets(self) -> AsyncWatchTickets:
        """Tickets for connections to the WebSocket API."""
        from duetime_client.watch_tickets import AsyncWatchTickets

        return AsyncWatchTickets(self._runner)
