from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path

import pytest
from croniter import CroniterBadDateError, croniter
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.cron_parser import parse_cron
from duetime.domain.schedules.recurrence_builder import ZonedRecurrence, recurrence_of
from duetime.domain.schedules.recurrences import UTC_CLOCK
from duetime.domain.schedules.time_zones import Fold, Gap
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.times import DAY, Millis, from_datetime, to_datetime
from tests.domain.schedules import reference
from tests.domain.schedules.times import at, clock, locals_of

# These are days on which each zone's clock is changed, and days on which no clock is changed.
DAYS = (
    "2027-03-14", "2027-11-07", "2027-03-28", "2027-10-31", "2027-04-04", "2027-10-03", "2018-11-04", "2018-02-18",
    "2025-02-23", "2025-04-06", "2007-12-09", "2016-05-01", "2026-11-21", "2028-02-29",
)  # fmt: skip
PERIODICS = Path(__file__).parents[4] / "shared" / "data" / "schedules" / "prow-periodics.jsonl"


def instants(recurrence: ZonedRecurrence, start: Millis, end: Millis) -> list[datetime]:
    """All instants in [start, end)."""
    found: list[datetime] = []
    instant = recurrence.after(start - 1)
    while instant is not None and instant < end:
        found.append(to_datetime(instant))
        instant = recurrence.after(instant)
    return found


@settings(deadline=None)
@given(
    reference.EXPRESSIONS,
    st.sampled_from(reference.ZONES),
    st.sampled_from(DAYS),
    st.sampled_from(Gap),
    st.sampled_from(Fold),
)
def test_arithmetic_finds_the_same_times_as_checking_every_minute(
    expression: reference.Expression, zone: str, day: str, gap: Gap, fold: Fold
) -> None:
    """Times found by arithmetic equal those of checking every minute, in every zone, even around clock changes."""
    start, end = at(day) - DAY, at(day) + 2 * DAY
    recurrence = ZonedRecurrence(parse_cron(str(expression), Dialect.VIXIE), clock(zone, gap, fold))
    expected = reference.walk(
        expression,
        zone,
        to_datetime(start),
        to_datetime(end),
        shift=gap is Gap.SHIFT_FORWARD,
        both=fold is Fold.BOTH,
    )
    found = instants(recurrence, start, end)
    assert found == expected
    assert recurrence.count(start - 1, end - 1) == len(expected)
    backwards = list(found)
    instant: Millis | None = end
    while backwards:
        instant = recurrence.before(instant or 0)
        assert instant is not None
        assert to_datetime(instant) == backwards.pop()


