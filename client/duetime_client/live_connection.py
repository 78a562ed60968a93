"""A connection to the WebSocket API."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Protocol, Self

from duetime_client.errors import Unreachable

OPEN_SECONDS = 30.0
LARGEST_MESSAGE = 131_072
"""API Gateway's own limit of a message, in bytes."""


class LiveConnection(Protocol):
    """An open connection."""

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message.

        Raises:
            Unreachable: The connection is closed.
        """
        ...

    def receive(self, timeout: float) -> Mapping[str, Any] | None:
        """The next message; None if there is none for so many seconds.

        Raises:
            Unreachable: The connection is closed.
        """
        ...

    def close(self) -> None:
        """Close it."""
        ...


Connect = Callable[[str], LiveConnection]
"""Opens a connection to a URL."""


class WebSocketMissing(Exception):
    """The package for WebSockets is not installed."""

    def __init__(self) -> None:
        super().__init__('live updates need websockets: pip install "duetime-client[live]"')


class WebSocketConnection:
    """A connection through the package `websockets`."""

    def __init__(self, url: str) -> None:
        """Open it.

        Raises:
            Unreachable: It cannot be opened.
            WebSocketMissing: The package is not installed.
        """
        try:
            # Imported here, because it is an extra.
            from websockets.exceptions import WebSocketException  # noqa: PLC0415 - see the line above
            from websockets.sync.client import connect  # noqa: PLC0415 - see the line above
        except ModuleNotFoundError as error:
            raise WebSocketMissing from error
        self._url = url.partition("?")[0]
        self._failures = (WebSocketException, OSError, EOFError)
        self._closing = ExitStack()
        try:
            self._socket = self._closing.enter_context(
                connect(url, open_timeout=OPEN_SECONDS, max_size=LARGEST_MESSAGE, ping_interval=None)
            )
        except (*self._failures, TimeoutError) as error:
            raise self._lost(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        try:
            self._socket.send(json.dumps(message))
        except self._failures as error:
            raise self._lost(error) from error

    def receive(self, timeout: float) -> Mapping[str, Any] | None:
        """The next message; None if there is none for so many seconds."""
        try:
            parsed = json.loads(self._socket.recv(timeout=timeout))
        except TimeoutError:
            return None
        except (*self._failures, ValueError) as error:
            raise self._lost(error) from error
        # A message of the gateway itself has no kind, and is passed over like kinds that are not known yet.
        return parsed if isinstance(parsed, dict) else {}

    def close(self) -> None:
        """Close it."""
        self._closing.close()

    def _lost(self, error: Exception) -> Unreachable:
        return Unreachable(self._url, str(error) or type(error).__name__, sent=True)
