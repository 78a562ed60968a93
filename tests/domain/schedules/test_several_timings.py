"""A schedule can combine several timings, added and excluded dates, and a spread."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.calendars import Calendar
from duetime.domain.schedules.definition import CatchUpMode, OnExcluded, ScheduleSpec, Written
from duetime.domain.schedules.expansion import catch_up, expand, is_caught_up
from duetime.domain.schedules.occurrences import between, count_between, following, preceding
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.schedule import Schedule, check, spread_offset
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.schedules.timing_description import describe_timing
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from duetime.domain.times import Millis


def instant(text: str) -> Millis:
    """A time in RFC 3339."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


NOW = instant("2026-12-24T00:00:00Z")
BOTH = Written(timings=(Written(cron="0 */6 * * *"), Written(rate="4 hours"), Written(cron="30 9 * * *")))


def scheduled(written: Written, zone: str = "UTC", **fields: Any) -> Schedule:  # noqa: ANN401 - any field
    """A schedule that begins at `NOW`."""
    spec = ScheduleSpec(written, TaskSpec("report"), "nightly", Clock(zone_named(zone)), start_at=NOW)
    return check(Schedule("id", replace(spec, **fields), written.timing, NOW))


def times(schedule: Schedule, length: Millis = DAY) -> list[str]:
    """The local times, as hour and minute, that run within `length` of `NOW`."""
    return [each.key[11:16] for each in between(schedule, NOW - 1, NOW + length - 1, 1_000) if each.runs]


def test_an_occurrence_that_several_timings_share_occurs_once() -> None:
    """If two of several timings have an occurrence at the same time, the occurrence happens only once."""
    schedule = scheduled(BOTH)
    expected = ["00:00", "04:00", "06:00", "08:00", "09:30", "12:00", "16:00", "18:00", "20:00"]
    assert times(schedule) == expected
    assert [each.key[11:16] for each in preceding(schedule, NOW + DAY, 9)] == expected[::-1]
    assert count_between(schedule, NOW - 1, NOW + DAY - 1) == len(expected)
    assert count_between(schedule, NOW - 1, NOW + 365 * DAY - 1) == len(expected) * 365
    assert describe_timing(BOTH.timing) == (
        "at 00:00, 06:00, 12:00 and 18:00 every day; every 4 hours; at 09:30 every day"
    )


def test_occurrences_of_dense_timings_are_counted_as_an_upper_bound() -> None:
    """Large numbers of occurrences are counted by arithmetic, so that no request iterates over a year's seconds."""
    schedule = scheduled(Written(timings=(Written(rate="1 second"), Written(rate="2 seconds"))))
    assert count_between(schedule, NOW - 1, NOW + HOUR - 1) == 3600
    assert 365 * 86_400 <= count_between(schedule, NOW - 1, NOW + 365 * DAY - 1) <= 365 * 86_400 * 3 // 2


def test_a_time_skipped_in_several_timings_is_one_skipped_occurrence() -> None:
    """If two timings both have 02:30 in a gap, the result is a single occurrence that does not run."""
    written = Written(timings=(Written(cron="30 2 * * *"), Written(cron="30 2,14 * * *")))
    schedule = scheduled(written, "Europe/Berlin")
    day = following(replace(schedule, spec=replace(schedule.spec, start_at=None)), instant("2027-03-28T00:00:00Z"), 2)
    assert [(each.key[:16], each.runs) for each in day] == [("2027-03-28T02:30", False), ("2027-03-28T14:30", True)]


@pytest.mark.parametrize(
    ("excluded", "expected"),
    [
        ((), ["06:00", "12:00", "13:00", "18:00"]),
        (("2026-12-24",), []),
        (("2026-12-24T12:00:00",), ["06:00", "13:00", "18:00"]),
        (("2026-12-24T17:00:00Z", "2026-12-25"), ["06:00", "12:00", "13:00"]),
        (("2026-12-24T12:00:01",), ["06:00", "12:00", "13:00", "18:00"]),
    ],
)
def test_added_and_excluded_dates_are_in_the_schedules_zone(excluded: tuple[str, ...], expected: list[str]) -> None:
    """Days, local times and instants are in the schedule's zone, and excluded times have a reason."""
    written = Written(cron="0 6,12,18 * * *")
    schedule = scheduled(
        written, "Europe/Berlin", extra_dates=("2026-12-24T13:00:00", "2026-12-24T12:00:00"), excluded_dates=excluded
    )
    assert times(schedule, 20 * HOUR) == expected
    skipped = [each for each in between(schedule, NOW, NOW + 20 * HOUR, 100) if not each.runs]
    assert {each.note for each in skipped} <= {"in excluded_dates: skipped"}
    assert len(skipped) + len(expected) == 4
    assert describe_timing(written.timing, ("2026-12-24T13:00:00",)).endswith("and at 2026-12-24 13:00")


