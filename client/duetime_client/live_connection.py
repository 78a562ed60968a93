"""Connections to the WebSocket API: blocking and asynchronous."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

from duetime_client.errors import Unreachable
from duetime_client.session import LOOPBACK

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPEN_SECONDS = 30.0
LARGEST_MESSAGE = 131_072
"""API Gateway's size limit for a message, in bytes."""


class LiveConnection(Protocol):
    """An open connection."""

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message.

        Raises:
            Unreachable: The connection is closed.
        """
        ...

    def receive(self, timeout: float) -> Mapping[str, Any] | None:
        """Return the next message, or `None` if no message arrives within `timeout` seconds.

        Raises:
            Unreachable: The connection is closed.
        """
        ...

    def close(self) -> None:
        """Close it."""
        ...


class AsyncLiveConnection(Protocol):
    """The asynchronous counterpart of `LiveConnection`."""

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        ...

    async def receive(self, timeout: float) -> Mapping[str, Any] | None:  # noqa: ASYNC109 - as in `LiveConnection`
        """Return the next message, or `None` if no message arrives within `timeout` seconds."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


Connect = Callable[[str], LiveConnection]
"""Opens a connection to a URL."""
AsyncConnect = Callable[[str], Awaitable[AsyncLiveConnection]]
"""Opens a connection to a URL."""


class WebSocketMissing(Exception):
    """The package for WebSockets is not installed."""

    def __init__(self) -> None:
        super().__init__('live updates need websockets: pip install "duetime-client[live]"')


class WebSocketConnection:
    """A connection through the package `websockets`."""

    def __init__(self, url: str) -> None:
        """Open the connection.

        Raises:
            Unreachable: The connection cannot be opened.
            WebSocketMissing: The package is not installed.
        """
        try:
            # The package is imported here because it is an optional extra.
            from websockets.sync.client import connect  # noqa: PLC0415 - see the line above
        except ModuleNotFoundError as error:
            raise WebSocketMissing from error
        self._url = url.partition("?")[0]
        self._closing = ExitStack()
        try:
            self._socket = self._closing.enter_context(connect(url, **_options(url)))
        except _failures() as error:
            raise _lost(self._url, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        try:
            self._socket.send(json.dumps(message))
        except _failures() as error:
            raise _lost(self._url, error) from error

    def receive(self, timeout: float) -> Mapping[str, Any] | None:
        """Return the next message, or `None` if no message arrives within `timeout` seconds."""
        try:
            return _parsed(self._socket.recv(timeout=timeout))
        except TimeoutError:
            return None
        except _failures(ValueError) as error:
            raise _lost(self._url, error) from error

    def close(self) -> None:
        """Close it."""
        self._closing.close()


class AsyncWebSocketConnection:
    """A connection through the package `websockets`, in an asyncio event loop."""

    def __init__(self, url: str, socket: ClientConnection, closing: AsyncExitStack) -> None:
        self._url = url
        self._socket = socket
        self._closing = closing

    @classmethod
    async def open(cls, url: str) -> Self:
        """Open the connection.

        Raises:
            Unreachable: The connection cannot be opened.
            WebSocketMissing: The package is not installed.
        """
        try:
            # The package is imported here because it is an optional extra.
            from websockets.asyncio.client import connect  # noqa: PLC0415 - see the line above
        except ModuleNotFoundError as error:
            raise WebSocketMissing from error
        closing, address = AsyncExitStack(), url.partition("?")[0]
        try:
            socket = await closing.enter_async_context(connect(url, **_options(url)))
        except _failures() as error:
            raise _lost(address, error) from error
        return cls(address, socket, closing)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        try:
            await self._socket.send(json.dumps(message))
        except _failures() as error:
            raise _lost(self._url, error) from error

    async def receive(self, timeout: float) -> Mapping[str, Any] | None:  # noqa: ASYNC109 - as in `LiveConnection`
        """Return the next message, or `None` if no message arrives within `timeout` seconds."""
        # asyncio is imported here because blocking clients do not need it.
        import asyncio  # noqa: PLC0415 - see the line above

        try:
            async with asyncio.timeout(timeout):
                return _parsed(await self._socket.recv())
        except TimeoutError:
            return None
        except _failures(ValueError) as error:
            raise _lost(self._url, error) from error

    async def close(self) -> None:
        """Close it."""
        await self._closing.aclose()


def _options(url: str) -> dict[str, Any]:
    """The options of both kinds of connections; the environment's proxy is used unless the host is this machine."""
    return {
        "open_timeout": OPEN_SECONDS,
        "max_size": LARGEST_MESSAGE,
        "ping_interval": None,
        "proxy": None if urlsplit(url).hostname in LOOPBACK else True,
    }


def _failures(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """The exceptions of a failed connection, including timeouts."""
    from websockets.exceptions import WebSocketException  # noqa: PLC0415 - an extra, which is installed here

    return (WebSocketException, OSError, EOFError, *others)


def _lost(url: str, error: Exception) -> Unreachable:
    return Unreachable(url, str(error) or type(error).__name__, sent=True)


def _parsed(message: str | bytes) -> Mapping[str, Any]:
    # The gateway's own messages have no kind; they are ignored like messages of unknown kinds.
    parsed = json.loads(message)
    return parsed if isinstance(parsed, dict) else {}
