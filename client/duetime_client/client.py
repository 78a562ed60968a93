"""The clients: `Client`, whose methods wait, and `AsyncClient`, whose methods are awaited."""

from __future__ import annotations

import asyncio
import random
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

import httpx

from duetime_client.authentication import OWNER_HEADER
from duetime_client.bulk_operations import AsyncBulkOperations, BulkOperations
from duetime_client.calendars import AsyncCalendars, Calendars
from duetime_client.dead_letters import AsyncDeadLetters, DeadLetters
from duetime_client.leases import AsyncLeases, Leases
from duetime_client.live_connection import AsyncWebSocketConnection, WebSocketConnection
from duetime_client.locks import AsyncLocks, Locks
from duetime_client.polling import utc_now
from duetime_client.retries import Retries
from duetime_client.runners import AsyncRunner, Runner
from duetime_client.schedules import AsyncSchedules, Schedules
from duetime_client.session import Session, checked, sendable
from duetime_client.summary import AsyncSummaryResource, SummaryResource
from duetime_client.switches import AsyncSwitches, Switches
from duetime_client.tasks import AsyncTasks, Tasks
from duetime_client.topologies import AsyncTopologies, Topologies
from duetime_client.watch_tickets import AsyncWatchTickets, WatchTickets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from duetime_client.live_connection import AsyncConnect, Connect

# The API's gateway times out after 30 seconds, so waiting much longer is useless.
TIMEOUT = httpx.Timeout(35.0, connect=5.0)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Client:
    """A deployment. Close it, or use it as a context manager; threads may share it.

    Args:
        url: The address of the API.
        auth: How requests are authenticated: `BearerToken`, or `SigV4` of `duetime_client.sigv4`.
        owner: Owner of the tasks, for a deployment without authentication.
        timeout: How long one request may take, in seconds; 35 by default, of which 5 to connect.
        retries: How often requests are retried, where that is safe; three times by default.
        sleep: Waits for so many seconds.
        random_source: A number from 0, less than 1.
        now: The time.
        connect: Opens a WebSocket.
        http_transport: Sends HTTP requests.
    """

    def __init__(  # noqa: PLR0913 - what it runs on, for tests to exchange
        self,
        url: str,
        *,
        auth: httpx.Auth | None = None,
        owner: str | None = None,
        timeout: float | httpx.Timeout = TIMEOUT,
        retries: Retries | None = None,
        sleep: Callable[[float], object] = time.sleep,
        random_source: Callable[[], float] = random.random,
        now: Callable[[], datetime] = utc_now,
        connect: Connect = WebSocketConnection,
        http_transport: httpx.BaseTransport | None = None,
    ) -> None:
        session = Session(checked(url), retries or Retries(), random_source, now)
        http = httpx.Client(transport=http_transport, **_http_options(session.url, auth, owner, timeout))
        self._runner = runner = Runner(session, http, sleep, connect)
        self.tasks = Tasks(runner)
        self.schedules = Schedules(runner)
        self.topologies = Topologies(runner)
        self.calendars = Calendars(runner)
        self.locks = Locks(runner)
        self.leases = Leases(runner)
        self.switches = Switches(runner)
        self.bulk_operations = BulkOperations(runner)
        self.dead_letters = DeadLetters(runner)
        self.summary = SummaryResource(runner)
        self.watch_tickets = WatchTickets(runner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connections."""
        self._runner.http.close()


class AsyncClient:
    """A deployment, for coroutines. Close it with `aclose`, or use it with `async with`.

    Its resources and their methods are those of `Client`; what returns an iterator there returns an asynchronous one,
    and everything else is awaited.

    Args:
        url: The address of the API.
        auth: How requests are authenticated: `BearerToken`, or `SigV4` of `duetime_client.sigv4`.
        owner: Owner of the tasks, for a deployment without authentication.
        timeout: How long one request may take, in seconds; 35 by default, of which 5 to connect.
        retries: How often requests are retried, where that is safe; three times by default.
        sleep: Waits for so many seconds.
        random_source: A number from 0, less than 1.
        now: The time.
        connect: Opens a WebSocket.
        http_transport: Sends HTTP requests.
    """

    def __init__(  # noqa: PLR0913 - what it runs on, for tests to exchange
        self,
        url: str,
        *,
        auth: httpx.Auth | None = None,
        owner: str | None = None,
        timeout: float | httpx.Timeout = TIMEOUT,
        retries: Retries | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random_source: Callable[[], float] = random.random,
        now: Callable[[], datetime] = utc_now,
        connect: AsyncConnect = AsyncWebSocketConnection.open,
        http_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        session = Session(checked(url), retries or Retries(), random_source, now)
        http = httpx.AsyncClient(transport=http_transport, **_http_options(session.url, auth, owner, timeout))
        self._runner = runner = AsyncRunner(session, http, sleep, connect)
        self.tasks = AsyncTasks(runner)
        self.schedules = AsyncSchedules(runner)
        self.topologies = AsyncTopologies(runner)
        self.calendars = AsyncCalendars(runner)
        self.locks = AsyncLocks(runner)
        self.leases = AsyncLeases(runner)
        self.switches = AsyncSwitches(runner)
        self.bulk_operations = AsyncBulkOperations(runner)
        self.dead_letters = AsyncDeadLetters(runner)
        self.summary = AsyncSummaryResource(runner)
        self.watch_tickets = AsyncWatchTickets(runner)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the open connections."""
        await self._runner.http.aclose()


def _http_options(
    url: str, auth: httpx.Auth | None, owner: str | None, timeout: float | httpx.Timeout
) -> dict[str, Any]:
    """What both clients say to httpx."""
    headers = {"User-Agent": f"duetime-client/{version('duetime-client')}"}
    return {
        "auth": auth,
        "headers": {**headers, **sendable({OWNER_HEADER: owner} if owner else {})},
        "timeout": timeout,
        # A proxy named by the environment cannot reach this machine's own loopback.
        "trust_env": httpx.URL(url).host not in _LOOPBACK,
    }
