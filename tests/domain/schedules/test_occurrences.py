from __future__ import annotations

import time
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.schedules.calendars import Calendar, Span, Window
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import ChangedOccurrence, OnExcluded
from duetime.domain.schedules.expansion import expand
from duetime.domain.schedules.occurrences import (
    Occurrence,
    between,
    count_between,
    following,
    next_nominal,
    preceding,
    previous_nominal,
)
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from tests.domain.schedules import reference
from tests.domain.schedules.times import at, changed, scheduled

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule import Schedule

TIMINGS = st.one_of(
    reference.EXPRESSIONS.map(lambda each: parse_timing(cron=str(each), dialect=Dialect.VIXIE)),
    st.integers(20, 5_000).map(lambda minutes: parse_timing(rate=f"{minutes} minutes")),
    st.sampled_from(["R/2027-01-31T01:30:00/P1M", "R9/2027-03-26T02:30:00/P1D", "R/2026-10-01T00:00:00Z/PT7H"]).map(
        lambda text: parse_timing(interval=text)
    ),
    st.lists(st.sampled_from(["2027-03-28T01:30:00", "2027-10-31T01:30:00", "2027-06-01T12:00:00Z"]), min_size=1).map(
        lambda texts: parse_timing(dates=texts)
    ),
)
NIGHTS = Calendar("nights", zone=zone_named("Europe/Berlin"), windows=(Window(22 * HOUR, 6 * HOUR),))
WEEKENDS = Calendar("weekends", zone=zone_named("America/New_York"), weekdays=frozenset({5, 6}))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Schedules of every kind, around clock changes."""
    clock = Clock(
        zone_named(draw(st.sampled_from(reference.ZONES))), draw(st.sampled_from(Gap)), draw(st.sampled_from(Fold))
    )
    schedule = scheduled(draw(TIMINGS), clock)
    return changed(
        schedule,
        calendars=draw(st.sampled_from([(), (NIGHTS,), (WEEKENDS,), (NIGHTS, WEEKENDS)])),
        on_excluded=draw(st.sampled_from(OnExcluded)),
        excluded_dates=draw(st.sampled_from([(), (), ("2027-03-28",), ("2027-03-13", "2027-10-31", "2027-11-07")])),
        jitter_seconds=draw(st.sampled_from([0, 0, 30, 7_200])),
        start_at=draw(st.none() | st.integers(at("2027-01-01"), at("2027-04-01"))),
        end_at=draw(st.none() | st.integers(at("2027-04-01"), at("2028-01-01"))),
        remaining_runs=draw(st.none() | st.integers(0, 20)),
    )


moments = st.integers(at("2027-01-01"), at("2027-12-01")) | st.sampled_from(
    [at("2027-03-27T12:00"), at("2027-10-30T12:00"), at("2027-03-13T12:00"), at("2027-11-06T12:00")]
)


@settings(deadline=None)
@given(schedules(), moments, st.lists(st.integers(1, 5 * DAY), min_size=1, max_size=8))
def test_the_trigger_places_exactly_the_occurrences_in_the_preview(
    schedule: Schedule, start: Millis, looks: list[Millis]
) -> None:
    """The trigger places exactly the occurrences in the preview, however far it looks ahead."""
    end = start + sum(looks)
    shown = [each for each in following(schedule, start, 300) if each.nominal <= end]
    placed: list[Occurrence] = []
    done, current = start, schedule
    for length in looks:
        horizon = done + length
        while True:
            found = expand(current, done, horizon, limit=7)
            placed += found.occurrences
            done, current = found.until, replace(current, remaining_runs=found.remaining_runs)
            if done >= horizon or len(placed) >= 300 or found.remaining_runs == 0:
                break
    assert placed[: len(shown)] == shown
    assert len(shown) == 300 or len(placed) == len(shown)


@settings(deadline=None)
@given(schedules(), moments)
def test_each_occurrence_comes_after_the_previous_occurrence(schedule: Schedule, start: Millis) -> None:
    """Each occurrence has its own time, after the previous occurrence, and jitter never moves it past the next one."""
    found = following(schedule, start, 80)
    assert all(one.nominal < other.nominal for one, other in pairwise(found))
    assert len({each.key for each in found}) == len(found)
    running = [each for each in found if each.runs]
    assert all(one.due_at < other.at for one, other in pairwise(running))
    assert all(
        each.nominal <= each.at <= each.due_at <= each.at + schedule.spec.jitter_seconds * SECOND for each in found
    )
    assert all(each.note for each in found if not each.runs)
    assert schedule.remaining_runs is None or len(running) <= schedule.remaining_runs
    for each in found:
        assert schedule.spec.start_at is None or each.nominal >= schedule.spec.start_at
        assert schedule.spec.end_at is None or each.due_at <= schedule.spec.end_at
    for calendar in schedule.calendars:
        assert not any(calendar.covering(each.at) for each in running)


@settings(deadline=None)
@given(schedules(), moments)
def test_earlier_occurrences_are_later_occurrences_in_reverse(schedule: Schedule, start: Millis) -> None:
    """A search backward finds the same occurrences, with the same numbers, as a search forward."""
    schedule = replace(schedule, remaining_runs=None)
    found = following(schedule, start, 30)
    if not found:
        return
    end = found[-1].nominal
    backwards = [each for each in preceding(schedule, end + 1, len(found) + 5) if each.nominal > start]
    assert backwards == list(reversed(found))
    assert between(schedule, start, end, 100) == found
    lost = [each for each in found if "not exist" in each.note and not each.runs]
    assert len(found) - len(lost) <= count_between(schedule, start, end) <= len(found)


@settings(deadline=None)
@given(schedules(), moments)
def test_forward_and_backward_searches_agree_at_every_instant(schedule: Schedule, start: Millis) -> None:
    """At every instant within a schedule's bounds, searches forward and backward give consistent results."""
    later = next_nominal(schedule, start)
    if later is None:
        assert count_between(schedule, start, start + 400 * DAY) == 0
        return
    assert count_between(schedule, start, later) == 1
    earlier = previous_nominal(schedule, later)
    assert earlier is None or (earlier <= start and next_nominal(schedule, earlier) == later)


