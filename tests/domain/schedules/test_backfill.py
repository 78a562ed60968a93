from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.backfill import requested, steps
from duetime.domain.schedules.calendars import Calendar
from duetime.domain.schedules.schedule import derived
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.domain.schedules.times import at, changed, scheduled

NOW = at("2026-11-21T12:00")
WEEKENDS = Calendar("weekends", weekdays=frozenset({5, 6}))
SIZE = 7
"""The approximate number of occurrences in these backfills."""
HOURLY = changed(scheduled("0 * * * *"), calendars=(WEEKENDS,), remaining_runs=0, jitter_seconds=600)


def test_the_due_times_of_a_backfill_follow_its_pace() -> None:
    """At six per minute, occurrences are due ten seconds apart, and excluded occurrences do not run."""
    backfill = requested(at("2026-11-20T20:00"), at("2026-11-21T02:00"), 6, NOW)
    found = [occurrence for occurrence, _ in steps(HOURLY, backfill, SIZE)]
    assert backfill.size(HOURLY) == len(found) == 7
    assert [each.runs for each in found] == [True] * 4 + [False] * 3
    assert [each.due_at - NOW for each in found if each.runs] == [0, 10 * SECOND, 20 * SECOND, 30 * SECOND]
    assert found[0].key == "2026-11-20T20:00:00+00:00"


def test_excluded_occurrences_take_no_slot_of_a_backfills_pace() -> None:
    """Excluded hours on Sunday take no slot, so the first hours on Monday begin at once."""
    backfill = requested(at("2026-11-15T22:00"), at("2026-11-16T01:00"), 1, NOW)
    assert [(each.runs, each.due_at - NOW) for each, _ in steps(HOURLY, backfill, SIZE)][2:] == [
        (True, 0),
        (True, MINUTE),
    ]


@given(st.integers(0, 60))
def test_a_resumed_backfill_has_the_same_occurrences_and_due_times(stop: int) -> None:
    """A backfill that stops anywhere and resumes from its cursor has the same occurrences and due times."""
    backfill = requested(NOW - 2 * DAY, NOW, 30, NOW)
    whole = list(steps(HOURLY, backfill, SIZE))
    first = list(islice(steps(HOURLY, backfill, SIZE), stop))
    assert first + list(steps(HOURLY, backfill, SIZE, first[-1][1] if first else None)) == whole


@pytest.mark.parametrize(
    ("start", "end", "per_minute", "field"),
    [
        (NOW, NOW - 1, 1, "scheduled_before"),
        (NOW, NOW + 1, 1, "scheduled_before"),
        (0, 1, 0, "per_minute"),
        (0, 1, 6_001, "per_minute"),
    ],
)
def test_a_backfill_with_an_invalid_period_or_pace_is_rejected(
    start: int, end: int, per_minute: int, field: str
) -> None:
    """An empty period, a future period, and a pace out of bounds are refused."""
    with pytest.raises(FieldInvalid) as refusal:
        requested(start, end, per_minute, NOW)
    assert refusal.value.field == field


def test_a_backfill_tasks_id_depends_only_on_schedule_revision_and_local_time() -> None:
    """A backfill task's id depends only on the schedule, the revision and the local time."""
    one = derived("s", 1, "2026-11-21T02:33:00+00:00")
    assert one == derived("s", 1, "2026-11-21T02:33:00+00:00")
    others = {
        derived("t", 1, "2026-11-21T02:33:00+00:00"),
        derived("s", 2, "2026-11-21T02:33:00+00:00"),
        derived("s", 1, "2026-11-21T02:33:00+01:00"),
        derived("s", 1, "2026-11-21T02:33:00+00:00", "backfill"),
    }
    assert one not in others
    assert len(others) == 4
    task_id = one.task_id(NOW, 16)
    assert (task_id.home, task_id.shard < 16) == (NOW, True)


def test_occurrences_are_spread_over_the_shards() -> None:
    """A schedule that runs every minute uses all shards, so that no partition is hot."""
    shards = {derived("s", 1, str(minute)).task_id(NOW, 16).shard for minute in range(HOUR // MINUTE * 4)}
    assert shards == set(range(16))
