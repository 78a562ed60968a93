from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.dispatch.cursors import Growth, ShardHistory
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import ShardStore


def test_a_new_table_has_no_history_of_shards(shard_store: ShardStore) -> None:
    """A new table has no history of shard numbers."""
    assert shard_store.read() == ShardHistory()


def test_each_larger_number_of_shards_is_stored_with_its_time(shard_store: ShardStore) -> None:
    """Each larger number is stored with its time; a smaller or repeated number changes nothing."""
    for shards, at in ((4, HOME), (4, HOME + 1), (16, HOME + 2), (8, HOME + 3), (16, HOME + 4)):
        shard_store.announce(shards, at)
    assert shard_store.read() == ShardHistory((Growth(4, HOME), Growth(16, HOME + 2)))
    assert shard_store.announce(2, HOME + 5) == shard_store.read()
