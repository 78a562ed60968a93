"""The items of one minute, shard by shard and page by page: a minute may hold a million of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.ports.runtime import Executor
    from duetime.ports.tasks import MinuteItem, MinutePage


@dataclass(frozen=True, slots=True)
class Slice:
    """Some items of a minute.

    Attributes:
        items: from all shards.
        positions: the sort key of the last item of each shard that is among them; `None` if the shard has no more.
    """

    items: list[MinuteItem]
    positions: dict[int, str | None]


@dataclass(slots=True)
class _Shard:
    """What was read of one shard and not handed on yet.

    Attributes:
        after: the sort key after which the next page begins.
        more: whether there may be a next page.
        failed: whether it could not be read.
    """

    after: str
    items: deque[tuple[str, MinuteItem]] = field(default_factory=deque)
    more: bool = True
    failed: bool = False


class MinutePages:
    """Hands on a minute's items in slices, from all its shards alike, and holds no more than a page of each.

    Args:
        read: reads the page of a shard after a sort key.
        positions: where to begin in each unfinished shard.
        executor: reads shards at once.
    """

    def __init__(
        self, read: Callable[[int, str], MinutePage], positions: Mapping[int, str], executor: Executor
    ) -> None:
        self._read = read
        self._executor = executor
        self._shards = {shard: _Shard(after) for shard, after in positions.items()}
        self.error: Unavailable | None = None

    @property
    def failed(self) -> bool:
        """Whether some shards could not be read, and nothing of the others is left."""
        return all(shard.failed for shard in self._shards.values())

    def next(self, most: int) -> Slice:
        """The next items, as many as asked for at the most."""
        self._fill()
        live = {number: shard for number, shard in self._shards.items() if not shard.failed}
        share = max(1, most // max(1, len(live)))
        items: list[MinuteItem] = []
        positions: dict[int, str | None] = {}
        for number, shard in live.items():
            taken = [shard.items.popleft() for _ in range(min(share, len(shard.items)))]
            items += [item for _key, item in taken]
            if not shard.items and not shard.more:
                positions[number] = None
                del self._shards[number]
            elif taken or not shard.items:
                positions[number] = taken[-1][0] if taken else shard.after
        return Slice(items, positions)

    def _fill(self) -> None:
        """Read a page of each shard of which nothing is left."""
        empty = [
            number for number, shard in self._shards.items() if shard.more and not shard.items and not shard.failed
        ]
        for number, page in zip(empty, self._executor.map(self._page, empty), strict=True):
            shard = self._shards[number]
            if page is None:
                shard.failed = True
                continue
            shard.items.extend(page.items)
            shard.more = page.last is not None
            shard.after = page.last or shard.after

    def _page(self, number: int) -> MinutePage | None:
        try:
            return self._read(number, self._shards[number].after)
        except Unavailable as error:
            self.error = error
            return None
