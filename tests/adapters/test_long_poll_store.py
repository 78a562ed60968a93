from __future__ import annotations

from typing import TYPE_CHECKING

from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import LongPollStore

LATER = HOME + 30_000


def test_a_long_poll_slot_has_one_holder_at_a_time(long_poll_store: LongPollStore) -> None:
    """A slot becomes free when its holder returns it or its time is over, independently of other slots."""
    take = long_poll_store.take
    assert take(1, "a", HOME, LATER)
    assert not take(1, "b", HOME + 1, LATER)
    assert take(2, "b", HOME + 1, LATER)
    long_poll_store.give_back(1, "a")
    assert take(1, "c", HOME + 2, LATER)
    assert not take(1, "d", LATER, LATER + 1)
    assert take(1, "d", LATER + 1, LATER + 2)


def test_taking_and_returning_a_slot_can_be_repeated(long_poll_store: LongPollStore) -> None:
    """Taking and returning can be repeated, but a slot that another holder has taken since is not returned."""
    take = long_poll_store.take
    assert take(1, "a", HOME, LATER)
    assert take(1, "a", HOME, LATER)
    for _ in range(2):
        long_poll_store.give_back(1, "a")
    assert take(1, "b", HOME, LATER)
    long_poll_store.give_back(1, "a")
    assert not take(1, "c", HOME, LATER)
