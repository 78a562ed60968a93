"""An in-memory table: items by partition and sort key, indexes, and recent versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from duetime_testing.fakes.attribute_values import Item, Value

    Millis = int

_KEPT = 16
"""Earlier versions of an item kept for lagging reads."""


@dataclass
class Index:
    """A keys-only index over one attribute, sorted by another.

    Attributes:
        entries: the keys of the items in each partition: sort value, then the table's two keys.
        log: additions (`True`) and removals with their times, newest last.
    """

    partition_name: str
    sort_name: str
    entries: dict[str, set[tuple[str, str, str]]] = field(default_factory=dict)
    log: list[tuple[Millis, bool, str, tuple[str, str, str]]] = field(default_factory=list)

    def change(self, now: Millis, key: tuple[str, str], old: Item | None, new: Item | None) -> None:
        """Update the index after a write of the table."""
        before, after = self._place(old), self._place(new)
        if before == after:
            return
        if before is not None:
            self.entries[before[0]].discard((before[1], *key))
            self.log.append((now, False, before[0], (before[1], *key)))
        if after is not None:
            self.entries.setdefault(after[0], set()).add((after[1], *key))
            self.log.append((now, True, after[0], (after[1], *key)))
        if len(self.log) > 4 * _KEPT:
            del self.log[: 2 * _KEPT]

    def _place(self, item: Item | None) -> tuple[str, str] | None:
        if item is None or self.partition_name not in item or self.sort_name not in item:
            return None
        return item[self.partition_name]["S"], item[self.sort_name]["S"]

    def at(self, partition: str, since: Millis | None) -> list[tuple[str, str, str]]:
        """The entries of a partition in order, as of `since` if given."""
        entries = self.entries.get(partition, set())
        if since is not None:
            entries = set(entries)
            for at, added, where, entry in reversed(self.log):
                if at <= since:
                    break
                if where == partition:
                    (entries.discard if added else entries.add)(entry)
        return sorted(entries)


@dataclass
class Table:
    """A table with two string keys.

    Attributes:
        watch: called after every write with the old and the new item.
    """

    partition_name: str
    sort_name: str
    indexes: dict[str, Index] = field(default_factory=dict)
    partitions: dict[str, dict[str, Item]] = field(default_factory=dict)
    earlier: dict[str, dict[str, list[tuple[Millis, Item | None]]]] = field(default_factory=dict)
    watch: Callable[[Item | None, Item | None], None] = lambda _old, _new: None

    def get(self, key: tuple[str, str], since: Millis | None = None) -> Item | None:
        """An item, as of `since` if given."""
        if since is not None:
            for at, old in self.earlier.get(key[0], {}).get(key[1], ()):
                if at > since:
                    return old
        return self.partitions.get(key[0], {}).get(key[1])

    def write(self, now: Millis, key: tuple[str, str], new: Item | None) -> None:
        """Replace an item, or remove it."""
        partition = self.partitions.setdefault(key[0], {})
        old = partition.get(key[1])
        self.watch(old, new)
        if new is None:
            partition.pop(key[1], None)
        else:
            partition[key[1]] = new
        versions = self.earlier.setdefault(key[0], {}).setdefault(key[1], [])
        versions.append((now, old))
        if len(versions) > _KEPT:
            del versions[: _KEPT // 2]
        for index in self.indexes.values():
            index.change(now, key, old, new)

    def in_order(self, partition: str, since: Millis | None) -> Iterator[Item]:
        """The items of a partition in the order of their sort keys."""
        sorts: Iterable[str] = self.partitions.get(partition, {})
        if since is not None:
            sorts = {*sorts, *self.earlier.get(partition, {})}
        for sort in sorted(sorts):
            item = self.get((partition, sort), since)
            if item is not None:
                yield item

    def key_item(self, key: tuple[str, str]) -> dict[str, Value]:
        """A key as an item."""
        return {self.partition_name: {"S": key[0]}, self.sort_name: {"S": key[1]}}

    def key_of(self, item: Item) -> tuple[str, str]:
        """The key of an item or of a page's last key."""
        return item[self.partition_name]["S"], item[self.sort_name]["S"]

    def every(self) -> Iterator[Item]:
        """Every item."""
        for partition in self.partitions.values():
            yield from partition.values()
