from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.recurrence_builder import Steps
from duetime.domain.schedules.recurrences import UTC_CLOCK
from duetime.domain.schedules.schedule import next_permanent_run
from duetime.domain.schedules.time_zones import day_of
from duetime.domain.schedules.timings import Permanent, Rate, parse_timing
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from tests.domain.schedules.times import at, clock, locals_of, scheduled


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("5 minutes", 5 * MINUTE),
        ("rate(5 minutes)", 5 * MINUTE),
        ("1 hour", HOUR),
        ("RATE( 2 Days )", 2 * DAY),
        ("90s", 90 * SECOND),
        ("4h30m", 4 * HOUR + 30 * MINUTE),
        ("1 week", 7 * DAY),
        ("24h", DAY),
    ],
)
def test_a_rate_has_a_number_and_a_unit(text: str, every: Millis) -> None:
    """A rate has a number and a unit, with or without EventBridge's brackets, or several short units."""
    assert parse_timing(rate=text) == Rate(every)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R/2027-01-31T09:00:00/P1M", ["2027-01-31T09:00", "2027-02-28T09:00", "2027-03-31T09:00", "2027-04-30T09:00"]),
        ("R/2028-02-29T09:00:00/P1Y", ["2028-02-29T09:00", "2029-02-28T09:00", "2030-02-28T09:00", "2031-02-28T09:00"]),
        ("R3/2027-01-30T00:00:00Z/P1M1D", ["2027-01-30T00:00", "2027-03-01T00:00", "2027-04-01T00:00"]),
        ("R2/2027-01-01T00:00:00Z/PT36H", ["2027-01-01T00:00", "2027-01-02T12:00"]),
        ("R/2027-01-01T00:00/P2W", ["2027-01-01T00:00", "2027-01-15T00:00", "2027-01-29T00:00", "2027-02-12T00:00"]),
        ("R2/P1D", ["2026-11-21T00:00", "2026-11-22T00:00"]),
        ("PT15M", ["2026-11-21T00:00", "2026-11-21T00:15", "2026-11-21T00:30", "2026-11-21T00:45"]),
        ("R1/2027-05-05T05:05:05+02:00/P1D", ["2027-05-05T03:05:05"]),
    ],
)
def test_each_interval_step_counts_from_the_start(text: str, expected: list[str]) -> None:
    """Steps count from the start: 31 January is followed by the end of February, and then by 31 March."""
    expected = [each if each.count(":") > 1 else f"{each}:00" for each in expected]
    assert locals_of(parse_timing(interval=text), UTC_CLOCK, "2026-11-21", 4) == [f"{each}+00:00" for each in expected]


def test_an_interval_with_an_offset_keeps_its_time_of_day_in_the_zone() -> None:
    """By London's clock, an interval at 09:00 in winter is also at 09:00 in summer."""
    timing = parse_timing(interval="R/2027-01-31T09:00:00Z/P2M")
    found = locals_of(timing, clock("Europe/London"), "2027-01-01", 3)
    assert found == ["2027-01-31T09:00:00+00:00", "2027-03-31T09:00:00+01:00", "2027-05-31T09:00:00+01:00"]


@given(
    st.integers(at("1970-01-01"), at("2100-01-01")),
    st.integers(0, 36),
    st.integers(0, 400),
    st.integers(0, at("2190-01-01")),
)
def test_next_previous_and_count_agree_for_calendar_intervals(
    start: Millis, months: int, days: int, instant: Millis
) -> None:
    """The next time, the previous time and the count agree for any period of months and days."""
    if not months and not days:
        return
    steps = Steps(start, months, days)
    later = steps.next(instant)
    if later is not None:
        assert later >= instant
        assert steps.count(instant, later) == 0
        assert steps.previous(later) == later
        earlier = steps.previous(later - 1)
        assert (earlier is None) == (later == start)
        if earlier is not None:
            assert earlier < instant or instant <= start
            assert steps.count(earlier, later + 1) == 2
        assert later % DAY == start % DAY
        if not days:
            assert day_of(later).day in {day_of(start).day, 28, 29, 30}


def test_listed_dates_are_sorted_without_duplicates() -> None:
    """The same instant written twice is one occurrence."""
    timing = parse_timing(dates=["2027-03-01T00:00:00Z", "2027-01-01T01:00:00+01:00", "2027-01-01T00:00"])
    expected = ["2027-01-01T00:00:00+00:00", "2027-03-01T00:00:00+00:00"]
    assert locals_of(timing, UTC_CLOCK, "2026-11-21", 4) == expected


