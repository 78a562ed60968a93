"""Timings in plain words."""

from __future__ import annotations

from calendar import isleap
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.cron_description import describe_cron
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.cron_parser import parse_cron
from duetime.domain.schedules.time_zones import wall_of
from duetime.domain.schedules.timing_description import describe_timing
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.times import DAY
from tests.domain.schedules import described

CRONS = {
    "* * * * *": "every minute",
    "*/5 * * * *": "every 5 minutes",
    "2-59/5 * * * *": "every 5 minutes from minute 2",
    "*/25 * * * *": "at minutes 0, 25 and 50 of every hour",
    "1-5,10,20-40,50 * * * *": "at minutes 1 to 5, 10, 20 to 40 and 50 of every hour",
    "*/7 * * * *": "at every 7th minute from minute 0 to 56 of every hour",
    "1,3,5,8,13,21,34 * * * *": "at minutes 1, 3, 5, 8, 13, 21 and 34 of every hour",
    "15 0,2,4,7,9,12,15,17 * * *": "at minute 15 of every hour in hours 0, 2, 4, 7, 9, 12, 15 and 17",
    "*/7 * * * * *": "at every 7th second from second 0 to 56 of every minute",
    "0 2 13 1 5": "at 02:00 on day 13 of the month or on Friday, in January",
    "0 2 1-30/2 * *": "at 02:00 on every second day from day 1 to 29 of the month",
    "* 9-17 * * 1-5": "every minute from 09:00 to 17:59 on Monday to Friday",
    "*/10 8,20 * * *": "every 10 minutes from 08:00 to 08:59 and from 20:00 to 20:59",
    "*/10 */6 * * *": "every 10 minutes in every 6th hour",
    "0 * * * *": "every hour",
    "15 * * * *": "every hour at minute 15",
    "15 */2 * * *": "every 2 hours at minute 15",
    "15 1-23/2 * * *": "every 2 hours from 01:15",
    "15 9-17 * * *": "at minute 15 of every hour from 09:00 to 17:59",
    "30 1 * * *": "at 01:30 every day",
    "0 2,14 * * 0": "at 02:00 and 14:00 on Sunday",
    "0 2 * * 1,3,5": "at 02:00 on Monday, Wednesday and Friday",
    "0 2 * * 6,0": "at 02:00 on Saturday and Sunday",
    "0 2 1 * *": "at 02:00 on day 1 of the month",
    "0 2 1,15 * *": "at 02:00 on days 1 and 15 of the month",
    "0 2 */2 * *": "at 02:00 on every second day from day 1 of the month",
    "0 2 l * *": "at 02:00 on the last day of the month",
    "0 2 l-3 * *": "at 02:00 on the day 3 days before the last day of the month",
    "0 2 lw * *": "at 02:00 on the last working day of the month",
    "0 2 1,l-1w * *": "at 02:00 on day 1 and the working day nearest to the day before the last day of the month",
    "0 2 15w * *": "at 02:00 on the working day nearest to day 15 of the month",
    "0 2 * * fri#2": "at 02:00 on the second Friday of the month",
    "0 2 * * 5l": "at 02:00 on the last Friday of the month",
    "0 2 ? * mon": "at 02:00 on Monday",
    "0 2 13 * 5": "at 02:00 on day 13 of the month, or on Friday",
    "0 2 1 1,7 *": "at 02:00 on day 1 of the month in January and July",
    "30 1 28 3 *": "at 01:30 on day 28 of the month in March",
    "@daily": "at 00:00 every day",
    "*/15 * * * * *": "every 15 seconds",
    "*/15 30 * * * *": "every 15 seconds of minute 30",
    "0,10,25 3 * * * *": "at seconds 0, 10 and 25 of minute 3",
    "0,10,25 3-5 9-17 * * *": "at seconds 0, 10 and 25 of minutes 3 to 5 from 09:00 to 17:59",
    "0,10,25 * * * * *": "at seconds 0, 10 and 25 of every minute",
    "7 * * * * *": "every minute at second 7",
    "7 30 2 * * *": "at 02:30:07 every day",
    "0 0 0 1 1 *": "at 00:00 on day 1 of the month in January",
}
EVENTBRIDGE = {
    "0 10 * * ? *": "at 10:00 every day",
    "0 10 ? * 2-6 *": "at 10:00 on Monday to Friday",
    "0 10 ? * 6L *": "at 10:00 on the last Friday of the month",
    "0 10 1 * ? 2027": "at 10:00 on day 1 of the month in 2027",
    "0 10 1 * ? 2030/21": "at 10:00 on day 1 of the month in every 21st year from year 2030 to 2198",
    "0 10 1 * ? 2030/12": "at 10:00 on day 1 of the month in every 12th year from year 2030 to 2198",
    "0 10 1 * ? 2030/2": "at 10:00 on day 1 of the month in every second year from year 2030 to 2198",
}
TIMINGS: list[tuple[dict[str, Any], str]] = [
    ({"rate": "5 minutes"}, "every 5 minutes"),
    ({"rate": "1 hour"}, "every hour"),
    ({"rate": "1 day"}, "every 24 hours"),
    ({"rate": "4h30m"}, "every 4 hours 30 minutes"),
    ({"interval": "P1M"}, "every month"),
    ({"interval": "P2W"}, "every 2 weeks"),
    ({"interval": "P1Y6M"}, "every 1 year 6 months"),
    ({"interval": "R5/2026-01-31T09:00:00/P1M"}, "every month from 2026-01-31 09:00, 5 times"),
    ({"interval": "R/2026-01-31T09:00:30Z/PT36H"}, "every 36 hours from 2026-01-31 09:00:30 UTC"),
    ({"dates": ["2026-12-24T09:00:00"]}, "at 2026-12-24 09:00"),
    ({"dates": ["2026-12-24T09:00:00-03:30"]}, "at 2026-12-24 09:00 UTC-03:30"),
    (
        {"dates": [f"2026-12-0{day}T09:00:00" for day in range(1, 6)]},
        "at 5 times, from 2026-12-01 09:00 to 2026-12-05 09:00",
    ),
    ({"permanent": 0}, "again as soon as each run has ended"),
    ({"permanent": 60}, "again 1 minute after the end of each run"),
    ({"cron": "at(2026-11-20T13:00:00)", "dialect": Dialect.EVENTBRIDGE}, "at 2026-11-20 13:00"),
]


