"""The pusher of changes counts the results of its messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.live_updates.encoding import JsonEncoder
from duetime.domain.change_events import Change, ChangeBatch
from duetime.domain.errors import Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.live_updates import Connection, Subscription, Ticket, Topic, TopicKind
from duetime.domain.times import SECOND
from duetime.ports.runtime import Runtime
from duetime.ports.stores import Delivery
from duetime.services.live_updates import ChangePusher
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom
from tests.clocks import StandingClock
from tests.domain.changes.test_events import RUNNING

if TYPE_CHECKING:
    from duetime.domain.times import Millis


@dataclass
class Store:
    """A store with one connection that watches all its owner's tasks; reads can fail."""

    watching: Connection
    away: bool = False
    reads: int = 0
    closed: list[Connection] = field(default_factory=list)

    def subscriptions(self, owner: str) -> list[Subscription]:
        """Read who watches."""
        if self.away:
            raise Unavailable("throttled")
        assert owner == RUNNING.owner
        self.reads += 1
        return [Subscription(self.watching, "1", Topic(TopicKind.MINE))]

    def close(self, connection: Connection) -> None:
        """Remove a connection."""
        self.closed.append(connection)


class Executor:
    """A mapping that handles items one after another."""

    def map(self, do: Any, items: Any) -> list[Any]:  # noqa: ANN401 - any arguments
        """Call the function for each item."""
        return [do(each) for each in items]


def opened(clock: StandingClock, session_ends_at: Millis | None = None) -> Connection:
    """A new connection of an owner."""
    ticket = Ticket.issued("ticket", RUNNING.owner, clock.now(), session_ends_at)
    return Connection.opened("one", ticket, clock.now())


@dataclass
class Sender:
    """A gateway that answers every message in the same way."""

    delivery: Delivery
    sent: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    def close(self, connection_id: str) -> None:
        """Close a connection."""
        self.closed.append(connection_id)

    def send(self, connection_id: str, text: str) -> Delivery:
        """Take a message."""
        assert connection_id == "one"
        self.sent.append(text)
        return self.delivery


CHANGED = ChangeBatch((Change("1", 0, RUNNING, replace(RUNNING, version=3)),))


@pytest.mark.parametrize(
    ("delivery", "away", "counted", "sent"),
    [
        (Delivery.SENT, False, "watch_messages_sent", 1),
        (Delivery.GONE, False, "watch_connections_gone", 1),
        (Delivery.REFUSED, False, "watch_pushes_refused", 2),
        (Delivery.SENT, True, "watch_pushes_lost", 0),
    ],
)
def test_a_message_is_counted_by_its_outcome(delivery: Delivery, away: bool, counted: str, sent: int) -> None:  # noqa: FBT001 - a test parameter
    """A message counts as delivered, gone, refused (followed by `stale`), or lost if watchers cannot be read."""
    clock, telemetry, sender = StandingClock(), FakeTelemetry(), Sender(delivery)
    store: Any = Store(opened(clock), away=away)
    runtime = Runtime(clock, SeededRandom(), Executor(), telemetry)  # type: ignore[arg-type]  # only `map` is called
    ChangePusher(store, sender, JsonEncoder(), runtime).consume(CHANGED)
    assert +telemetry.counts == {counted: 1}
    assert len(sender.sent) == sent
    assert store.closed == ([store.watching] if delivery is Delivery.GONE else [])


def test_a_connection_is_closed_when_the_token_of_its_caller_has_expired() -> None:
    """The first change after a token's expiry closes the connection, and is not sent."""
    clock, telemetry, sender = StandingClock(), FakeTelemetry(), Sender(Delivery.SENT)
    store: Any = Store(opened(clock, session_ends_at=clock.now() + 10 * SECOND))
    runtime = Runtime(clock, SeededRandom(), Executor(), telemetry)  # type: ignore[arg-type]  # only `map` is called
    pusher = ChangePusher(store, sender, JsonEncoder(), runtime)
    clock.at += 9 * SECOND
    pusher.consume(CHANGED)
    assert (len(sender.sent), sender.closed) == (1, [])
    clock.at += SECOND
    pusher.consume(CHANGED)
    assert (len(sender.sent), sender.closed, store.closed) == (1, ["one"], [store.watching])


@pytest.mark.slow
def test_120_000_changes_a_second_are_240_short_messages_to_one_watcher() -> None:
    """A batch causes one read and one message that asks to read again, however many tasks have changed."""
    clock, telemetry, sender = StandingClock(), FakeTelemetry(), Sender(Delivery.SENT)
    store: Any = Store(opened(clock))
    runtime = Runtime(clock, SeededRandom(), Executor(), telemetry)  # type: ignore[arg-type]  # only `map` is called
    pusher = ChangePusher(store, sender, JsonEncoder(), runtime)
    for batch in range(240):
        ids = (TaskId.of(clock.now(), batch, number) for number in range(500))
        changes = [Change(f"{id_}", 0, None, replace(RUNNING, id=id_)) for id_ in ids]
        pusher.consume(ChangeBatch(tuple(changes)))
    assert telemetry.counts == {"watch_messages_sent": 240}
    assert store.reads == 240
    assert {json.loads(text)["kind"] for text in sender.sent} == {"stale"}
    assert max(len(text) for text in sender.sent) < 100