def test_a_permanent_schedule_runs_one_gap_after_the_previous_end() -> None:
    """A permanent schedule's next run comes one gap after the previous run's end."""
    schedule = scheduled(parse_timing(permanent=30))
    assert next_permanent_run(schedule, 1_000) == 31_000
    assert schedule.recurrence.after(0) is None
    assert next_permanent_run(scheduled("* * * * *"), 1_000) is None
    assert parse_timing(permanent=0) == Permanent(0)


@pytest.mark.parametrize(
    ("given_fields", "field", "reason"),
    [
        ({}, "cron", "exactly one"),
        ({"cron": "* * * * *", "rate": "1 hour"}, "rate", "exactly one"),
        ({"rate": "1 hour", "dialect": Dialect.EVENTBRIDGE}, "dialect", "cron only"),
        ({"rate": ""}, "rate", "whole number"),
        ({"rate": "0 seconds"}, "rate", "at least a second"),
        ({"rate": "0.5 hours"}, "rate", "whole number"),
        ({"rate": "-5 minutes"}, "rate", "whole number"),
        ({"rate": "100 ms"}, "rate", "whole seconds"),
        ({"rate": "2 months"}, "rate", "use interval"),
        ({"rate": "9 fortnights"}, "rate", "units"),
        ({"rate": "999999999 weeks"}, "rate", "at most"),
        ({"rate": "cron(* * * * *)"}, "rate", "rate such as"),
        ({"rate": "1" * 10_000}, "rate", "at most 256"),
        ({"interval": "P1DT12H"}, "interval", "PT36H"),
        ({"interval": "PT0.5H"}, "interval", "whole number"),
        ({"interval": "P"}, "interval", "not a duration"),
        ({"interval": "PT"}, "interval", "not a duration"),
        ({"interval": "P0D"}, "interval", "at least a second"),
        ({"interval": "P11Y"}, "interval", "at most"),
        ({"interval": "R0/PT1H"}, "interval", "R1"),
        ({"interval": "R-1/PT1H"}, "interval", "number of occurrences"),
        ({"interval": "R/2027-01-01T00:00:00Z/2027-01-02T00:00:00Z"}, "interval", "start and its period"),
        ({"interval": "R/PT1H/2027-01-01T00:00:00Z"}, "interval", "start and its period"),
        ({"interval": "1/2/3/4"}, "interval", "ISO 8601"),
        ({"interval": "R/2027-02-30T00:00:00Z/P1D"}, "interval", "does not exist"),
        ({"dates": []}, "dates", "1 to 1000"),
        ({"dates": ["2027-01-01T00:00:00Z"] * 1_001}, "dates", "1 to 1000"),
        ({"dates": ["2027-01-01T00:00:00Z", "soon"]}, "dates[1]", "date-time"),
        ({"dates": ["2027-01-01T00:00:00.5Z"]}, "dates[0]", "whole seconds"),
        ({"dates": ["2200-01-01T00:00:00Z"]}, "dates[0]", "1970 to 2199"),
        ({"dates": ["2027-01-01T00:00:00+25:00"]}, "dates[0]", "does not exist"),
        ({"permanent": -1}, "permanent.gap_seconds", "0 to"),
        ({"permanent": 10**12}, "permanent.gap_seconds", "0 to"),
    ],
)
def test_an_error_for_an_invalid_timing_names_the_field_and_reason(
    given_fields: dict[str, object], field: str, reason: str
) -> None:
    """The error for an invalid timing names the field, the reason and the alternatives, if the timing is ambiguous."""
    with pytest.raises(FieldInvalid) as refusal:
        parse_timing(**given_fields)  # type: ignore[arg-type]  # each case has different types
    assert refusal.value.field == field
    assert reason in refusal.value.reason


_WORDS = st.text("0123456789PTRYMWDHS/:-+Z. minutesrate()", max_size=60) | st.text(max_size=60)


@given(_WORDS)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any string for a rate, interval or date is either read or raises `FieldInvalid`."""
    for given_field in ({"rate": text}, {"interval": text}, {"dates": [text]}):
        with contextlib.suppress(FieldInvalid):
            parse_timing(**given_field)
