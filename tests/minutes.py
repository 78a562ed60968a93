"""Reads all items in one shard of a minute, for tests that look directly at a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.ports.tasks import MinuteItem, TaskStore


def items_of(store: TaskStore, minute: int, shard: int, *, consistent: bool = True) -> list[MinuteItem]:
    """Return the items of all pages, in order."""
    page = store.read_page(minute, shard, "", consistent=consistent)
    items = [item for _key, item in page.items]
    while page.last is not None:
        page = store.read_page(minute, shard, page.last, consistent=consistent)
        items += [item for _key, item in page.items]
    return items