@settings(deadline=None)
@given(
    reference.EXPRESSIONS,
    st.sampled_from(reference.ZONES),
    st.integers(0, at("2100-01-01")),
    st.sampled_from(Gap),
    st.sampled_from(Fold),
)
def test_the_searches_for_next_and_previous_times_are_inverse(
    expression: reference.Expression, zone: str, instant: Millis, gap: Gap, fold: Fold
) -> None:
    """`after` and `before` are inverse functions, and `count` agrees with both."""
    recurrence = ZonedRecurrence(parse_cron(str(expression), Dialect.VIXIE), clock(zone, gap, fold))
    later = recurrence.after(instant)
    assert later is not None
    assert later > instant
    earlier = recurrence.before(later)
    if earlier is not None:
        assert earlier <= instant
        assert recurrence.after(earlier) == later
        assert recurrence.count(earlier, later) == 1
    assert recurrence.count(instant, later - 1) == 0
    assert recurrence.count(instant, later) == 1


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 0 29 2 *", "2026-11-21", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]),
        ("0 0 29 2 *", "2095-01-01", ["2096-02-29T00:00", "2104-02-29T00:00", "2108-02-29T00:00"]),
        ("0 0 L 2 *", "2026-11-21", ["2027-02-28T00:00", "2028-02-29T00:00", "2029-02-28T00:00"]),
        ("0 0 L,15 * ?", "2026-11-21", ["2026-11-30T00:00", "2026-12-15T00:00", "2026-12-31T00:00"]),
        ("0 0 31 * *", "2026-11-21", ["2026-12-31T00:00", "2027-01-31T00:00", "2027-03-31T00:00"]),
        ("0 0 * * FRI#5", "2026-11-21", ["2027-01-29T00:00", "2027-04-30T00:00", "2027-07-30T00:00"]),
        ("0 0 * * 5L", "2026-11-21", ["2026-11-27T00:00", "2026-12-25T00:00", "2027-01-29T00:00"]),
        ("0 0 * * 1#1,1#3", "2026-11-21", ["2026-12-07T00:00", "2026-12-21T00:00", "2027-01-04T00:00"]),
        ("0 0 1W 8 ?", "2026-11-21", ["2027-08-02T00:00", "2028-08-01T00:00", "2029-08-01T00:00"]),
        ("0 0 1W 5 ?", "2026-11-21", ["2027-05-03T00:00", "2028-05-01T00:00", "2029-05-01T00:00"]),
        ("0 0 L-3 2 *", "2026-11-21", ["2027-02-25T00:00", "2028-02-26T00:00", "2029-02-25T00:00"]),
        ("0 0 L-30,L-29 * *", "2026-11-21", ["2026-12-01T00:00", "2026-12-02T00:00", "2027-01-01T00:00"]),
        ("0 0 LW * *", "2026-11-21", ["2026-11-30T00:00", "2026-12-31T00:00", "2027-01-29T00:00"]),
        ("0 0 L-2W * *", "2026-11-21", ["2026-11-27T00:00", "2026-12-29T00:00", "2027-01-29T00:00"]),
        ("0 0 1,LW * *", "2026-11-21", ["2026-11-30T00:00", "2026-12-01T00:00", "2026-12-31T00:00"]),
        ("0 0 31W * ?", "2026-11-21", ["2026-12-31T00:00", "2027-01-29T00:00", "2027-03-31T00:00"]),
        # If both day fields are set, a match of either field is enough.
        ("0 0 13 * FRI", "2026-11-21", ["2026-11-27T00:00", "2026-12-04T00:00", "2026-12-11T00:00"]),
        ("30 15 10 * * *", "2026-11-21", ["2026-11-21T10:15:30", "2026-11-22T10:15:30", "2026-11-23T10:15:30"]),
        ("*/20 59 23 31 12 *", "2026-11-21", ["2026-12-31T23:59:00", "2026-12-31T23:59:20", "2026-12-31T23:59:40"]),
    ],
)
def test_the_extensions_for_days_of_the_month_are_right(text: str, after: str, expected: list[str]) -> None:
    """Leap years (2100 is not one), last days, nearest and nth weekdays, and combined day fields are correct."""
    expected = [each if each.count(":") > 1 else f"{each}:00" for each in expected]
    assert locals_of(text, UTC_CLOCK, after, 3) == [f"{each}+00:00" for each in expected]


def test_there_are_no_occurrences_after_the_last_year() -> None:
    """There are no occurrences after the year 2199."""
    recurrence = recurrence_of(parse_cron("0 0 1 1 *"), UTC_CLOCK, 0)
    assert recurrence.after(at("2198-06-01")) == at("2199-01-01")
    assert recurrence.after(at("2199-01-01")) is None
    assert recurrence.after(from_datetime(datetime(9999, 12, 31, tzinfo=UTC))) is None
    assert recurrence.before(at("9999-01-01")) == at("2199-01-01")
    assert recurrence.before(0) is None
    assert recurrence.before(1) == 0


def _periodics() -> list[str]:
    if not PERIODICS.exists():
        pytest.skip("the shared data is not beside this checkout")
    rows = [json.loads(line) for line in PERIODICS.read_text().splitlines()]
    return sorted({row["cron"] for row in rows if "cron" in row})


_OFTEN = 12
_HALF_HOURS = {"Australia/Lord_Howe", "America/Caracas"}
NEVER = {"0 0 30 2 *", "0 0 31 2 *"}
"""Kubernetes' own jobs are switched off with these expressions, which are refused; a schedule is paused instead."""


