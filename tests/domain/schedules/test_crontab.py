from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.cron_description import describe_cron
from duetime.domain.schedules.cron_dialects import DIFFERENCES, RULES, Dialect, Difference
from duetime.domain.schedules.cron_parser import parse_cron
from duetime.domain.schedules.recurrences import UTC_CLOCK
from duetime.domain.schedules.timings import parse_timing
from tests.domain.schedules.times import locals_of

SATURDAY, SUNDAY = 5, 6


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("0 30 1 * * *", "30 1 * * *"),
        ("0 0 1 JAN,dec Mon", "0 0 1 1,12 1"),
        ("0 0 * * MON-FRI", "0 0 * * 1-5"),
        ("0 0 * * SAT-SUN", "0 0 * * 0,6"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * nov-feb *", "0 0 * 1,2,11,12 *"),
        ("0 22-2 * * *", "0 0-2,22,23 * * *"),
        ("5-5 * * * *", "5 * * * *"),
        ("17 23-23/24 * * *", "17 23 * * *"),
        ("59/15 * * * *", "59 * * * *"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("0 */24 * * *", "0 0 * * *"),
        ("0 0 * * 1-7/2", "0 0 * * 1,3,5,0"),
        ("0 0 * * 4-7/2", "0 0 * * 4,6"),
        ("\t0  0 *\t* *  ", "0 0 * * *"),
        ("0 0 ? * 1", "0 0 * * 1"),
        ("0 0 * * l5", "0 0 * * 5L"),
        ("0 0 * * FRIL", "0 0 * * 5L"),
        ("0 0 * * fri#2", "0 0 * * 5#2"),
        ("0 0 L-0 * *", "0 0 L * *"),
        ("0 0 l-2w,lw * *", "0 0 LW,L-2W * *"),
    ],
)
def test_different_spellings_of_an_expression_are_equivalent(text: str, same: str) -> None:
    """Nicknames, names, wrapping ranges and other spellings mean the same as their long form."""
    assert parse_cron(text) == parse_cron(same)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "5 fields"),
        ("* * * *", "it has 4"),
        ("* * * * * * * *", "it has 8"),
        ("@reboot", "is not supported"),
        ("@every 4h", "rate: 4h"),
        ("@every_minute", "such as rate: 5 minutes"),
        ("0 0 * * mon/2", "write the whole range"),
        ("@once", "create a task"),
        ("@continuous", "permanent"),
        ("TZ=Asia/Tokyo 0 9 * * *", "write timezone: Asia/Tokyo and cron: 0 9 * * *"),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", "write timezone: Asia/Tokyo and cron: 0 9 * * *"),
        ("TZ=Asia/Tokyo @every 4h", "timezone"),
        ("TZ=Asia/Tokyo", "timezone"),
        ("0 9 * * * Asia/Tokyo", "timezone"),
        ("0 9 * * * America/Argentina/Buenos_Aires", "timezone"),
        ("Mon..Fri *-*-* 10:00:00", "systemd"),
        ("*-*-* 00/2:00", "systemd"),
        ("0 0 12 * * ? 2027", "dialect: quartz"),
        ("15 10 ? * 6L 2026", "dialect: eventbridge"),
        ("@fortnightly", "@daily"),
        ("60 * * * *", "60 in the minute field, where 0 to 59"),
        ("* 24 * * *", "hour field"),
        ("* * 0 * *", "day-of-month field"),
        ("* * * 13 *", "JAN to DEC"),
        ("* * * * 8", "day-of-week field"),
        ("* * * foo *", "'foo' in the month field"),
        ("60 * * * * *", "second field"),
        ("-1 * * * *", "not a value, range or step"),
        ("1.5 * * * *", "not a value, range or step"),
        ("1,,2 * * * *", "empty value"),
        ("*,5 * * * *", "* beside other values"),
        ("*/0 * * * *", "step of 0"),
        ("*/90 * * * *", "use rate"),
        ("0 */25 * * *", "use rate"),
        ("*/9999 * * * *", "use rate"),
        ("0 22-4/2 * * *", "two ranges"),
        ("0 0 * * 7-2", "write 0"),
        ("0 0 * * 7/2", "write the whole range"),
        ("0 0 * * 1/2", "write the whole range"),
        ("0 0 30 2 *", "never occurs"),
        ("0 0 31 2,4,6,9,11 *", "never occurs"),
        ("0 0 31 2 ?", "never occurs"),
        ("0 0 30W 2 ?", "never occurs"),
        ("H * * * *", "write 0, and spread_seconds: 3600"),
        ("H/15 * * * *", "write */15, and spread_seconds: 900"),
        ("0 H * * *", "write 0, and spread_seconds: 86400"),
        ("H(0-29)/10 * * * *", "spread_seconds"),
        ("0 0 H * *", "spread_seconds"),
        ("R * * * *", "jitter_seconds"),
        ("0~30 * * * *", "spread_seconds"),
        ("? * * * *", "? in the minute field"),
        ("0 10 * * ? *", "dialect: eventbridge"),
        ("cron(0 10 * * ? *)", "dialect: eventbridge"),
        ("0 0 * * L", "write SAT for each Saturday, SATL for the last"),
        ("0 0 * * 1,5#2", "two timings"),
        ("0 0 * * 5#6", "not a value, range or step"),
        ("0 0 * * 5#0", "not a value, range or step"),
        ("0 0 L-31 * *", "in no month"),
        ("0 0 L-30 2 *", "never occurs"),
        ("0 0 L+3 * *", "not a value, range or step"),
        ("0 0 *,L-3 * *", "* beside other values"),
        ("0 0 *,15W * *", "* beside other values"),
        ("0 0 32W * *", "day-of-month field"),
        ("٣ * * * *", "plain printable"),
        ("0 0 * * *\n", "plain printable"),
        ("0 0 * * *\x00", "plain printable"),
        ("*" * 10_000, "at most 256"),
        ("* " * 10_000, "at most 256"),
    ],
)
def test_an_error_for_an_invalid_or_ambiguous_expression_explains_the_reason(text: str, reason: str) -> None:
    """The error for an invalid or ambiguous expression names the field, the reason and any alternatives."""
    with pytest.raises(FieldInvalid) as refusal:
        parse_cron(text)
    assert refusal.value.field == "cron"
    assert reason in refusal.value.reason


