from __future__ import annotations

from duetime.domain.dispatch.cursors import DISPATCH, Cursors, Progress, dispatch_status
from duetime.domain.times import MINUTE, start_of


def test_the_group_that_is_furthest_behind_counts_and_so_does_a_queue_that_lags() -> None:
    """One of three groups has a queue that has come to minute 97 only: what is due from 98 on may be unsent."""
    lagging = Cursors(Cursors.at([103, 100, 40, 0]).readings, {(DISPATCH, "low"): Progress(97)})
    groups = [Cursors.at([103, 100, 40, 0]), Cursors.at([102, 99, 40, 0]), lagging]
    found = dispatch_status(groups, 3 * MINUTE, [])
    assert (found.last_tick_at, found.dispatched_until) == (start_of(94), start_of(98))


def test_without_a_reading_of_every_group_nothing_is_told() -> None:
    """A group that nobody has read yet may have anything to do."""
    found = dispatch_status([Cursors.at([103, 100, 40, 0]), None], 3 * MINUTE, [])
    assert (found.last_tick_at, found.dispatched_until) == (None, None)
