"""Pushing changes to whoever watches them."""

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
    """`duetime.ports.change_consumers.ChangeConsumer`: tells connections of changes.

    With nobody watching it makes one consistent read for each owner of a batch. Subscriptions are read anew for each
    batch, never kept: whoever handles a change finds every subscription that was stored before it was written.
    """

    store: WatchStore
    sender: ConnectionSender
    encoder: MessageEncoder
    runtime: Runtime

    @property
    def name(self) -> str:
        """What its failures are counted under."""
        return "watch"

    def consume(self, changes: ChangeBatch) -> None:
        """Tell every connection of the changes that it watches. What cannot be told is counted, and told by nobody."""
        owners = by_owner(watched(changes)).items()
        todo = [each for found in self.runtime.executor.map(self._of_owner, owners) for each in found]
        self.runtime.executor.map(self._tell, todo)

    def _of_owner(self, owners: OwnersChanges) -> list[tuple[Connection, Push]]:
        """What the connections of one owner are told."""
        owner, changes = owners
        now = self.runtime.now()
        try:
            # TTL removes what has expired within days only.
            watching = [each for each in self.store.subscriptions(owner) if each.connection.expires_at > now]
        except Unavailable as error:
            self.runtime.telemetry.count("watch_pushes_lost")
            self.runtime.telemetry.note("changes were not pushed", owner=owner, error=str(error))
            return []
        connections = {each.connection.id: each.connection for each in watching}
        return [(connections[push.connection], push) for push in pushes(watching, changes)]

    def _tell(self, told: tuple[Connection, Push]) -> None:
        """Send one connection all that it is told, until it takes no more."""
        connection, push = told
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
                    # If that is refused, too, the client finds it by its own reading.
                    self.sender.send(connection.id, self.encoder.stale(push.refs))
                    return

    def _messages(self, push: Push) -> list[str]:
        return self.encoder.changes(push.notices) if push.notices else [self.encoder.stale(push.stale)]