def test_a_single_value_range_with_a_step_is_one_value() -> None:
    """`23-23/24` means 23:00, as in every cron implementation, but croniter reads it as every hour."""
    assert parse_cron("17 23-23/24 * * *").hours == (23,)
    assert parse_cron("5-5 * * * *").minutes == (5,)


@given(st.text(max_size=300) | st.text("0123456789*/,-?#LWlw@ MONJAN()", max_size=80))
@example("0 0 29 2 1#5")
@example("0 0 29W 2 ?")
@example("*/59,*/58,*/57 0-23 1-31 1-12 0-7")
def test_parsing_any_text_succeeds_or_raises_only_the_parsers_error(text: str) -> None:
    """The parser either reads or refuses any string, and does so quickly."""
    began = time.process_time()
    for dialect in Dialect:
        with contextlib.suppress(FieldInvalid):
            assert parse_timing(cron=text, dialect=dialect)
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # These are examples from the EventBridge user guides, in which weekday 1 is Sunday.
        ("cron(15 12 * * ? *)", ["2026-11-21T12:15", "2026-11-22T12:15", "2026-11-23T12:15"]),
        ("cron(0 18 ? * MON-FRI *)", ["2026-11-23T18:00", "2026-11-24T18:00", "2026-11-25T18:00"]),
        ("cron(0 8 1 * ? *)", ["2026-12-01T08:00", "2027-01-01T08:00", "2027-02-01T08:00"]),
        ("cron(0/10 * ? * MON-FRI *)", ["2026-11-23T00:00", "2026-11-23T00:10", "2026-11-23T00:20"]),
        ("cron(15 10 ? * 6L 2026-2027)", ["2026-11-27T10:15", "2026-12-25T10:15", "2027-01-29T10:15"]),
        ("cron(0 0 ? * 3#2 *)", ["2026-12-08T00:00", "2027-01-12T00:00", "2027-02-09T00:00"]),
        ("cron(0 0 3W * ? *)", ["2026-12-03T00:00", "2027-01-04T00:00", "2027-02-03T00:00"]),
        ("cron(0 0 L * ? *)", ["2026-11-30T00:00", "2026-12-31T00:00", "2027-01-31T00:00"]),
        ("cron(0 0 ? * L *)", ["2026-11-21T00:00", "2026-11-28T00:00", "2026-12-05T00:00"]),
        ("cron(0 0 1 1 ? 2198/1)", ["2198-01-01T00:00", "2199-01-01T00:00"]),
        ("cron(0 0 1 1 ? 2027)", ["2027-01-01T00:00"]),
        ("0 0 ? * SUN *", ["2026-11-22T00:00", "2026-11-29T00:00", "2026-12-06T00:00"]),
        ("0 0 ? * 7-1 *", ["2026-11-21T00:00", "2026-11-22T00:00", "2026-11-28T00:00"]),
        ("at(2026-11-24T13:00:00)", ["2026-11-24T13:00"]),
        ("rate(5 minutes)", ["2026-11-21T00:00", "2026-11-21T00:05", "2026-11-21T00:10"]),
        ("rate(1 hour)", ["2026-11-21T00:00", "2026-11-21T01:00", "2026-11-21T02:00"]),
    ],
)
def test_the_dialect_of_eventbridge_is_supported(text: str, expected: list[str]) -> None:
    """In EventBridge's dialect, six fields, Sunday as 1, `L`, `W`, `#`, rates and single times are supported."""
    timing = parse_timing(cron=text, dialect=Dialect.EVENTBRIDGE)
    assert locals_of(timing, UTC_CLOCK, "2026-11-21", 3) == [f"{each}:00+00:00" for each in expected]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cron(0 10 * * * *)", "in exactly one of day-of-month and day-of-week"),
        ("cron(0 10 ? * ? *)", "in exactly one of day-of-month and day-of-week"),
        ("cron(0 10 * * ?)", "it has 5"),
        ("30 1 * * *", "it has 5"),
        ("cron(0 0 1 1 ? 1969)", "1970 to 2199"),
        ("cron(0 0 1 1 ? 2200)", "1970 to 2199"),
        ("cron(0 0 29 2 ? 2027)", "never occurs"),
        ("cron(0 0 ? * 0 *)", "1 to 7"),
        ("rate(0 minutes)", "at least a second"),
        ("rate(5 fortnights)", "units"),
        ("at(2026-11-24T13:00:00Z)", "offset"),
        ("at(tomorrow)", "date-time"),
        ("cron(0 0 1 1 ? *", "minute field"),
    ],
)
def test_an_expression_invalid_in_eventbridge_is_rejected_with_the_violated_rule(text: str, reason: str) -> None:
    """The error names the violated rule of EventBridge's dialect."""
    with pytest.raises(FieldInvalid, match="cron") as refusal:
        parse_timing(cron=text, dialect=Dialect.EVENTBRIDGE)
    assert reason in refusal.value.reason


