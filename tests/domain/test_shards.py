from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.limits import PATROL_DELAYS
from duetime.domain.shards import DISPATCH, Cursors, first_cursors, groups_of, horizons, shards_in
from duetime.domain.times import MINUTE, SECOND, minute_of, start_of
from tests.domain.factories import NOW


@given(st.integers(1, 65_536))
def test_every_shard_is_in_exactly_one_group(shards: int) -> None:
    """No shard is forgotten and none is read twice."""
    members = [shard for group in groups_of(shards) for shard in shards_in(group, shards)]
    assert members == list(range(shards))


@given(st.lists(st.integers(0, 100)))
def test_a_cursor_never_moves_back(minutes: list[int]) -> None:
    """Whatever is reported done, in whatever order, the cursor stands at the furthest."""
    cursors = Cursors((0, 0, 0, 0))
    for minute in minutes:
        cursors = cursors.moved(DISPATCH, minute)
    assert cursors.minutes == (max([0, *minutes]), 0, 0, 0)


def test_the_first_reading_looks_ahead_and_patrols_look_back() -> None:
    """A patrol reads only minutes that ended as long ago as its delay."""
    ahead, *back = horizons(NOW, 180 * SECOND)
    assert ahead == minute_of(NOW + 3 * MINUTE)
    for minute, delay in zip(back, PATROL_DELAYS, strict=True):
        assert start_of(minute + 1) + delay <= NOW < start_of(minute + 2) + delay


def test_a_new_groups_cursors_reach_back_before_its_first_tick() -> None:
    """Tasks written to new shards up to ten minutes before the trigger knew them are met, by each reading."""
    cursors = first_cursors(NOW)
    delays = (0, *PATROL_DELAYS)
    assert all(
        start_of(minute) <= NOW - 10 * MINUTE - delay for minute, delay in zip(cursors.minutes, delays, strict=True)
    )