@pytest.mark.parametrize(("text", "words"), CRONS.items())
def test_a_cron_expression_has_a_description(text: str, words: str) -> None:
    """The description names a cron expression's times, for every extension of the dialect."""
    assert describe_cron(parse_cron(text)) == words


@pytest.mark.parametrize(("text", "words"), EVENTBRIDGE.items())
def test_the_description_of_an_eventbridge_expression_follows_its_numbering(text: str, words: str) -> None:
    """In an EventBridge expression, Sunday is 1, and the last field is a year."""
    assert describe_cron(parse_cron(text, Dialect.EVENTBRIDGE)) == words


@pytest.mark.parametrize(("fields", "words"), TIMINGS)
def test_every_kind_of_timing_has_a_description(fields: dict[str, Any], words: str) -> None:
    """Rates, intervals, dates and permanent schedules have descriptions."""
    assert describe_timing(parse_timing(**fields)) == words


def field(low: int, high: int, *others: str) -> st.SearchStrategy[str]:
    """A random field of a cron expression."""
    value = st.integers(low, high)
    spans = st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.integers(2, high - low).map(lambda step: f"*/{step}")
    stepped = st.tuples(value, value, st.integers(1, high - low)).map(
        lambda drawn: f"{min(drawn[:2])}-{max(drawn[:2])}/{drawn[2]}" if drawn[0] != drawn[1] else f"{drawn[0]}"
    )
    items = st.one_of(value.map(str), spans, *([st.sampled_from(others)] if others else []))
    lists = st.lists(items, min_size=1, max_size=12).map(",".join)
    return st.one_of(st.just("*"), st.just(str(low)), lists, steps, stepped)


MONTHDAYS = field(1, 28, "l", "l-1", "l-3", "lw", "l-2w", "15w", "1w")
WEEKDAYS = st.one_of(field(0, 6), st.sampled_from(["fri#2", "mon#1,tue#5", "6l", "sunl,mon#3"]))
FIELDS = st.tuples(field(0, 59), field(0, 59), field(0, 23), MONTHDAYS, field(1, 12), WEEKDAYS)


@given(FIELDS, st.sampled_from([Dialect.KUBERNETES, Dialect.SPRING]))
def test_the_description_of_any_expression_is_short(fields: tuple[str, ...], dialect: Dialect) -> None:
    """Every expression has a description of at most 600 characters."""
    try:
        words = describe_cron(parse_cron(" ".join(fields), dialect))
    except FieldInvalid:
        return
    assert 5 < len(words) <= 600
    assert "  " not in words


@settings(deadline=None)
@given(FIELDS, st.sampled_from([Dialect.KUBERNETES, Dialect.SPRING]), st.integers(2024, 2051))
@example(("0", "*/7", "*", "*", "*", "*"), Dialect.KUBERNETES, 2026)
@example(("0", "0", "2", "13", "1", "5"), Dialect.KUBERNETES, 2026)
@example(("0", "15", "0,2,4,7,9,12,15,17", "*", "*", "*"), Dialect.KUBERNETES, 2026)
@example(("*/25", "1,3", "*/6", "1-30/2", "*", "fri#2"), Dialect.SPRING, 2028)
@example(("0", "0", "2", "lw,15w,l-2w,l-1", "*", "*"), Dialect.KUBERNETES, 2028)
def test_a_description_names_exactly_the_times_of_its_expression(
    fields: tuple[str, ...], dialect: Dialect, year: int
) -> None:
    """Read as English, each description names exactly the times of its expression."""
    try:
        cron = parse_cron(" ".join(fields), dialect)
    except FieldInvalid:
        return
    words = describe_cron(cron)
    meant = described.read(words)
    assert meant.times == {h * 3600 + m * 60 + s for h in cron.hours for m in cron.minutes for s in cron.seconds}, words
    days = [date(year, 1, 1) + timedelta(days=number) for number in range(365 + isleap(year))]
    run_on = [day for day in days if cron.count(wall_of(day), wall_of(day) + DAY)]
    assert [day for day in days if meant.has_day(day)] == run_on, words
