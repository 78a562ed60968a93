"""A fake of API Gateway's management API for WebSocket connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from duetime_testing.fakes.errors import Exceptions


@dataclass
class FakeConnections:
    """WebSocket connections, and the messages sent to them.

    Attributes:
        received: the messages received by each open connection, in order.
        refused: connections that currently reject messages because of a rate limit.
    """

    exceptions: Exceptions = field(default_factory=Exceptions)
    received: dict[str, list[str]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def post_to_connection(self, *, ConnectionId: str, Data: bytes) -> dict[str, Any]:
        """Send a message (Source: API Gateway Management API Reference)."""
        if ConnectionId not in self.received:
            raise self.exceptions.make("GoneException", "PostToConnection", "410")
        if ConnectionId in self.refused:
            raise self.exceptions.make("LimitExceededException", "PostToConnection", "429")
        if len(Data) > 128 * 1024:
            raise self.exceptions.make("PayloadTooLargeException", "PostToConnection", "413")
        self.received[ConnectionId].append(Data.decode("utf-8"))
        return {}

    def delete_connection(self, *, ConnectionId: str) -> dict[str, Any]:
        """Close a connection (Source: API Gateway Management API Reference)."""
        if self.received.pop(ConnectionId, None) is None:
            raise self.exceptions.make("GoneException", "DeleteConnection", "410")
        return {}
