from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.shards import groups_of, shards_in


@given(st.integers(1, 65_536))
def test_every_shard_is_in_exactly_one_group(shards: int) -> None:
    """No shard is forgotten and none is read twice."""
    members = [shard for group in groups_of(shards) for shard in shards_in(group, shards)]
    assert members == list(range(shards))
