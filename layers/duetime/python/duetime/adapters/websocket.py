"""Sends messages to the connections of a WebSocket API, through API Gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from duetime.ports.stores import Delivery
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.ports.runtime import Telemetry

_GONE = "GoneException"
"""Error code for a connection that is closed (Source: API Gateway Management API Reference, PostToConnection)."""


class ConnectionsClient(Protocol):
    """The methods of boto3's client that duetime uses."""

    def post_to_connection(self, *, ConnectionId: str, Data: bytes) -> object:  # noqa: N803 - boto3's names
        """Send a message."""
        ...

    def delete_connection(self, *, ConnectionId: str) -> object:  # noqa: N803 - boto3's names
        """Close a connection."""
        ...


@frozen
class ApiGatewaySender:
    """The `duetime.ports.stores.ConnectionSender` for connections through API Gateway."""

    client: ConnectionsClient
    telemetry: Telemetry

    def send(self, connection_id: str, text: str) -> Delivery:
        """Send a message to a connection. This method never raises."""
        try:
            self.client.post_to_connection(ConnectionId=connection_id, Data=text.encode())
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == _GONE:
                return Delivery.GONE
            self.telemetry.note("the gateway refused a message", connection=connection_id, error=str(error))
            return Delivery.REFUSED
        except BotoCoreError as error:
            # The gateway did not respond in time. The sender gives up, so that other messages do not wait for the
            # gateway.
            self.telemetry.note("the gateway did not accept a message", connection=connection_id, error=str(error))
            return Delivery.REFUSED
        return Delivery.SENT

    def close(self, connection_id: str) -> None:
        """Close a connection. This method never raises."""
        try:
            self.client.delete_connection(ConnectionId=connection_id)
        except (ClientError, BotoCoreError) as error:
            self.telemetry.note("a connection could not be closed", connection=connection_id, error=str(error))
