"""Runners execute the steps of operations: they block for `Client`, and await for `AsyncClient`."""

from __future__ import annotations

from contextlib import aclosing, closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from duetime_client.http import unreachable
from duetime_client.io_operations import (
    CloseConnection,
    HttpCall,
    Item,
    OpenConnection,
    Pause,
    ReceiveMessage,
    SendMessage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from duetime_client.io_operations import Items, Step, Steps
    from duetime_client.live_connection import AsyncConnect, AsyncLiveConnection, Connect, LiveConnection
    from duetime_client.session import Session

T = TypeVar("T")


class Runner:
    """Executes steps and blocks the caller; the runner is thread-safe."""

    def __init__(
        self,
        session: Session,
        http: httpx.Client,
        sleep: Callable[[float], object],
        connect: Connect,
        storage_transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.session = session
        self.http = http
        self.sleep = sleep
        self.connect = connect
        self._storage_transport = storage_transport

    @cached_property
    def storage(self) -> httpx.Client:
        """Sends requests to signed URLs; created on first use, because few programs need it."""
        return httpx.Client(transport=self._storage_transport, timeout=self.http.timeout)

    def close(self) -> None:
        """Close the open connections."""
        self.http.close()
        if "storage" in self.__dict__:
            self.storage.close()

    def run(self, steps: Steps[T]) -> T:
        """Run steps and return their result."""
        with closing(self.stream(_with_result(steps))) as items:
            return next(items)

    def stream(self, steps: Items[T]) -> Generator[T]:
        """Yield the results of steps as they become available."""
        with closing(steps), closing(_Devices(self)) as devices:
            outcome: Any = None
            error: Exception | None = None
            while True:
                try:
                    step = steps.throw(error) if error else steps.send(outcome)
                except StopIteration:
                    return
                outcome = error = None
                if isinstance(step, Item):
                    yield step.value
                    continue
                try:
                    outcome = devices.carry_out(step)
                except Exception as raised:  # noqa: BLE001 - the steps handle the exception
                    error = raised


class _Devices:
    """The connection and clock used by the steps of one call."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._connection: LiveConnection | None = None

    def carry_out(self, step: Step) -> object:
        """Execute one step."""
        match step:
            case HttpCall():
                return self._call(step)
            case Pause():
                return self._runner.sleep(step.seconds)
            case OpenConnection():
                self.close()
                self._connection = self._runner.connect(step.url)
            case SendMessage() if self._connection:
                self._connection.send(step.message)
            case ReceiveMessage() if self._connection:
                return self._connection.receive(step.timeout)
            case CloseConnection():
                self.close()
        return None

    def _call(self, call: HttpCall) -> httpx.Response:
        try:
            http = self._runner.storage if call.is_signed_url else self._runner.http
            return http.request(call.method, call.url, content=call.content, headers=call.headers)
        except httpx.RequestError as error:
            raise unreachable(self._runner.session.url, error) from error

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection:
            connection.close()


class AsyncRunner:
    """Executes steps asynchronously."""

    def __init__(
        self,
        session: Session,
        http: httpx.AsyncClient,
        sleep: Callable[[float], Awaitable[object]],
        connect: AsyncConnect,
        storage_transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.session = session
        self.http = http
        self.sleep = sleep
        self.connect = connect
        self._storage_transport = storage_transport

    @cached_property
    def storage(self) -> httpx.AsyncClient:
        """Sends requests to signed URLs; created on first use, because few programs need it."""
        return httpx.AsyncClient(transport=self._storage_transport, timeout=self.http.timeout)

    async def aclose(self) -> None:
        """Close the open connections."""
        await self.http.aclose()
        if "storage" in self.__dict__:
            await self.storage.aclose()

    async def run(self, steps: Steps[T]) -> T:
        """Run steps and return their result."""
        async with aclosing(self.stream(_with_result(steps))) as items:
            return await anext(items)

    async def stream(self, steps: Items[T]) -> AsyncGenerator[T]:
        """Yield the results of steps as they become available."""
        with closing(steps):
            async with aclosing(_AsyncDevices(self)) as devices:
                outcome: Any = None
                error: Exception | None = None
                while True:
                    try:
                        step = steps.throw(error) if error else steps.send(outcome)
                    except StopIteration:
                        return
                    outcome = error = None
                    if isinstance(step, Item):
                        yield step.value
                        continue
                    try:
                        outcome = await devices.carry_out(step)
                    except Exception as raised:  # noqa: BLE001 - the steps handle the exception
                        error = raised


class _AsyncDevices:
    """The connection and clock used by the steps of one call."""

    def __init__(self, runner: AsyncRunner) -> None:
        self._runner = runner
        self._connection: AsyncLiveConnection | None = None

    async def carry_out(self, step: Step) -> object:
        """Execute one step."""
        match step:
            case HttpCall():
                return await self._call(step)
            case Pause():
                return await self._runner.sleep(step.seconds)
            case OpenConnection():
                await self.aclose()
                self._connection = await self._runner.connect(step.url)
            case SendMessage() if self._connection:
                await self._connection.send(step.message)
            case ReceiveMessage() if self._connection:
                return await self._connection.receive(step.timeout)
            case CloseConnection():
                await self.aclose()
        return None

    async def _call(self, call: HttpCall) -> httpx.Response:
        try:
            http = self._runner.storage if call.is_signed_url else self._runner.http
            return await http.request(call.method, call.url, content=call.content, headers=call.headers)
        except httpx.RequestError as error:
            raise unreachable(self._runner.session.url, error) from error

    async def aclose(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection:
            await connection.close()


def _with_result(steps: Steps[T]) -> Items[T]:
    """Run the steps, and yield their result as an item."""
    yield Item((yield from steps))
