"""Manages clients' connections and subscriptions for live updates, and pushes changes to the connections."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.change_events import schedule_snapshot, task_snapshot
from duetime.domain.errors import ScheduleNotFound, SubscriptionsFull, TaskNotFound, Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_OWNER_SUBSCRIPTIONS, MAX_SUBSCRIPTIONS
from duetime.domain.live_updates import (
    TICKET_BITS,
    Connection,
    Subscription,
    Ticket,
    TopicKind,
    by_owner,
    digest_of,
    pushes,
    watched,
)
from duetime.ports.stores import Delivery
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.change_events import ChangeBatch
    from duetime.domain.live_updates import Push, Topic, Watched, WatchedChange
    from duetime.domain.tasks.filters import TaskFilter
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import ConnectionSender, MessageEncoder, ScheduleStore, WatchStore
    from duetime.services.tasks.read import TaskReader


@frozen
class WatchConnections:
    """The connections of all clients."""

    store: WatchStore
    tasks: TaskReader
    schedules: ScheduleStore
    runtime: Runtime

    def connect(self, ticket: str, connection_id: str) -> bool:
        """Open a connection if the ticket is valid; returns whether the ticket was valid."""
        now = self.runtime.now()
        redeemed = self.store.redeem(digest_of(ticket), connection_id, now)
        if redeemed is None:
            return False
        self.store.open(Connection.opened(connection_id, redeemed, now))
        return True

    def disconnect(self, connection_id: str) -> None:
        """Remove a closed connection; an unknown connection is already removed."""
        connection = self.store.connection(connection_id)
        if connection is not None:
            self.store.close(connection)

    def find(self, connection_id: str) -> Connection | None:
        """An open connection; `None` if the connection is unknown or has expired."""
        connection = self.store.connection(connection_id)
        return None if connection is None or connection.expires_at <= self.runtime.now() else connection

    def subscribe(self, connection: Connection, ref: str, topic: Topic, task_filter: TaskFilter) -> Watched | None:
        """Subscribe a connection to changes.

        The subscription is stored before its subject is read. Earlier changes are part of the returned state, and later
        changes are sent to the subscription, so no change is lost.

        Returns:
            The current state of the subject; `None` for a list, which the client reads itself.

        Raises:
            SubscriptionsFull: the connection or its owner has reached the limit.
            TaskNotFound: the task or topology does not exist, or belongs to another owner.
            ScheduleNotFound: the schedule does not exist, or belongs to another owner.
        """
        wanted = self._stored(Subscription(connection, ref, topic, task_filter))
        try:
            return self._subject(connection.owner, topic)
        except (ScheduleNotFound, TaskNotFound):
            self.store.unsubscribe(wanted)
            raise

    def unsubscribe(self, connection: Connection, ref: str) -> None:
        """End a subscription; an unknown subscription has already ended."""
        for each in self._of(connection, self.store.subscriptions(connection.owner)):
            if each.ref == ref:
                self.store.unsubscribe(each)

    def _stored(self, wanted: Subscription) -> Subscription:
        """Store a subscription in the slot of the subscription that it replaces, or in the first free slot."""
        known = self.store.subscriptions(wanted.connection.owner)
        mine = self._of(wanted.connection, known)
        replaced = [each.slot for each in mine if each.ref == wanted.ref]
        if len(known) >= MAX_OWNER_SUBSCRIPTIONS and not replaced:
            raise SubscriptionsFull("owner", MAX_OWNER_SUBSCRIPTIONS)
        taken = {each.slot for each in mine}
        # Messages of one connection are handled in parallel, so another message may take the slot first.
        for slot in replaced or sorted(set(range(MAX_SUBSCRIPTIONS)) - taken):
            placed = replace(wanted, slot=slot)
            if self.store.subscribe(placed):
                return placed
        raise SubscriptionsFull("connection", MAX_SUBSCRIPTIONS)

    def _subject(self, owner: str, topic: Topic) -> Watched | None:
        match topic.kind:
            case TopicKind.MINE:
                return None
            case TopicKind.SCHEDULE:
                stored, _ = self.schedules.read(owner, topic.name)
                if stored is None:
                    raise ScheduleNotFound(topic.name)
                return schedule_snapshot(stored)
            case TopicKind.TASK | TopicKind.TOPOLOGY:
                return task_snapshot(self.tasks.record(owner, TaskId.parse(topic.name)))

    @staticmethod
    def _of(connection: Connection, subscriptions: Sequence[Subscription]) -> list[Subscription]:
        return [each for each in subscriptions if each.connection.id == connection.id]


@frozen
class WatchTickets:
    """Issues tickets, each of which opens one connection.

    Attributes:
        url: endpoint to which clients connect.
    """

    store: WatchStore
    runtime: Runtime
    url: str

    def issue(self, owner: str, session_ends_at: Millis | None = None) -> str:
        """Issue a ticket for an owner; the connection that the ticket opens ends when the caller's token expires."""
        text = f"{self.runtime.random_source.bits(TICKET_BITS):0{TICKET_BITS // 4}x}"
        self.store.put_ticket(Ticket.issued(text, owner, self.runtime.now(), session_ends_at))
        return text


OwnersChanges: TypeAlias = "tuple[str, Sequence[WatchedChange]]"


@frozen
class ChangePusher:
    """`duetime.ports.change_consumers.ChangeConsumer` that sends changes to connections.

    For each owner in a batch who has no subscribers, the consumer makes one consistent read. Subscriptions are read
    again for each batch and never cached, so that every subscription stored before a change was written is found.
    """

    store: WatchStore
    sender: ConnectionSender
    encoder: MessageEncoder
    runtime: Runtime

    @property
    def name(self) -> str:
        """Name under which the failures of this consumer are counted."""
        return "watch"

    def consume(self, changes: ChangeBatch) -> None:
        """Send the changes to all subscribed connections. Failed deliveries are counted and not repeated."""
        owners = by_owner(watched(changes)).items()
        todo = [each for found in self.runtime.executor.map(self._of_owner, owners) for each in found]
        self.runtime.executor.map(self._send, todo)

    def _of_owner(self, owners: OwnersChanges) -> list[tuple[Connection, Push]]:
        """The messages for one owner's connections."""
        owner, changes = owners
        now = self.runtime.now()
        try:
            subscriptions = self.store.subscriptions(owner)
        except Unavailable as error:
            self.runtime.telemetry.count("watch_pushes_lost")
            self.runtime.telemetry.note("changes were not pushed", owner=owner, error=str(error))
            return []
        # TTL may take days to remove expired items.
        self._close({each.connection for each in subscriptions if each.connection.expires_at <= now})
        watching = [each for each in subscriptions if each.connection.expires_at > now]
        connections = {each.connection.id: each.connection for each in watching}
        return [(connections[push.connection], push) for push in pushes(watching, changes)]

    def _close(self, connections: Iterable[Connection]) -> None:
        """Close connections that have expired; their clients open new connections with a valid token."""
        for connection in connections:
            self.sender.close(connection.id)
            with suppress(Unavailable):
                self.store.close(connection)

    def _send(self, update: tuple[Connection, Push]) -> None:
        """Send one connection its messages until the connection accepts no more."""
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
                    # If this message is also rejected, the client finds the change at its next read.
                    self.sender.send(connection.id, self.encoder.stale(push.refs))
                    return

    def _messages(self, push: Push) -> list[str]:
        return self.encoder.changes(push.notices) if push.notices else [self.encoder.stale(push.stale)]
