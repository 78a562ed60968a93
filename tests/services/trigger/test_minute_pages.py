from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.errors import Unavailable
from duetime.ports.tasks import MinutePage
from duetime.services.trigger.shard_group_reader import MinutePages
from duetime_testing.simulation.virtual_time import VirtualTime

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = 4


class Table:
    """Shards with numbered items; the shards in `broken` cannot be read."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self.sizes = sizes
        self.broken: set[int] = set()
        self.read = 0

    def page(self, shard: int, after: str) -> MinutePage:
        """The next items of a shard; if a page was full, an empty page may follow as the last one."""
        if shard in self.broken:
            raise Unavailable("throttled")
        first = int(after) + 1 if after else 0
        places = range(first, min(first + PAGE, self.sizes[shard]))
        self.read += len(places)
        items: Any = [(f"{place:03}", (shard, place)) for place in places]
        return MinutePage(items, items[-1][0] if len(places) == PAGE else None)


def _pages(table: Table, positions: Mapping[int, str]) -> MinutePages:
    return MinutePages(table.page, positions, VirtualTime(0))


@pytest.mark.parametrize("most", [1, 3, 5, 100])
def test_every_item_of_a_minute_is_passed_on_once(most: int) -> None:
    """With slices of any size, every item is passed on once, and every shard ends."""
    table = Table({0: 9, 1: 0, 2: 4})
    pages = _pages(table, {0: "", 1: "", 2: ""})
    found: list[Any] = []
    ended: set[int] = set()
    while len(ended) < 3:
        piece = pages.next(most)
        found += piece.items
        ended |= {shard for shard, position in piece.positions.items() if position is None}
    assert sorted(found) == [(0, place) for place in range(9)] + [(2, place) for place in range(4)]


def test_reading_resumes_from_the_positions_of_any_slice() -> None:
    """A reader that continues where another reader stopped neither repeats nor skips an item."""
    table = Table({0: 9, 1: 2})
    positions: dict[int, str] = {0: "", 1: ""}
    found: list[Any] = []
    while positions:
        piece = _pages(table, positions).next(3)
        found += piece.items
        moved = {shard: piece.positions.get(shard, before) for shard, before in positions.items()}
        positions = {shard: position for shard, position in moved.items() if position is not None}
    assert found == sorted(set(found), key=found.index)
    assert sorted(found) == [(0, place) for place in range(9)] + [(1, place) for place in range(2)]


def test_at_most_one_page_of_each_shard_is_in_memory() -> None:
    """The next page of a shard is read only after the items of the previous page were passed on."""
    table = Table({0: 100, 1: 100})
    pages, handed_on = _pages(table, {0: "", 1: ""}), 0
    for _ in range(30):
        handed_on += len(pages.next(3).items)
        assert table.read - handed_on <= 2 * PAGE


def test_an_unreadable_shard_does_not_delay_other_shards() -> None:
    """If a shard cannot be read, the other shards are read to their ends, and that shard keeps its position."""
    table = Table({0: 5, 1: 5})
    table.broken.add(1)
    pages = _pages(table, {0: "", 1: "002"})
    found: list[Any] = []
    positions: dict[int, str | None] = {}
    while not pages.failed:
        piece = pages.next(3)
        found += piece.items
        positions |= piece.positions
    assert found == [(0, place) for place in range(5)]
    assert positions == {0: None}
    assert pages.error is not None
