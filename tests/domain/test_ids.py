from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duetime.domain.ids import MAX_SHARDS, InvalidTaskId, TaskId
from duetime.domain.operating_parameters import OWNER_SPREAD
from duetime.domain.times import LAST_INSTANT

homes = st.integers(0, LAST_INSTANT)
shards = st.integers(0, MAX_SHARDS - 1)
tails = st.integers(0, (1 << 64) - 1)
years = st.integers(0, 4_102_444_800_000)


@given(homes, shards, tails)
@example(0, 0, 0)
@example(LAST_INSTANT, MAX_SHARDS - 1, (1 << 64) - 1)
def test_the_home_millisecond_and_shard_are_decoded_from_an_id(home: int, shard: int, tail: int) -> None:
    """The home millisecond and the shard of an id can be read from the id's text alone."""
    parsed = TaskId.parse(TaskId.of(home, shard, tail).text)
    assert (parsed.home, parsed.shard) == (home, shard)


@given(homes, homes, shards, shards)
def test_ids_sort_by_home_time(early: int, late: int, one: int, other: int) -> None:
    """Whatever their shards are, an id with an earlier home time sorts before an id with a later home time."""
    if early < late:
        assert TaskId.of(early, one, 0) < TaskId.of(late, other, 0)


@given(years, shards)
def test_a_partition_names_the_minute_in_utc_and_the_shard(home: int, shard: int) -> None:
    """Two ids share a partition if and only if they have the same minute and shard."""
    minute = home // 60_000
    here = TaskId.of(home, shard, 1).partition
    assert TaskId.of(minute * 60_000, shard, 2).partition == here
    assert TaskId.of((minute + 1) * 60_000, shard, 1).partition != here
    assert TaskId.of(home, (shard + 1) % MAX_SHARDS, 1).partition != here


def test_a_partition_has_the_documented_form() -> None:
    """The partition of a record from 02:33 in shard 7 has the documented form."""
    assert TaskId.of(1_795_228_387_250, 7, 0).partition == "2026-11-21T02:33#0007"


@pytest.mark.parametrize(
    "text",
    [
        TaskId.of(LAST_INSTANT + 1, 0, 0).text,
        "7" + "Z" * 25,
        "",
        "0",
        "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "01JD0000000000000000000000\n",
        "01jd0000000000000000000000",
        "0" * 25 + "U",
    ],
)
def test_an_invalid_id_is_rejected(text: str) -> None:
    """Ids that are too late, too short or too large are refused, and so are lower case and other characters."""
    with pytest.raises(InvalidTaskId):
        TaskId.parse(text)


@given(st.text() | st.from_regex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True))
def test_parsing_any_text_succeeds_or_raises_only_the_parsers_error(text: str) -> None:
    """Any string is either refused or is an id with a partition."""
    with contextlib.suppress(InvalidTaskId):
        assert TaskId.parse(text).partition


def test_an_owners_tasks_are_spread_over_all_list_partitions() -> None:
    """With sixteen shards, all partitions of the owner list are used."""
    partitions = {TaskId.of(0, shard, 0).owner_partition("me") for shard in range(16)}
    assert len(partitions) == OWNER_SPREAD


@given(homes, homes, shards, tails)
def test_the_bytes_of_an_id_can_be_moved_to_another_time(home: int, other: int, shard: int, tail: int) -> None:
    """Moving an id's bytes to a time gives the bytes of an id made for that time, as ordered lists require."""
    task_id = TaskId.of(home, shard, tail)
    assert TaskId.home_of_data(task_id.data) == home
    assert TaskId.data_at_time(task_id.data, other) == task_id.at_time(other).data