def test_an_excluded_occurrence_is_skipped_and_names_calendar_and_day() -> None:
    """An occurrence that a calendar excludes is listed but does not run, and names the calendar and the day."""
    schedule = replace(scheduled("0 12 * * *"), calendars=(WEEKENDS,))
    friday, saturday, sunday, monday = following(schedule, at("2026-11-20"), 4)
    assert [each.runs for each in (friday, saturday, sunday, monday)] == [True, False, False, True]
    assert saturday.note == "weekends: Saturday: skipped"


def test_occurrences_moved_by_a_calendar_run_once_at_the_next_working_moment() -> None:
    """Of all occurrences in a weekend, the latest runs at the weekend's end; the others refer to that occurrence."""
    schedule = changed(scheduled("0 */8 * * *"), calendars=(WEEKENDS,), on_excluded=OnExcluded.MOVE)
    found = following(schedule, at("2026-11-21T05:00"), 7)
    moved = found[5]
    assert [each.runs for each in found] == [False] * 5 + [True, True]
    assert (moved.key, moved.at) == ("2026-11-23T00:00:00+00:00", at("2026-11-23T05:00"))
    assert "because a later occurrence runs by" in found[0].note
    daily = replace(schedule, timing=parse_timing(cron="0 12 * * *"))
    saturday, sunday, monday = following(daily, at("2026-11-21"), 3)
    assert (saturday.runs, sunday.runs, monday.runs) == (False, True, True)
    assert (sunday.key, sunday.at) == ("2026-11-22T12:00:00+00:00", at("2026-11-23T05:00"))
    assert sunday.note == "weekends: Sunday: moved to 2026-11-23T05:00:00+00:00"


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({"excluded_dates": ("2026-11-22",)}, [True, False, True]),
        ({"excluded_dates": ("2026-11-22T12:00:00",)}, [True, False, True]),
        ({"changed_occurrences": (ChangedOccurrence(at("2026-11-22T12:00")),)}, [True, False, True]),
        (
            {"changed_occurrences": (ChangedOccurrence(at("2026-11-22T12:00"), at("2026-11-22T15:00")),)},
            [False, False, True, True],
        ),
    ],
    ids=["excluded day", "excluded time", "skipped by its user", "moved by its user"],
)
def test_an_occurrence_is_moved_if_no_later_occurrence_replaces_it(
    changes: dict[str, object], runs: list[bool]
) -> None:
    """Saturday's occurrence is moved to Monday if Sunday's occurrence does not run, and skipped if it does."""
    schedule = changed(scheduled("0 12 * * *"), calendars=(WEEKENDS,), on_excluded=OnExcluded.MOVE, **changes)
    found = following(schedule, at("2026-11-21"), len(runs))
    assert [each.runs for each in found] == runs
    assert (found[0].at == at("2026-11-23T05:00")) == runs[0]


