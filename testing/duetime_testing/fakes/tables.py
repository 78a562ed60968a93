"""An in-memory table, which stores items by partition and sort key, indexes, and recent versions of items."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from duetime_testing.fakes.attribute_values import Item, Value

    Millis = int

K = TypeVar("K", str, tuple[str, ...])
_KEPT = 16
"""Number of earlier versions of an item that are kept for lagging reads."""


class SortedKeys(Generic[K]):
    """The ordered keys of each partition, sorted when the partition is first read and kept sorted after that.

    If the collection that holds a partition's keys is replaced by another collection, the keys are sorted again.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[Collection[K], list[K]]] = {}

    def of(self, partition: str, keys: Collection[K]) -> list[K]:
        """The keys of a partition in order; the returned list changes with the partition."""
        source, found = self._of.get(partition, (None, []))
        if source is not keys:
            found = sorted(keys)
            self._of[partition] = keys, found
        return found

    def add(self, partition: str, keys: Collection[K], key: K) -> None:
        """Add a key to the sorted keys of a partition."""
        source, found = self._of.get(partition, (None, []))
        if source is keys:
            insort(found, key)

    def discard(self, partition: str, keys: Collection[K], key: K) -> None:
        """Remove a key from the sorted keys of a partition."""
        source, found = self._of.get(partition, (None, []))
        if source is keys:
            del found[bisect_left(found, key)]


@dataclass
class Index:
    """A keys-only index that is partitioned by one attribute and sorted by another attribute.

    Attributes:
        entries: the entries of each partition, as tuples of sort value and the table's two keys.
        log: additions (`True`) and removals (`False`) with their times, newest last.
    """

    partition_name: str
    sort_name: str
    entries: dict[str, set[tuple[str, str, str]]] = field(default_factory=dict)
    log: list[tuple[Millis, bool, str, tuple[str, str, str]]] = field(default_factory=list)
    _sorted: SortedKeys[tuple[str, ...]] = field(default_factory=SortedKeys)

    def change(self, now: Millis, key: tuple[str, str], old: Item | None, new: Item | None) -> None:
        """Update the index after a write to the table."""
        before, after = self._place(old), self._place(new)
        if before == after:
            return
        if before is not None:
            entry, entries = (before[1], *key), self.entries[before[0]]
            entries.discard(entry)
            self._sorted.discard(before[0], entries, entry)
            self.log.append((now, False, before[0], entry))
        if after is not None:
            entry, entries = (after[1], *key), self.entries.setdefault(after[0], set())
            entries.add(entry)
            self._sorted.add(after[0], entries, entry)
            self.log.append((now, True, after[0], entry))
        if len(self.log) > 4 * _KEPT:
            del self.log[: 2 * _KEPT]

    def _place(self, item: Item | None) -> tuple[str, str] | None:
        if item is None or self.partition_name not in item or self.sort_name not in item:
            return None
        return item[self.partition_name]["S"], item[self.sort_name]["S"]

    def in_order(self, partition: str, since: Millis | None) -> list[tuple[str, ...]]:
        """The ordered entries of a partition, as they were at the time `since` if given."""
        entries = self.entries.get(partition, set())
        if since is None:
            return self._sorted.of(partition, entries) if entries else []
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
        watch: called for every write, with the old and the new item.
    """

    partition_name: str
    sort_name: str
    indexes: dict[str, Index] = field(default_factory=dict)
    partitions: dict[str, dict[str, Item]] = field(default_factory=dict)
    earlier: dict[str, dict[str, list[tuple[Millis, Item | None]]]] = field(default_factory=dict)
    watch: Callable[[Item | None, Item | None], None] = lambda _old, _new: None
    _sorted: SortedKeys[str] = field(default_factory=SortedKeys)

    def get(self, key: tuple[str, str], since: Millis | None = None) -> Item | None:
        """The item with a key, as it was at the time `since` if given."""
        if since is not None:
            for at, old in self.earlier.get(key[0], {}).get(key[1], ()):
                if at > since:
                    return old
        return self.partitions.get(key[0], {}).get(key[1])

    def write(self, now: Millis, key: tuple[str, str], new: Item | None) -> None:
        """Replace an item, or delete it if the new item is `None`."""
        partition = self.partitions.setdefault(key[0], {})
        old = partition.get(key[1])
        self.watch(old, new)
        if new is not None:
            partition[key[1]] = new
            if old is None:
                self._sorted.add(key[0], partition, key[1])
        elif partition.pop(key[1], None) is not None:
            self._sorted.discard(key[0], partition, key[1])
        versions = self.earlier.setdefault(key[0], {}).setdefault(key[1], [])
        versions.append((now, old))
        if len(versions) > _KEPT:
            del versions[: _KEPT // 2]
        for index in self.indexes.values():
            index.change(now, key, old, new)

    def in_order(self, partition: str, since: Millis | None) -> list[str]:
        """The ordered sort keys of a partition.

        With `since`, keys of items that were removed after the time `since` are included.
        """
        items = self.partitions.get(partition, {})
        if since is None:
            return self._sorted.of(partition, items) if items else []
        return sorted({*items, *self.earlier.get(partition, {})})

    def key_item(self, key: tuple[str, str]) -> dict[str, Value]:
        """Convert a key to an item that has only the key attributes."""
        return {self.partition_name: {"S": key[0]}, self.sort_name: {"S": key[1]}}

    def key_of(self, item: Item) -> tuple[str, str]:
        """The key of an item or of a page's `LastEvaluatedKey`."""
        return item[self.partition_name]["S"], item[self.sort_name]["S"]

    def every(self) -> Iterator[Item]:
        """All items of the table."""
        for partition in self.partitions.values():
            yield from partition.values()
