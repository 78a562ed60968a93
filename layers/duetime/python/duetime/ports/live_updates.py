"""Live updates: where tickets, connections and subscriptions are kept, and how a connection is written to.

Every method of the store may raise `duetime.domain.errors.Unavailable` if it throttles or fails after its own retries.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.live_updates import Connection, Notice, Subscription, Ticket, Watched
    from duetime.domain.times import Millis


class WatchStore(Protocol):
    """Tickets, connections and subscriptions."""

    def put_ticket(self, ticket: Ticket) -> None:
        """Keep a new ticket."""
        ...

    def redeem(self, digest: str, connection_id: str, now: Millis) -> str | None:
        """Use a ticket up. Safe to resend: the connection that has used it may do so again.

        Returns:
            The owner that it was issued to; `None` if it is unknown, expired, or used by another connection.
        """
        ...

    def open(self, connection: Connection) -> None:
        """Keep a new connection."""
        ...

    def connection(self, connection_id: str) -> Connection | None:
        """Read a connection, consistently."""
        ...

    def close(self, connection: Connection) -> None:
        """Remove a connection and its subscriptions; safe to resend."""
        ...

    def subscribe(self, subscription: Subscription) -> bool:
        """Store a subscription in its slot; safe to resend.

        Returns:
            `False` if the slot has a subscription of another name.
        """
        ...

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription, unless its slot has one of another name by now."""
        ...

    def subscriptions(self, owner: str) -> list[Subscription]:
        """Read the subscriptions of an owner, consistently: whatever was stored before is among them."""
        ...


class Delivery(Enum):
    """What became of a message to a connection."""

    SENT = "sent"
    GONE = "gone"
    """The connection is closed."""
    REFUSED = "refused"
    """The connection, or the gateway, takes no more for now, or did not answer."""


class ConnectionSender(Protocol):
    """Writes to connections."""

    def send(self, connection_id: str, text: str) -> Delivery:
        """Send a message to a connection. Never raises."""
        ...


class MessageEncoder(Protocol):
    """Puts what connections are told into the words of the protocol."""

    def snapshot(self, ref: str, record: Watched | None) -> str:
        """What a subscription begins with; no record for a list."""
        ...

    def unsubscribed(self, ref: str) -> str:
        """That a subscription has ended."""
        ...

    def pong(self, ref: str | None) -> str:
        """The answer to a sign of life."""
        ...

    def stale(self, refs: Sequence[str]) -> str:
        """That what some subscriptions are about should be read again."""
        ...

    def error(self, ref: str | None, error: Exception) -> str:
        """Why a message was refused."""
        ...

    def changes(self, notices: Sequence[Notice]) -> list[str]:
        """Changes, in as few messages as hold them."""
        ...