def test_a_weekday_number_differs_between_eventbridge_and_cron() -> None:
    """The number 7 is Saturday in EventBridge and Sunday in cron."""
    assert parse_cron("0 0 ? * 7 *", Dialect.EVENTBRIDGE).weekdays == (SATURDAY,)
    assert parse_cron("0 0 ? * 7").weekdays == (SUNDAY,)


BOTH, EITHER = "Vixie cron (Debian, cronie)", "Kubernetes, Airflow and GitLab"
SUNDAY_IS_ONE, SUNDAY_IS_ZERO = "in Quartz, where Sunday is 1", "in Spring and crons, where it is 0"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 */2 * 1-5", ("*/2 in the day-of-month", BOTH, EITHER, "dialect: vixie", "1-31/2")),
        ("0 0 13 * */5", ("*/5 in the day-of-week", BOTH, EITHER, "dialect: vixie", "0-6/5")),
        ("0 0 1,*/2 * 1", ("*/2 in the day-of-month", BOTH, EITHER)),
        ("0 0 */2 * */3", ("*/2 in the day-of-month", BOTH, EITHER)),
        ("0 0 */2 * FRI#1", ("*/2 in the day-of-month", BOTH, EITHER)),
        ("0 0 */1 * 5", ("*/1 in the day-of-month", "as *", "as every day", "write *")),
        ("0 0 13 * */1", ("*/1 in the day-of-week", "as *", "as every day", "write *")),
        ("0 0 0 13 * 5", ("dialect: spring", "dialect: kubernetes", "match both", "match either")),
        ("0 0 0 */2 * 5", ("dialect: spring", "dialect: kubernetes", "match both", "match either")),
        ("0 0 12 ? * 2", ("on Monday", SUNDAY_IS_ONE, "on Tuesday", SUNDAY_IS_ZERO, "dialect: quartz")),
        ("0 0 12 ? * 2-6", ("Monday to Friday", SUNDAY_IS_ONE, "Tuesday to Saturday", SUNDAY_IS_ZERO)),
        ("0 15 10 ? * 6L", ("the last Friday", SUNDAY_IS_ONE, "the last Saturday", SUNDAY_IS_ZERO)),
        ("0 15 10 ? * 6#3", ("the third Friday", SUNDAY_IS_ONE, "the third Saturday", SUNDAY_IS_ZERO)),
        ("15 10 ? * 6L", ("the last Friday", SUNDAY_IS_ONE, "the last Saturday", SUNDAY_IS_ZERO)),
        ("0 9 * * 1 0", ("every hour at minute 9 on Sunday in January", "at 09:00 on Monday", "croniter")),
    ],
)
def test_an_ambiguous_expression_is_rejected_with_both_interpretations(text: str, words: tuple[str, ...]) -> None:
    """An ambiguous expression is refused, and the error names both interpretations."""
    with pytest.raises(FieldInvalid) as refusal:
        parse_cron(text)
    assert [each for each in words if each not in refusal.value.reason] == []


