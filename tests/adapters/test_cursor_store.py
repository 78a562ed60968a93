from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.shards import Cursors
from duetime.domain.times import MINUTE
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import CursorStore

FIRST = Cursors((100, 98, 40, 7))
UNTIL = HOME + MINUTE


def test_a_group_that_nobody_has_read_begins_at_the_first_cursors(cursor_store: CursorStore) -> None:
    """Taking a new group gives the cursors that the taker proposes, at the first epoch."""
    assert cursor_store.take(0, "a", HOME, UNTIL, FIRST) == Cursors(FIRST.minutes, epoch=1)


def test_a_held_group_is_nobody_elses(cursor_store: CursorStore) -> None:
    """Until the hold ends nobody else gets the group; from that instant on anybody does."""
    cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert cursor_store.take(0, "b", UNTIL - 1, UNTIL + MINUTE, FIRST) is None
    assert cursor_store.take(0, "b", UNTIL, UNTIL + MINUTE, FIRST) == Cursors(FIRST.minutes, epoch=2)


def test_a_holder_may_take_its_group_again(cursor_store: CursorStore) -> None:
    """A resent request does not lock its own sender out; its answer holds the newest epoch."""
    cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    again = cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert again is not None
    assert cursor_store.advance(0, again.moved(0, 101), UNTIL)


def test_cursors_advance_and_stay(cursor_store: CursorStore) -> None:
    """Whoever takes the group next begins where it was advanced to, not at the cursors it proposes."""
    taken = cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert taken is not None
    assert cursor_store.advance(0, taken.moved(0, 105).moved(2, 44), UNTIL)
    assert cursor_store.take(0, "b", UNTIL, UNTIL + MINUTE, FIRST) == Cursors((105, 98, 44, 7), epoch=2)


def test_advancing_keeps_the_hold_or_lets_it_go(cursor_store: CursorStore) -> None:
    """An advance holds the group until the instant it names; one in the past frees it."""
    taken = cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert taken is not None
    cursor_store.advance(0, taken, UNTIL + MINUTE)
    assert cursor_store.take(0, "b", UNTIL, UNTIL + MINUTE, FIRST) is None
    cursor_store.advance(0, taken, HOME - 1)
    assert cursor_store.take(0, "b", HOME, UNTIL, FIRST) is not None


def test_only_the_newest_epoch_moves_cursors(cursor_store: CursorStore) -> None:
    """A reader whose hold was taken over moves nothing any more."""
    slow = cursor_store.take(0, "slow", HOME, UNTIL, FIRST)
    assert slow is not None
    cursor_store.take(0, "next", UNTIL, UNTIL + MINUTE, FIRST)
    assert not cursor_store.advance(0, slow.moved(0, 500), UNTIL + 2 * MINUTE)
    after = UNTIL + 3 * MINUTE
    assert cursor_store.take(0, "later", after, after + MINUTE, FIRST) == Cursors(FIRST.minutes, epoch=3)


def test_an_unknown_group_cannot_be_advanced(cursor_store: CursorStore) -> None:
    """Advancing a group that was never taken moves nothing and creates nothing."""
    assert not cursor_store.advance(5, FIRST, UNTIL)
    assert cursor_store.take(5, "a", HOME, UNTIL, FIRST) == Cursors(FIRST.minutes, epoch=1)
