from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.dispatch.cursors import ALL, DISPATCH, Cursors, Progress, first_cursors, horizons
from duetime.domain.operating_parameters import RECOVERY_SCAN_DELAYS
from duetime.domain.times import MINUTE, SECOND, minute_of, start_of
from tests.domain.factories import NOW

SHARDS = range(3)
MINUTES = range(100, 108)
_KEYS = "abcdef"
Moves = list[tuple[int, int, str | None]]

steps = st.lists(st.tuples(st.sampled_from(MINUTES), st.sampled_from(SHARDS), st.sampled_from([*_KEYS, None])))


def _read(moves: Moves, begin: Progress | None = None) -> Progress:
    """The progress of a reader that has read shards of minutes up to the given keys."""
    progress = begin or Progress(99)
    for minute, shard, key in moves:
        progress = progress.begun(minute, SHARDS).moved(minute, {shard: key})
    return progress


def _done(progress: Progress) -> set[tuple[int, int, str]]:
    """The items that this progress covers, if each shard of each minute has one item per key."""
    return {
        (minute, shard, key)
        for minute in MINUTES
        for shard in SHARDS
        for key in _KEYS
        if minute <= progress.upto and key <= progress.open.get(minute, {}).get(shard, "~")
    }


@given(steps, steps)
def test_joined_progress_covers_what_either_reader_covered(mine: Moves, others: Moves) -> None:
    """Joined progress covers exactly what either of the two readers had covered."""
    a, b = _read(mine), _read(others)
    assert _done(a.joined(b)) == _done(a) | _done(b)
    assert a.joined(b) == b.joined(a)
    assert a.joined(b).covers(a)


@given(steps, steps)
def test_no_report_reduces_progress(first: Moves, then: Moves) -> None:
    """Reports in any order never reduce progress."""
    before = _read(first)
    assert _done(before) <= _done(_read(then, before))


@given(steps)
def test_all_items_below_the_floor_are_processed(moves: Moves) -> None:
    """All items below the floor have been processed."""
    progress = _read(moves)
    assert all(progress.is_done(minute) for minute in range(90, progress.floor + 1))


@given(steps, st.integers(98, 110))
def test_limited_progress_discards_minutes_beyond_the_limit(moves: Moves, upto: int) -> None:
    """Minutes that were read too early because of a wrong clock are read again."""
    progress = _read(moves).limited(upto)
    assert progress.upto <= max(upto, 99)
    assert not any(minute > upto for minute in progress.open)


def test_a_lagging_queue_delays_no_other_queue() -> None:
    """If one queue lags, the other queues continue, and the lagging queue resumes from its place until it is level."""
    cursors = Cursors.at((10, 8, 5, 1)).split(DISPATCH, "low").moved(DISPATCH, ALL, Progress(20))
    assert (cursors.progress(DISPATCH, "low").upto, cursors.progress(DISPATCH, "high").upto) == (10, 20)
    assert cursors.floors == (10, 8, 5, 1)
    assert cursors.queues(DISPATCH) == [ALL, "low"]
    caught_up = cursors.moved(DISPATCH, "low", Progress(20))
    assert not caught_up.lags(DISPATCH, "low")
    assert caught_up.floors == (20, 8, 5, 1)


@given(st.integers(10, 14), st.integers(10, 14), st.integers(10, 14), st.integers(10, 14))
def test_joined_cursors_are_joined_for_each_queue(main: int, low: int, other_main: int, other_low: int) -> None:
    """For each queue, the joined cursor covers the progress of both readers."""
    here = Cursors.at((10,)).split(0, "low").moved(0, ALL, Progress(main)).moved(0, "low", Progress(low))
    there = Cursors.at((10,)).split(0, "low").moved(0, ALL, Progress(other_main)).moved(0, "low", Progress(other_low))
    joined = here.joined(there)
    for queue in ("low", "high"):
        expected = here.progress(0, queue).joined(there.progress(0, queue))
        assert joined.progress(0, queue).covers(expected)
    assert joined.progress(0, "high").upto == max(main, other_main)


def test_a_scan_reads_only_minutes_that_ended_before_its_delay() -> None:
    """A scan reads a minute only when the scan's delay has passed since the minute's end."""
    ahead, *back = horizons(NOW, 180 * SECOND)
    assert ahead == minute_of(NOW + 3 * MINUTE)
    for minute, delay in zip(back, RECOVERY_SCAN_DELAYS, strict=True):
        assert start_of(minute + 1) + delay <= NOW < start_of(minute + 2) + delay


def test_cursors_that_begin_at_an_instant_skip_no_later_task() -> None:
    """If cursors begin at an instant, every task that is due after the instant is still read."""
    cursors = first_cursors(NOW)
    delays = (0, *RECOVERY_SCAN_DELAYS)
    assert all(start_of(minute + 1) <= NOW - delay for minute, delay in zip(cursors.floors, delays, strict=True))
