"""`context.client`: the clients of a running attempt, which create tasks as children of the attempt's task.

A repeated attempt creates nothing twice, because each create request has an idempotency key that does not depend on the
attempt. The API stores the keys of each task separately. Without an explicit key, a request's key consists of the
digest of the request's path and body, and the request's position among identical requests in the phase.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any

import httpx

from duetime_client.client import AsyncClient, Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

_DIGEST_LENGTH = 40
_OF_THE_CONNECTION = frozenset({"accept-encoding", "connection", "content-length", "host", "user-agent"})
"""Headers that are not copied from an attempt's request, because the worker's client sets them itself."""
_OF_THE_CONTENT = frozenset({"content-encoding", "content-length", "transfer-encoding"})
LEASE_HEADER = "X-Duetime-Lease"
"""The header with a pull worker's lease; a request with this header acts for the leased task."""


class PhaseKeys:
    """The idempotency keys of one phase of an attempt."""

    def __init__(self, phase: str = "run") -> None:
        self._phase = phase
        self._taken: set[str] = set()
        self._lock = Lock()

    def take(self, path: str, body: bytes) -> str:
        """Return a key for a request with this path and body; identical requests get different keys."""
        digest = sha256(b"\0".join((self._phase.encode(), path.encode(), body))).hexdigest()[:_DIGEST_LENGTH]
        with self._lock:
            key = next(key for number in count(1) if (key := f"{digest}-{number}") not in self._taken)
            self._taken.add(key)
        return key

    def give_back(self, key: str) -> None:
        """Free the key of a failed request, so that the next request with the same path and body gets the same key."""
        with self._lock:
            self._taken.discard(key)


class BlockingTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests from both clients through one blocking function.

    Args:
        send: Sends a request.
        in_thread: Runs a function without blocking the event loop; by default, it runs the function in a thread.
    """

    def __init__(
        self,
        send: Callable[[httpx.Request], httpx.Response],
        in_thread: Callable[[Callable[[], httpx.Response]], Awaitable[httpx.Response]] | None = None,
    ) -> None:
        self._send = send
        self._in_thread = in_thread

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request from `Client`."""
        request.read()
        return self._send(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request from `AsyncClient`."""
        await request.aread()
        if self._in_thread is not None:
            return await self._in_thread(lambda: self._send(request))
        import asyncio  # noqa: PLC0415 - imported for coroutines only

        return await asyncio.to_thread(self._send, request)


@dataclass(frozen=True)
class AttemptClients:
    """The blocking and the asynchronous client of an attempt; each client is created on first use.

    Attributes:
        url: The address of the API.
        transport: Sends the requests of both clients.
        keys: The idempotency keys of the attempt.
        sleep: Waits for the given number of seconds.
        options: Other arguments for both clients.
    """

    url: str
    transport: BlockingTransport
    keys: PhaseKeys
    sleep: Callable[[float], object] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Client | AsyncClient:
        """Return the asynchronous client in a coroutine, and the blocking client elsewhere."""
        return self._asynchronous if is_in_coroutine() else self._blocking

    @cached_property
    def _blocking(self) -> Client:
        sleep: dict[str, Any] = {} if self.sleep is None else {"sleep": self.sleep}
        client = Client(self.url, http_transport=self.transport, **sleep, **self.options)
        client._runner.session = replace(client._runner.session, step_keys=self.keys)  # noqa: SLF001 - this code creates the object
        return client

    @cached_property
    def _asynchronous(self) -> AsyncClient:
        client = AsyncClient(self.url, http_transport=self.transport, **self.options)
        client._runner.session = replace(client._runner.session, step_keys=self.keys)  # noqa: SLF001 - this code creates the object
        return client


def clients_of_lease(client: Client, lease: str) -> AttemptClients:
    """Return the clients for an attempt of a pull worker, which add the lease to each request."""
    runner = client._runner  # noqa: SLF001 - of this package

    def send(request: httpx.Request) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name not in _OF_THE_CONNECTION}
        found = runner.http.request(
            request.method,
            request.url,
            content=request.content,
            headers={**headers, LEASE_HEADER: lease},
            timeout=httpx.Timeout(**request.extensions["timeout"]),
        )
        # The response content is already decompressed.
        kept = {name: value for name, value in found.headers.items() if name not in _OF_THE_CONTENT}
        return httpx.Response(found.status_code, headers=kept, content=found.content, request=request)

    session = runner.session
    options: dict[str, Any] = {"retries": session.retries, "random_source": session.random_source, "now": session.now}
    options["codec"] = session.codec
    return AttemptClients(session.url, BlockingTransport(send), PhaseKeys(), runner.sleep, options)


def is_in_coroutine() -> bool:
    """Whether this thread runs an event loop; always false before asyncio is imported."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