def test_an_excluded_repeated_local_time_excludes_both_instants() -> None:
    """An excluded local time excludes both of its instants, while an excluded instant excludes only itself."""
    fold = Clock(zone_named("Europe/Berlin"), Gap.SKIP, Fold.BOTH)
    fields: dict[str, Any] = {"clock": fold, "start_at": None}
    written, before = Written(cron="30 2 25 10 *"), instant("2026-10-24T22:00:00Z")
    local = scheduled(written, **fields, excluded_dates=("2026-10-25T02:30:00",))
    assert [each.runs for each in following(local, before, 2)] == [False, False]
    second = scheduled(written, **fields, excluded_dates=("2026-10-25T02:30:00+01:00",))
    assert [each.runs for each in following(second, before, 2)] == [True, False]


@pytest.mark.parametrize(
    ("written", "fields", "field"),
    [
        (Written(cron="0 9 * * *", timings=(Written(rate="1h"),)), {}, "cron"),
        (Written(timings=(Written(rate="1h"), Written())), {}, "timings[1].cron"),
        (Written(timings=(Written(rate="1h", cron="0 9 * * *"),)), {}, "timings[0].rate"),
        (Written(timings=(Written(dates=("2026-12-24",)),)), {}, "timings[0].dates[0]"),
        (Written(timings=(Written(permanent=5),)), {}, "timings[0]"),
        (Written(timings=(Written(timings=(Written(rate="1h"),)),)), {}, "timings[0]"),
        (Written(rate="1h"), {"extra_dates": ("2026-12-24",)}, "extra_dates[0]"),
        (Written(rate="1h"), {"excluded_dates": ("2026-02-30",)}, "excluded_dates[0]"),
        (Written(rate="1h"), {"excluded_dates": ("2026-02-28", "noon")}, "excluded_dates[1]"),
        (Written(permanent=5), {"extra_dates": ("2026-12-24T09:00:00",)}, "extra_dates"),
        (Written(permanent=5), {"excluded_dates": ("2026-12-24",)}, "excluded_dates"),
        (Written(permanent=5), {"spread_seconds": 5}, "spread_seconds"),
    ],
)
def test_an_error_for_an_invalid_timing_entry_names_field_and_index(
    written: Written, fields: dict[str, Any], field: str
) -> None:
    """The error for an invalid entry names the field and the entry's index."""
    with pytest.raises(FieldInvalid) as refusal:
        scheduled(written, **fields)
    assert refusal.value.field == field


def test_the_spread_of_occurrences_depends_on_the_schedules_name() -> None:
    """The spread depends on the name, not on the revision, and jitter is added within the rest of the gap."""
    schedule = scheduled(Written(cron="0 * * * *"), spread_seconds=1800)
    offset = spread_offset("nightly", 1800)
    assert 0 < offset <= 1800 * SECOND
    for revised in (schedule, replace(schedule, revision=7)):
        assert {each.due_at - each.nominal for each in following(revised, NOW, 20)} == {offset}
    assert len({spread_offset(f"nightly-{number}", 1800) for number in range(100)}) > 80
    both = scheduled(Written(cron="0 * * * *"), spread_seconds=1800, jitter_seconds=86_400)
    delays = [each.due_at - each.nominal for each in following(both, NOW, 200)]
    assert offset <= min(delays) < max(delays) < HOUR


def test_a_spread_that_is_longer_than_the_gap_shrinks_in_proportion() -> None:
    """If a spread is longer than the gap, it shrinks, so that no occurrence is due after the next occurrence."""
    names = [f"nightly-{number}" for number in range(50)]
    delays = set()
    for name in names:
        schedule = scheduled(Written(cron="*/5 * * * *"), spread_seconds=3600, name=name)
        (delay,) = {each.due_at - each.nominal for each in following(schedule, NOW, 10)}
        delays.add(delay)
    assert 0 <= min(delays) < max(delays) < 5 * MINUTE
    assert len(delays) > 40


def test_occurrences_missed_within_the_window_are_caught_up() -> None:
    """Of ten missed hours, the six that are too late are skipped, and the other four are caught up."""
    schedule = scheduled(Written(cron="0 * * * *"), catch_up_mode=CatchUpMode.ALL, catch_up_seconds=4 * 3600)
    missed_by = NOW + 10 * HOUR + MINUTE
    decided = catch_up(schedule, NOW, missed_by)
    assert (decided.missed, decided.skipped, decided.run) == (6, 6, None)
    placed = expand(schedule, decided.until, missed_by + HOUR).occurrences
    assert [(each.key[11:13], is_caught_up(schedule, each, missed_by)) for each in placed] == [
        *((f"{hour:02}", True) for hour in (7, 8, 9, 10)),
        ("11", False),
    ]
    again = catch_up(schedule, decided.until, missed_by)
    assert (again.missed, again.until) == (0, decided.until)


def test_an_occurrence_that_a_calendar_moved_into_the_window_runs() -> None:
    """An occurrence that a calendar moved into the window runs, even if its original time is before the window."""
    closed = Calendar("closed", dates={date(2026, 12, 24): ""})
    schedule = scheduled(
        Written(cron="0 22 * * *"), on_excluded=OnExcluded.MOVE, catch_up_mode=CatchUpMode.ALL, catch_up_seconds=3600
    )
    decided = catch_up(replace(schedule, calendars=(closed,)), NOW, NOW + DAY + 30 * MINUTE)
    assert decided.run is not None
    assert decided.run.at == NOW + DAY
