"""Pushes changes to subscribed connections."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.errors import Unavailable
from duetime.domain.live_updates import by_owner, pushes, watched
from duetime.ports.stores import Delivery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import ChangeBatch
    from duetime.domain.live_updates import Connection, Push, WatchedChange
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import ConnectionSender, MessageEncoder, WatchStore

OwnersChanges: TypeAlias = "tuple[str, Sequence[WatchedChange]]"


@dataclass(frozen=True, slots=True)
class ChangePusher:
    """`duetime.ports.change_consumers.ChangeConsumer` that sends changes to connections.

    Without subscribers it makes one consistent read for each owner in a batch. Subscriptions are read again for each
    batch and never cached, so that every subscription stored before a change was written is found.
    """

    store: WatchStore
    sender: ConnectionSender
    encoder: MessageEncoder
    runtime: Runtime

    @property
    def name(self) -> str:
        """Name under which its failures are counted."""
        return "watch"

    def consume(self, changes: ChangeBatch) -> None:
        """Send the changes to all subscribed connections. Failed deliveries are counted and not repeated."""
        owners = by_owner(watched(changes)).items()
        todo = [each for found in self.runtime.executor.map(self._of_owner, owners) for each in found]
        self.runtime.executor.map(self._send, todo)

    def _of_owner(self, owners: OwnersChanges) -> list[tuple[Connection, Push]]:
        """The messages for the connections of one owner."""
        owner, changes = owners
        now = self.runtime.now()
        try:
            # TTL removes expired items only within days.
            watching = [each for each in self.store.subscriptions(owner) if each.connection.expires_at > now]
        except Unavailable as error:
            self.runtime.telemetry.count("watch_pushes_lost")
            self.runtime.telemetry.note("changes were not pushed", owner=owner, error=str(error))
            return []
        connections = {each.connection.id: each.connection for each in watching}
        return [(connections[push.connection], push) for push in pushes(watching, changes)]

    def _send(self, update: tuple[Connection, Push]) -> None:
        """Send one connection its messages until it accepts no more."""
        connection, push = update
        for text in self._messages(push):
            match self.sender.send(connection.id, text):
                case Delivery.SENT:
                    self.runtime.telemetry.count("watch_messages_sent")
                case Delivery.GONE:
                    self.runtime.telemetry.count("watch_connections_gone")
                    with suppress(Unavailable):
                        self.store.close(connection)
                    return
                case Delivery.REFUSED:
                    self.runtime.telemetry.count("watch_pushes_refused")
                    # If this is rejected as well, the client finds the change when it reads by itself.
                    self.sender.send(connection.id, self.encoder.stale(push.refs))
                    return

    def _messages(self, push: Push) -> list[str]:
        return self.encoder.changes(push.notices) if push.notices else [self.encoder.stale(push.stale)]
