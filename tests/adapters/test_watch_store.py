from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.live_updates import Connection, Subscription, Ticket, Topic, TopicKind
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import State
from tests.adapters.examples import HOME
from tests.domain.factories import ID

if TYPE_CHECKING:
    from duetime.ports.stores import WatchStore

OWNER = "123456789012:role/a#b"
CONNECTION = Connection("L0SM9cOFvHcCIhw=", OWNER, HOME + 1)
WANTED = Subscription(CONNECTION, "1", Topic(TopicKind.TASK, ID.text))
EVERYTHING = TaskFilter(
    states=(State.FAILED, State.RUNNING),
    type="report",
    name="n",
    tags={"a": "é"},
    name_contains="N",
    error_type="Boom",
    error_contains="oo",
    schedule="nightly",
    parent=ID,
    due=Range(1, None),
    created=Range(None, 2),
    finished=Range(3, 4),
)


def test_a_ticket_opens_one_connection(watch_store: WatchStore) -> None:
    """The connection that used a ticket can use the ticket again until its expiry; other connections are refused."""
    ticket = Ticket("digest", OWNER, HOME + 30, session_ends_at=HOME + 40)
    watch_store.put_ticket(ticket)
    assert watch_store.redeem("other", "c1", HOME) is None
    assert watch_store.redeem("digest", "c1", HOME + 29) == ticket
    assert watch_store.redeem("digest", "c1", HOME + 29) == ticket
    assert watch_store.redeem("digest", "c2", HOME + 29) is None
    watch_store.put_ticket(Ticket("late", OWNER, HOME + 30))
    assert watch_store.redeem("late", "c3", HOME + 30) is None


def test_a_connection_is_found_until_it_is_closed(watch_store: WatchStore) -> None:
    """Closing a connection removes only its own subscriptions."""
    other = replace(WANTED, connection=replace(CONNECTION, id="L0SM9cOFvHcCIhw=2"))
    watch_store.open(CONNECTION)
    assert watch_store.connection(CONNECTION.id) == CONNECTION
    assert watch_store.subscribe(WANTED)
    assert watch_store.subscribe(other)
    for _ in range(2):
        watch_store.close(CONNECTION)
    assert watch_store.connection(CONNECTION.id) is None
    assert watch_store.subscriptions(OWNER) == [other]


def test_a_slot_holds_one_subscription(watch_store: WatchStore) -> None:
    """A subscription replaces one with the same name; a slot in use refuses subscriptions with other names."""
    changed = replace(WANTED, topic=Topic(TopicKind.MINE), task_filter=EVERYTHING)
    assert watch_store.subscribe(WANTED)
    assert watch_store.subscribe(changed)
    assert watch_store.subscribe(changed)
    assert not watch_store.subscribe(replace(WANTED, ref="2"))
    watch_store.unsubscribe(replace(WANTED, ref="2"))
    assert watch_store.subscriptions(OWNER) == [changed]
    watch_store.unsubscribe(WANTED)
    watch_store.unsubscribe(WANTED)
    assert watch_store.subscriptions(OWNER) == []


def test_owners_have_separate_subscriptions(watch_store: WatchStore) -> None:
    """Different owners never share subscriptions, whatever characters their names contain."""
    assert watch_store.subscribe(WANTED)
    for owner in ("123456789012:role/a", "123456789012:role/a#", "me"):
        assert watch_store.subscriptions(owner) == []
