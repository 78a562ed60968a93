from __future__ import annotations

from duetime.domain.schedules.calendars import Calendar, Window
from duetime.domain.schedules.definition import OnExcluded
from duetime.domain.schedules.forecast import forecast
from duetime.domain.times import DAY, HOUR
from tests.domain.schedules.times import at, changed, scheduled

NOW = at("2026-11-20T12:10")
"""The forecast begins on a Friday, in the middle of a period."""


def test_runs_are_counted_in_the_period_in_which_they_are_due() -> None:
    """Runs in the next day are counted per half hour; past runs and later runs are not counted."""
    found = forecast([("hourly", scheduled("5 * * * *"))], NOW)
    assert [each.start for each in found.periods[:2]] == [at("2026-11-20T12:00"), at("2026-11-20T12:30")]
    assert [dict(each.runs) for each in found.periods] == [{}, *[{}, {"hourly": 1}] * 24]


def test_minutes_with_several_schedules_are_listed_by_number_of_schedules() -> None:
    """The minute with the most schedules comes first, and minutes with a single schedule are not listed."""
    crons = {"a": "0 0 * * *", "b": "0 0,18 * * *", "c": "0 0,18 * * *", "alone": "5 3 * * *"}
    found = forecast([(name, scheduled(cron)) for name, cron in crons.items()], NOW)
    assert [(each.at, list(each.names)) for each in found.collisions] == [
        (at("2026-11-21T00:00"), ["a", "b", "c"]),
        (at("2026-11-20T18:00"), ["b", "c"]),
    ]


def test_the_forecast_does_not_count_excluded_runs() -> None:
    """Runs on an excluded Saturday are not counted."""
    closed = changed(scheduled("0 * * * *"), calendars=(Calendar("weekends", weekdays=frozenset({5, 6})),))
    found = forecast([("hourly", closed)], NOW)
    assert sum(sum(each.runs.values()) for each in found.periods) == 11


def test_a_dense_schedule_is_counted_but_not_listed_as_a_collision() -> None:
    """A schedule that runs every second is counted but not listed as a collision."""
    schedules = [("each second", scheduled("* * * * * *")), ("noon", scheduled("0 12 * * *"))]
    found = forecast(schedules, NOW)
    assert [each.runs["each second"] for each in found.periods] == [1200, *[1800] * 47, 600]
    assert found.collisions == []


def test_the_forecast_counts_no_more_runs_than_remain() -> None:
    """For a schedule that runs every second and has two remaining runs, the forecast counts two runs."""
    last = changed(scheduled("* * * * * *"), remaining_runs=2)
    found = forecast([("last", last)], NOW)
    assert [dict(each.runs) for each in found.periods if each.runs] == [{"last": 2}]


def test_remaining_runs_also_limit_the_forecast_of_a_dense_schedule() -> None:
    """For a schedule that runs every minute and has 400 remaining runs, the forecast counts the first 400 runs."""
    last = changed(scheduled("* * * * *"), remaining_runs=400)
    found = forecast([("last", last)], NOW)
    assert [each.runs["last"] for each in found.periods if each.runs] == [20, *[30] * 12, 20]


def test_a_run_that_was_moved_or_delayed_into_the_forecast_is_counted() -> None:
    """A run whose scheduled time has passed is counted if it is still due, unless its schedule did not exist then."""
    lunch = Calendar("lunch", windows=(Window(12 * HOUR, 13 * HOUR),))
    moved = changed(
        scheduled("0 12 * * *"), calendars=(lunch,), on_excluded=OnExcluded.MOVE, created_at=at("2026-11-20T09:00")
    )
    new = changed(moved, created_at=at("2026-11-20T12:05"))
    spread = changed(moved, calendars=(), spread_seconds=7_200, name="noon")
    found = forecast([("moved", moved), ("new", new), ("spread", spread)], NOW, 2 * HOUR)
    assert [(each.start, dict(each.runs)) for each in found.periods if each.runs] == [
        (at("2026-11-20T13:00"), {"moved": 1}),
        (at("2026-11-20T13:30"), {"spread": 1}),
    ]


def test_a_week_is_counted_in_periods_of_three_hours() -> None:
    """Periods start at the last multiple of three hours, and a run eight days from now is left out."""
    daily, once = scheduled("0 9 * * *"), scheduled("0 9 28 11 *")
    found = forecast([("daily", daily), ("once", once)], NOW, 7 * DAY)
    assert found.period == 3 * HOUR
    assert len(found.periods) == 57
    assert found.periods[0].start == at("2026-11-20T12:00")
    assert sum(each.runs.get("daily", 0) for each in found.periods) == 7
    assert sum(each.runs.get("once", 0) for each in found.periods) == 0
