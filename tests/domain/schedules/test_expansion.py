from __future__ import annotations

import time
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.calendars import Calendar, Window
from duetime.domain.schedules.definition import ChangedOccurrence, OnExcluded, Overlap
from duetime.domain.schedules.expansion import catch_up, expand
from duetime.domain.schedules.occurrences import between
from duetime.domain.schedules.schedule import Schedule, check, next_permanent_run
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from tests.domain.schedules.test_occurrences import NIGHTS, WEEKENDS, moments, schedules
from tests.domain.schedules.times import at, changed, clock, scheduled

NOW = at("2027-01-01T00:00:30")


@settings(deadline=None)
@given(schedules(), moments, st.integers(0, 3 * DAY), st.sampled_from([0, 60, 3600, 86_400]))
@example(scheduled("0 * * * *"), at("2027-03-27T12:00"), DAY, 3600)
@example(changed(scheduled("0 * * * *"), calendars=(NIGHTS,)), at("2027-03-27T20:30"), 2 * HOUR, 86_400)
@example(
    changed(
        scheduled("0 12 * * *"), calendars=(WEEKENDS,), on_excluded=OnExcluded.MOVE, excluded_dates=("2027-03-28",)
    ),
    at("2027-03-26T20:30"),
    57 * HOUR,
    7_200,
)
def test_at_most_one_missed_run_is_caught_up(
    schedule: Schedule, done: Millis, away: Millis, catch_up_seconds: int
) -> None:
    """At most one missed run is caught up: the latest run in the window that is not excluded by a calendar."""
    schedule = changed(schedule, catch_up_seconds=catch_up_seconds)
    now = done + away
    caught_up = catch_up(schedule, done, now)
    all_missed = between(schedule, done, now, 10_000)
    earliest = now - catch_up_seconds * SECOND
    may_run = [each for each in all_missed if each.runs and each.at >= earliest]
    if not may_run or schedule.remaining_runs == 0:
        assert caught_up.run is None
    else:
        assert caught_up.run is not None
        # The note about a jump at the same instant is read from the list.
        assert replace(caught_up.run, note="") == replace(may_run[-1], note="")
    assert caught_up.skipped == caught_up.missed - (caught_up.run is not None)
    assert bool(caught_up.note) == bool(caught_up.missed)


@pytest.mark.parametrize("text", ["* * * * *", "* * * * * *", "*/7 3-17 * * 1-5", "30 1 * * *"])
def test_a_year_is_caught_up_without_iteration(text: str) -> None:
    """Counting is arithmetic, so a year of every second is counted within a second."""
    schedule = scheduled(text, clock("Europe/London"))
    catch_up(schedule, NOW - 365 * DAY, NOW)
    began = time.process_time()
    caught_up = catch_up(schedule, NOW - 365 * DAY, NOW)
    # Iterating over seconds would take a minute.
    assert time.process_time() - began < 1
    assert caught_up.missed >= 364


def test_a_year_of_every_second_within_calendars_is_caught_up_without_iteration() -> None:
    """Excluded days are skipped as a unit, not second by second."""
    closed = Calendar("closed", weekdays=frozenset(range(7)))
    nights = Calendar("nights", windows=tuple(Window(hour * HOUR, hour * HOUR + 30 * MINUTE) for hour in range(24)))
    schedule = changed(
        scheduled("* * * * * *"), calendars=(nights, closed), catch_up_seconds=30 * 86_400, on_excluded=OnExcluded.MOVE
    )
    began = time.process_time()
    caught_up = catch_up(schedule, NOW - 365 * DAY, NOW)
    # Iterating over seconds would take minutes.
    assert time.process_time() - began < 20
    assert (caught_up.missed, caught_up.run) == (365 * 86_400, None)


@pytest.mark.parametrize("moved", ["2026-12-31T06:30", "2026-12-31T13:15"], ids=["before noon", "after noon"])
def test_an_occurrence_that_was_moved_into_an_excluded_time_is_caught_up(moved: str) -> None:
    """A missed occurrence that its user moved into an excluded day is caught up, as it would have run on that day."""
    closed = Calendar("closed", dates={date(2026, 12, 31): ""})
    schedule = changed(
        scheduled("0 0,12 * * *"),
        calendars=(closed,),
        changed_occurrences=(ChangedOccurrence(at("2026-12-30T12:00"), at(moved)),),
        catch_up_seconds=86_400,
    )
    caught_up = catch_up(schedule, at("2026-12-30T12:00"), at("2026-12-31T20:00"))
    assert (caught_up.missed, caught_up.run and caught_up.run.at) == (3, at(moved))


def test_an_earlier_occurrence_of_an_excluded_time_is_caught_up_if_the_last_one_was_skipped() -> None:
    """If a user skipped the last occurrence of an excluded night, the one before it was moved and is caught up."""
    nights = Calendar("nights", windows=(Window(1 * HOUR, 6 * HOUR),))
    schedule = changed(
        scheduled("0 2,4 * * *"),
        calendars=(nights,),
        on_excluded=OnExcluded.MOVE,
        changed_occurrences=(ChangedOccurrence(at("2026-12-31T04:00")),),
        catch_up_seconds=86_400,
    )
    caught_up = catch_up(schedule, at("2026-12-31"), at("2026-12-31T20:00"))
    assert caught_up.run is not None
    assert (caught_up.run.nominal, caught_up.run.at) == (at("2026-12-31T02:00"), at("2026-12-31T06:00"))