def test_days_that_are_excluded_after_a_moved_occurrence_are_not_enumerated() -> None:
    """Sixty excluded days between an occurrence and the next working moment are passed over day by day."""
    first = date(2026, 11, 22)
    days = tuple(str(first + timedelta(days=number)) for number in range(60))
    closed = Calendar("closed", spans=(Span(at("2026-11-20"), at("2027-01-21")),))
    schedule = changed(scheduled("* * * * * *"), calendars=(closed,), on_excluded=OnExcluded.MOVE, excluded_dates=days)
    began = time.process_time()
    (last,) = following(schedule, at("2026-11-21T23:59:58"), 1)
    # Iterating over seconds would take a minute.
    assert time.process_time() - began < 20
    assert last.note.endswith("because a later occurrence runs by the next working moment, 2027-01-21T00:00:00+00:00")


def test_an_occurrence_without_a_later_working_moment_is_skipped() -> None:
    """An occurrence is skipped with a note if no working moment follows within two years or the schedule's life."""
    never = Calendar("never", weekdays=frozenset(range(7)))
    schedule = changed(scheduled("0 0 * * *"), calendars=(never,), on_excluded=OnExcluded.MOVE)
    assert "no working moment in two years" in following(schedule, at("2026-11-21"), 1)[0].note
    ending = changed(schedule, calendars=(WEEKENDS,), end_at=at("2026-11-22T12:00"))
    assert "after the schedule's end" in following(ending, at("2026-11-21T12:00"), 1)[0].note


class _Counted(Calendar):
    """A calendar that counts its calls."""

    def covering(self, at: Millis) -> Span | None:
        asked.append(at)
        return super().covering(at)


asked: list[Millis] = []


def test_occurrences_in_a_closed_period_share_one_search() -> None:
    """A thousand occurrences in a closed period share one search, so that the trigger is not blocked."""
    asked.clear()
    never = _Counted("never", weekdays=frozenset(range(7)))
    schedule = changed(scheduled("* * * * * *"), calendars=(never,), on_excluded=OnExcluded.MOVE)
    found = following(schedule, at("2026-11-21"), 1_000)
    assert all("no working moment in two years" in each.note for each in found)
    assert 1_000 <= len(asked) <= 1_000 + 2 * 366


def test_jitter_depends_only_on_schedule_revision_and_local_time() -> None:
    """The jitter of an occurrence depends only on the schedule, the revision and the local time."""
    schedule = changed(scheduled("0 * * * *"), jitter_seconds=600)
    delays = [each.due_at - each.at for each in following(schedule, at("2026-11-21"), 50)]
    assert delays == [each.due_at - each.at for each in following(schedule, at("2026-11-21"), 50)]
    assert len(set(delays)) > 40
    assert max(delays) <= 10 * MINUTE
    other = following(replace(schedule, revision=2), at("2026-11-21"), 50)
    assert delays != [each.due_at - each.at for each in other]
