from __future__ import annotations

from dataclasses import replace

from duetime.domain.dispatch.cursors import DISPATCH, Cursors, Progress, ShardGroup, dispatch_status
from duetime.domain.times import MINUTE, start_of


def test_the_slowest_group_and_queue_determine_the_dispatch_status() -> None:
    """If one group's queue has reached only minute 97, tasks that are due from minute 98 on may be unsent."""
    lagging = Cursors(Cursors.at([103, 100, 40, 0]).readings, {(DISPATCH, "low"): Progress(97)})
    groups = [Cursors.at([103, 100, 40, 0]), Cursors.at([102, 99, 40, 0]), lagging]
    found = dispatch_status(groups, 40, 3 * MINUTE, [])
    assert (found.last_tick_at, found.dispatched_until) == (start_of(94), start_of(98))


def test_the_dispatch_times_are_unknown_if_a_group_was_never_read() -> None:
    """If a group has never been read, both times are unknown, because the group may have tasks to send."""
    found = dispatch_status([Cursors.at([103, 100, 40, 0]), None], 32, 3 * MINUTE, [])
    assert (found.last_tick_at, found.dispatched_until) == (None, None)


def test_each_group_has_its_shards_its_reader_and_its_progress() -> None:
    """The last group can have fewer shards, and a group that has never been read has no reader."""
    read = replace(Cursors.at([103, 100, 40, 0], epoch=7), holder="tick-1")
    found = dispatch_status([read, None], 20, 3 * MINUTE, [])
    assert found.groups == [
        ShardGroup(0, 0, 15, "tick-1", 7, start_of(104)),
        ShardGroup(1, 16, 19, None, 0, None),
    ]