def test_occurrences_that_their_user_stopped_skipped_or_moved_away_were_not_missed() -> None:
    """Of six hours in an outage, one stopped, one skipped and one moved out of the outage, three were missed."""
    schedule = replace(
        changed(
            scheduled("0 * * * *"),
            changed_occurrences=(
                ChangedOccurrence(at("2026-12-31T02:00")),
                ChangedOccurrence(at("2026-12-31T03:00"), at("2026-12-31T22:00")),
            ),
        ),
        stopped=frozenset({at("2026-12-31T04:00")}),
    )
    caught_up = catch_up(schedule, at("2026-12-31T00:30"), at("2026-12-31T06:30"))
    assert (caught_up.missed, caught_up.skipped) == (3, 2)
    assert catch_up(schedule, at("2026-12-31T01:30"), at("2026-12-31T04:30")).missed == 0


def test_a_year_of_excluded_seconds_is_searched_day_by_day() -> None:
    """The search for the latest missed occurrence passes over each day in `excluded_dates` as a unit."""
    days = tuple(str(date(2026, 1, 1) + timedelta(days=number)) for number in range(365))
    schedule = changed(scheduled("* * * * * *"), excluded_dates=days, catch_up_seconds=30 * 86_400)
    began = time.process_time()
    caught_up = catch_up(schedule, at("2026-01-01") - 1, at("2026-12-31T23:00"))
    # Iterating over seconds would take minutes.
    assert time.process_time() - began < 20
    assert caught_up.run is None


def test_the_text_about_a_catch_up_explains_the_decision() -> None:
    """The text about a catch-up says how many runs were missed, which of them runs, or why none of them runs."""
    schedule = scheduled("* * * * *")
    assert catch_up(schedule, NOW - HOUR, NOW).note == (
        "60 occurrences were missed: the one at 2027-01-01T00:00:00+00:00 runs, 59 skipped"
    )
    late = changed(schedule, catch_up_seconds=10)
    assert catch_up(late, NOW - HOUR, NOW).note == (
        "60 occurrences were missed: none runs, because each is excluded or late by more than 10 s"
    )
    assert catch_up(schedule, NOW, NOW).note == ""
    assert catch_up(replace(schedule, remaining_runs=0), NOW - HOUR, NOW).note == ""


def test_a_pass_places_all_occurrences_up_to_the_maximum() -> None:
    """A pass places at most the maximum number of occurrences; if others are left, another pass follows at once."""
    schedule = scheduled("* * * * * *")
    assert len(expand(schedule, NOW, NOW + MINUTE).occurrences) == 60
    some = expand(schedule, NOW, NOW + MINUTE, limit=25)
    assert (len(some.occurrences), some.until, some.next_at) == (25, NOW + 25 * SECOND, NOW + 26 * SECOND)


def test_a_schedule_without_remaining_runs_has_no_next_expansion() -> None:
    """A schedule without remaining runs, or without times before its end, has no next expansion."""
    schedule = replace(scheduled("* * * * *"), remaining_runs=3)
    found = expand(schedule, NOW, NOW + 10 * MINUTE)
    assert (len(found.occurrences), found.remaining_runs, found.next_at) == (3, 0, None)
    ending = changed(scheduled("* * * * *"), end_at=NOW + 2 * MINUTE)
    assert expand(ending, NOW, NOW + HOUR).next_at is None
    assert expand(replace(schedule, remaining_runs=0), NOW, NOW + HOUR).occurrences == ()


def test_a_skipped_occurrence_uses_no_run() -> None:
    """A schedule with three remaining runs still runs three times if days off come in between."""
    schedule = replace(
        scheduled("0 0 * * *"), remaining_runs=3, calendars=(Calendar("off", weekdays=frozenset({5, 6})),)
    )
    found = expand(schedule, at("2026-11-20"), at("2026-12-20"))
    assert [each.runs for each in found.occurrences] == [False, False, True, True, True]


def test_a_permanent_schedule_keeps_its_bounds() -> None:
    """A permanent schedule does not run before its start, after its end, or without remaining runs."""
    schedule = scheduled(parse_timing(permanent=60))
    assert next_permanent_run(changed(schedule, start_at=NOW + HOUR), NOW) == NOW + HOUR
    assert next_permanent_run(changed(schedule, end_at=NOW), NOW) is None
    assert next_permanent_run(replace(schedule, remaining_runs=0), NOW) is None
    assert catch_up(schedule, 0, NOW).missed == 0


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"jitter_seconds": -1}, "jitter_seconds"),
        ({"jitter_seconds": 86_401}, "jitter_seconds"),
        ({"catch_up_seconds": 10**9}, "catch_up_seconds"),
        ({"remaining_runs": -1}, "remaining_runs"),
        ({"start_at": 2, "end_at": 1}, "end_at"),
        ({"name": "x" * 200}, "name"),
        ({"calendars": (Calendar("c"),) * 9}, "calendars"),
        ({"timing": parse_timing(permanent=1), "overlap": Overlap.ALLOW_ALL}, "overlap"),
        ({"timing": parse_timing(permanent=1), "jitter_seconds": 5}, "jitter_seconds"),
    ],
)
def test_an_error_for_mutually_exclusive_fields_names_one_of_them(changes: dict[str, object], field: str) -> None:
    """The error for an invalid field, or for fields that exclude each other, names a field."""
    with pytest.raises(FieldInvalid) as refusal:
        check(changed(scheduled("* * * * *"), **changes))
    assert refusal.value.field == field
    assert check(scheduled("* * * * *", clock("Europe/London"))).spec.clock.zone == zone_named("Europe/London")