def test_the_expressions_in_kubernetes_ci_have_the_same_times_as_cronsim() -> None:
    """Every expression in Kubernetes' CI has the same times as in cronsim, over a day or, if rare, a month."""
    start = datetime(2026, 11, 21, tzinfo=UTC)
    for text in _periodics():
        if text in NEVER:
            with pytest.raises(FieldInvalid, match="never occurs"):
                parse_cron(text)
            continue
        expected = list(islice(CronSim(text, start), 20))
        recurrence = ZonedRecurrence(parse_cron(text), UTC_CLOCK)
        assert instants(recurrence, from_datetime(start) + 1, from_datetime(expected[-1]) + 1) == expected, text
        end = start + timedelta(days=30)
        if recurrence.pattern.count(0, DAY) < _OFTEN:
            month = list(takewhile(end.__ge__, CronSim(text, start)))
            assert recurrence.count(from_datetime(start), from_datetime(end)) == len(month), text


def test_the_intervals_in_kubernetes_ci_are_parsed_as_rates() -> None:
    """Every interval in Kubernetes' CI, such as `4h30m`, can be read."""
    if not PERIODICS.exists():
        pytest.skip("the shared data is not beside this checkout")
    rows = [json.loads(line) for line in PERIODICS.read_text().splitlines()]
    texts = {row["interval"] for row in rows if "interval" in row}
    assert "4h30m" in texts
    assert all(parse_timing(rate=text) for text in texts)


@settings(deadline=None)
@given(reference.EXPRESSIONS, st.integers(0, 3_000))
def test_croniter_agrees_on_the_days_of_the_kubernetes_dialect(expression: reference.Expression, days: int) -> None:
    """Like Kubernetes, Airflow's cron combines `*/2` with another day field, but only `*/1` means every day there."""
    expression = replace(
        expression, minute=reference.Column("0", frozenset({0})), hour=reference.Column("0", frozenset({0}))
    )
    if "*/1" in {expression.day.text, expression.weekday.text} or re.search(r"\b(\d+)-\1\b", str(expression)):
        # croniter reads `5-5` as every value.
        return
    start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=days)
    try:
        expected = croniter(str(expression), start, max_years_between_matches=12).get_next(datetime)
    except CroniterBadDateError:
        return
    recurrence = ZonedRecurrence(parse_cron(str(expression), Dialect.KUBERNETES), UTC_CLOCK)
    assert to_datetime(recurrence.after(from_datetime(start)) or 0) == expected


@settings(deadline=None)
@given(reference.EXPRESSIONS, st.sampled_from(reference.ZONES), st.sampled_from(DAYS))
def test_cronsim_agrees_where_it_has_the_same_rules(expression: reference.Expression, zone: str, day: str) -> None:
    """As in Debian's cron, a skipped time runs right after the gap, and a repeated time runs the first time only.

    cronsim differs from duetime in four ways, each for a reason. It counts a minute that begins with `*` as a wildcard,
    even at a fixed hour, so that `*/10 1 * * *` runs twelve times in a fold, while duetime's design requires a wildcard
    *hour*. It returns the end of a gap once for each time in the gap. It ends `1/2` in a week at 7, while duetime
    refuses this form. Around a jump of half an hour, it leaves minutes out.
    """
    if zone in _HALF_HOURS or (expression.minute.starred and not expression.hour.starred):
        return
    if expression.hour.starred and not expression.follows_clock:
        # cronsim reads `*/24` as a wildcard.
        return
    # cronsim needs seconds to search a year for rare days, so months are compared minute by minute.
    expression = replace(expression, month=reference.Column("*", frozenset(range(1, 13))))
    start, end = to_datetime(at(day) - DAY), to_datetime(at(day) + 2 * DAY)
    expected: list[datetime] = []
    for moment in islice(CronSim(str(expression), start.astimezone(reference.zone_info(zone))), 5_000):
        if moment.astimezone(UTC) > end:
            break
        if moment.astimezone(UTC) not in expected:
            expected.append(moment.astimezone(UTC))
    recurrence = ZonedRecurrence(parse_cron(str(expression), Dialect.VIXIE), clock(zone, Gap.SHIFT_FORWARD))
    assert instants(recurrence, from_datetime(start) + 1, from_datetime(end) + 1) == expected
