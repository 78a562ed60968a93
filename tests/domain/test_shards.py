from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.dispatch.cursors import GROUP_SIZE, ShardHistory, groups_of, shards_in
from duetime.domain.operating_parameters import SHARDS_SETTLE
from duetime.domain.times import DAY
from tests.domain.factories import NOW


@given(st.integers(1, 65_536))
def test_every_shard_is_in_exactly_one_group(shards: int) -> None:
    """Each shard is in exactly one group."""
    found = [shard for group in groups_of(shards) for shard in shards_in(group, shards)]
    assert found == list(range(shards))


steps = st.lists(st.tuples(st.integers(1, 200), st.integers(NOW, NOW + DAY)), min_size=1)


@given(steps)
def test_the_trigger_reads_every_announced_shard(announced: list[tuple[int, int]]) -> None:
    """The number of shards never shrinks, and each group has the time at which it was first announced."""
    history = ShardHistory()
    for shards, at in announced:
        history = history.grown(shards, at)
    assert history.number == max(shards for shards, _ in announced)
    for group in groups_of(history.number):
        assert history.since(group) == next(at for shards, at in announced if shards > group * GROUP_SIZE)


@given(st.integers(NOW - DAY, NOW + 2 * DAY))
def test_a_new_number_of_shards_applies_only_after_it_has_settled(instant: int) -> None:
    """Records are spread over the earlier number of shards until a new number has settled."""
    history = ShardHistory().grown(4, NOW)
    grown = history.grown(16, NOW + DAY)
    assert history.at(instant) == 4
    assert grown.at(instant) == (16 if instant >= NOW + DAY + SHARDS_SETTLE else 4)