@pytest.mark.parametrize(
    "text",
    [
        "0 0 ? * MON-FRI", "0 0 12 ? * MON", "0 0 12 ? * FRIL", "0 0 12 ? * */2", "0 0 12 ? * 1-7", "0 0 12 ? * 0",
        "0 0 12 * * 2", "0 0 12 1 * ?", "0 0 ? * 2", "0 0 * * 6L", "0 0 1-31/2 * 1-5", "0 0 13 * 5", "0 0 */2 * *",
        "0 0 */2 * ?", "0 0 * * */2", "0 9 * * jan 0", "0 9 0-23 * 1 0", "*/5 * * * * *", "0 0 * * * 0",
    ],
)  # fmt: skip
def test_an_expression_with_the_same_times_in_all_crons_is_accepted(text: str) -> None:
    """Weekday names, wildcards and unambiguous numbers are accepted."""
    assert parse_cron(text)


@pytest.mark.parametrize(
    ("dialect", "text", "words"),
    [
        (
            "vixie",
            "0 0 */2 * 1-5",
            "at 00:00 on every second day from day 1 of the month if that day is Monday to Friday",
        ),
        ("vixie", "0 0 1,*/2 * 6", "at 00:00 on every second day from day 1 of the month, or on Saturday"),
        ("vixie", "0 0 1-7 * */7", "at 00:00 on days 1 to 7 of the month if that day is Sunday"),
        ("vixie", "@daily", "at 00:00 every day"),
        ("kubernetes", "0 0 */2 * 1-5", "at 00:00 on every second day from day 1 of the month, or on Monday to Friday"),
        ("kubernetes", "0 0 */1 * 5", "at 00:00 on Friday"),
        ("kubernetes", "0 0 0 13 * 5", "at 00:00 on day 13 of the month, or on Friday"),
        ("quartz", "0 0 12 ? * 2", "at 12:00 on Monday"),
        ("quartz", "0 15 10 ? * 6L", "at 10:15 on the last Friday of the month"),
        ("quartz", "0 15 10 ? * L", "at 10:15 on Saturday"),
        ("quartz", "0 0 12 ? * 2/2 2027", "at 12:00 on Monday, Wednesday and Friday in 2027"),
        ("quartz", "0 0 12 L-2 * ?", "at 12:00 on the day 2 days before the last day of the month"),
        ("spring", "0 0 0 13 * 5", "at 00:00 on day 13 of the month if that day is Friday"),
        ("spring", "0 0 12 ? * 6L", "at 12:00 on the last Saturday of the month"),
        ("spring", "@hourly", "every hour"),
    ],
)
def test_an_expression_keeps_its_meaning_in_its_original_dialect(dialect: str, text: str, words: str) -> None:
    """In the dialect of its original program, an expression keeps its meaning."""
    assert describe_cron(parse_cron(text, Dialect(dialect))) == words


@pytest.mark.parametrize(
    ("dialect", "text", "reason"),
    [
        ("vixie", "0 0 0 * * *", "5 fields, as in a crontab; it has 6"),
        ("spring", "0 0 * * *", "Spring's 6 fields"),
        ("quartz", "0 0 * * ?", "Quartz's 6 fields"),
        ("quartz", "0 0 12 * * *", "? in exactly one of day-of-month and day-of-week"),
        ("quartz", "0 0 12 ? * 0", "1 to 7"),
        ("quartz", "@daily", "has no macros"),
        ("kubernetes", "TZ=Asia/Tokyo 0 9 * * *", "timezone"),
        ("kubernetes", "@every 4h", "rate: 4h"),
    ],
)
def test_a_form_that_a_dialect_lacks_is_rejected_with_the_rule(dialect: str, text: str, reason: str) -> None:
    """If a dialect lacks a form, the error names the dialect's rule."""
    with pytest.raises(FieldInvalid) as refusal:
        parse_cron(text, Dialect(dialect))
    assert reason in refusal.value.reason


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda each: each.text)
def test_the_table_of_dialect_differences_agrees_with_the_parser(difference: Difference) -> None:
    """The parser rejects exactly the expressions that the table marks, and each listed dialect accepts them."""
    try:
        parse_cron(difference.text)
    except FieldInvalid:
        assert difference.rejected
    else:
        assert not difference.rejected
    for dialect in difference.dialects:
        assert parse_cron(difference.text, dialect)


def test_every_dialect_has_rules() -> None:
    """Every dialect that the API offers has rules."""
    assert set(RULES) == set(Dialect)
