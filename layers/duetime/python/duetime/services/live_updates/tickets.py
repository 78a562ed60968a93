"""Issuing tickets: browsers cannot sign the request that opens a WebSocket, so an ordinary request does it before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.live_updates.subscriptions import TICKET_BITS, Ticket

if TYPE_CHECKING:
    from duetime.ports.live_updates import WatchStore
    from duetime.ports.runtime import Runtime


@dataclass(frozen=True, slots=True)
class WatchTickets:
    """Issues tickets, each of which opens one connection.

    Attributes:
        url: where connections are opened.
    """

    store: WatchStore
    runtime: Runtime
    url: str

    def issue(self, owner: str) -> str:
        """A new ticket for an owner."""
        text = f"{self.runtime.random_source.bits(TICKET_BITS):0{TICKET_BITS // 4}x}"
        self.store.put_ticket(Ticket.issued(text, owner, self.runtime.now()))
        return text
