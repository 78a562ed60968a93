from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore
from duetime.domain.dispatch.cursors import ALL, Cursors, Progress
from duetime.domain.times import MINUTE
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import CursorStore

FIRST = Cursors.at((100, 98, 40, 7))
UNTIL = HOME + MINUTE
FAR = UNTIL + MINUTE


def _taken(holder: str, epoch: int, minutes: tuple[int, ...] = (100, 98, 40, 7)) -> Cursors:
    return replace(Cursors.at(minutes, epoch), holder=holder)


def _moved(cursors: Cursors, minute: int) -> Cursors:
    return cursors.moved(0, ALL, Progress(minute))


def test_a_new_group_starts_at_the_proposed_cursors(cursor_store: CursorStore) -> None:
    """A new group starts with the proposed cursors at the first epoch."""
    assert cursor_store.take(0, "a", HOME, UNTIL, FIRST) == _taken("a", 1)


def test_a_held_group_cannot_be_taken_by_another_reader(cursor_store: CursorStore) -> None:
    """Another reader cannot take a group until the current hold ends."""
    cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert cursor_store.take(0, "b", UNTIL - 1, UNTIL + MINUTE, FIRST) is None
    assert cursor_store.take(0, "b", UNTIL, UNTIL + MINUTE, FIRST) == _taken("b", 2)


def test_a_holder_can_take_its_group_again(cursor_store: CursorStore) -> None:
    """A holder can take its group again, and the response has the newest epoch."""
    cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    again = cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert again is not None
    assert cursor_store.advance(0, _moved(again, 101), UNTIL)


def test_advanced_cursors_are_stored(cursor_store: CursorStore) -> None:
    """The next reader starts at the stored cursors, whatever cursors the reader proposes."""
    taken = cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert taken is not None
    assert cursor_store.advance(0, _moved(taken, 105).moved(2, ALL, Progress(44)), UNTIL)
    assert cursor_store.take(0, "b", UNTIL, UNTIL + MINUTE, FIRST) == _taken("b", 2, (105, 98, 44, 7))


def test_advancing_cursors_extends_or_releases_the_hold(cursor_store: CursorStore) -> None:
    """Advancing the cursors holds the group until the given time; a time in the past releases the group."""
    taken = cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert taken is not None
    cursor_store.advance(0, taken, UNTIL + MINUTE)
    assert cursor_store.take(0, "b", UNTIL, UNTIL + MINUTE, FIRST) is None
    cursor_store.advance(0, taken, HOME - 1)
    assert cursor_store.take(0, "b", HOME, UNTIL, FIRST) is not None


def test_only_the_newest_epoch_moves_cursors(cursor_store: CursorStore) -> None:
    """A reader whose hold was taken over cannot move the cursors."""
    slow = cursor_store.take(0, "slow", HOME, UNTIL, FIRST)
    assert slow is not None
    cursor_store.take(0, "next", UNTIL, UNTIL + MINUTE, FIRST)
    assert not cursor_store.advance(0, _moved(slow, 500), UNTIL + 2 * MINUTE)
    after = UNTIL + 3 * MINUTE
    assert cursor_store.take(0, "later", after, after + MINUTE, FIRST) == _taken("later", 3)


def test_an_unknown_group_cannot_be_advanced(cursor_store: CursorStore) -> None:
    """Advancing an unknown group changes nothing and creates nothing."""
    assert not cursor_store.advance(5, FIRST, UNTIL)
    assert cursor_store.take(5, "a", HOME, UNTIL, FIRST) == _taken("a", 1)


def test_positions_inside_minutes_are_kept(cursor_store: CursorStore) -> None:
    """Open minutes and lagging queues are stored and read back; when all are done, they are no longer stored."""
    taken = cursor_store.take(0, "a", HOME, UNTIL, FIRST)
    assert taken is not None
    split = taken.split(0, "low").split(2, "pulled:resize")
    opened = Progress(100).begun(103, range(2)).moved(101, {0: None, 1: None}).moved(102, {0: "K", 1: "L#w#3"})
    moved = split.moved(0, ALL, opened).moved(2, ALL, Progress(50))
    assert cursor_store.advance(0, moved, 0)
    again = cursor_store.take(0, "b", UNTIL, UNTIL + MINUTE, FIRST)
    assert again == replace(moved, epoch=2, holder="b")
    assert again.floors == (100, 98, 40, 7)
    assert cursor_store.advance(0, _taken("b", 2), 0)
    assert cursor_store.take(0, "c", UNTIL, UNTIL + MINUTE, FIRST) == _taken("c", 3)


def test_the_progress_of_an_overtaken_reader_is_merged(cursor_store: CursorStore) -> None:
    """An overtaken reader's progress is merged, and the current holder gets that progress at the holder's next save."""
    slow = cursor_store.take(0, "slow", HOME, UNTIL, FIRST)
    quick = cursor_store.take(0, "quick", UNTIL, FAR, FIRST)
    assert slow is not None
    assert quick is not None
    assert cursor_store.advance(0, quick.moved(1, ALL, Progress(99)), FAR)
    assert cursor_store.join(0, _moved(slow, 102)) is None
    mine = quick.moved(1, ALL, Progress(99)).moved(2, ALL, Progress(41))
    assert not cursor_store.advance(0, mine, FAR)
    assert cursor_store.join(0, mine) == _taken("quick", 4, (102, 99, 41, 7))
    assert cursor_store.take(0, "other", UNTIL + 1, UNTIL + MINUTE, FIRST) is None


def test_a_hold_far_in_the_future_is_ignored(cursor_store: CursorStore) -> None:
    """A hold that is far in the future, because its process's clock was ahead, does not block the group."""
    cursor_store.take(0, "ahead", HOME + 30 * MINUTE, HOME + 31 * MINUTE, FIRST)
    assert cursor_store.take(0, "b", HOME, HOME + MINUTE, FIRST) == _taken("b", 2)


def test_each_region_has_separate_cursors() -> None:
    """A write replicated from another Region does not replace a Region's cursors, but a takeover replaces them."""
    client = FakeDynamoDB(lambda: HOME)
    table = new_table(client)  # type: ignore[arg-type]  # stands in for a client
    first, second = (DynamoCursorStore(client, table, FakeTelemetry(), region) for region in ("", "eu-central-1"))  # type: ignore[arg-type]  # same
    assert first.take(0, "a", HOME, UNTIL, FIRST) == _taken("a", 1)
    assert second.read(0) is None
    second.replace(0, FIRST)
    assert second.take(0, "b", HOME, UNTIL, Cursors.at((1, 1, 1, 1))) == _taken("b", 2)
    second.replace(0, FIRST)
    assert not second.advance(0, _moved(_taken("b", 2), 105), UNTIL)
    assert first.read(0) == _taken("a", 1)
