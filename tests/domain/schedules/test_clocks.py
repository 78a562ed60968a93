"""Schedules follow their rules at clock changes, even in zones with unusual clock changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.occurrences import following
from duetime.domain.schedules.time_zones import Fold, Gap, tzdata_version, zone_named
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.times import DAY, HOUR, MINUTE, Millis, to_datetime
from tests.domain.schedules.reference import zone_info
from tests.domain.schedules.times import at, clock, locals_of, scheduled

GAPS = [
    # zone, expression, from, result when skipped, result when shifted
    ("America/New_York", "30 2 * * *", "2027-03-13T12:00", "2027-03-15T02:30:00-04:00", "2027-03-14T03:00:00-04:00"),
    ("America/New_York", "*/20 2 * * *", "2027-03-14", "2027-03-15T02:00:00-04:00", "2027-03-14T03:00:00-04:00"),
    ("Europe/London", "30 1 * * *", "2027-03-27T12:00", "2027-03-29T01:30:00+01:00", "2027-03-28T02:00:00+01:00"),
    ("Europe/Berlin", "0 2 * * *", "2027-03-27T12:00", "2027-03-29T02:00:00+02:00", "2027-03-28T03:00:00+02:00"),
    # The clock skips half an hour, from 02:00 to 02:30.
    ("Australia/Lord_Howe", "15 2 * * *", "2027-10-02T00:00", "2027-10-04T02:15:00+11:00", "2027-10-03T02:30:00+11:00"),
    # The clock skipped midnight.
    ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", "2018-11-05T00:00:00-02:00", "2018-11-04T01:00:00-02:00"),
    # The clock skipped a complete day.
    ("Pacific/Apia", "0 9 * * *", "2011-12-29T20:00", "2011-12-31T09:00:00+14:00", "2011-12-31T00:00:00+14:00"),
    # At the end of Ramadan, the clock goes from UTC back to the standard time, UTC+1.
    ("Africa/Casablanca", "30 2 * * *", "2025-04-05T12:00", "2025-04-07T02:30:00+01:00", "2025-04-06T03:00:00+01:00"),
]


@pytest.mark.parametrize(("zone", "text", "after", "skipped", "shifted"), GAPS)
def test_a_time_in_a_clock_gap_follows_dst_gap(zone: str, text: str, after: str, skipped: str, shifted: str) -> None:
    """A time that the clock jumps over is skipped or occurs right after the gap, depending on `dst_gap`."""
    assert locals_of(text, clock(zone), after, 1) == [skipped]
    assert locals_of(text, clock(zone, Gap.SHIFT_FORWARD), after, 2)[0] == shifted
    assert locals_of(text, clock(zone, Gap.SHIFT_FORWARD), after, 2)[1] > shifted


FOLDS = [
    ("America/New_York", "30 1 * * *", "2027-11-07T00:00", "2027-11-07T01:30:00-04:00", "2027-11-07T01:30:00-05:00"),
    ("Europe/London", "30 1 * * *", "2027-10-30T12:00", "2027-10-31T01:30:00+01:00", "2027-10-31T01:30:00+00:00"),
    ("Europe/Berlin", "0 2 * * *", "2027-10-30T12:00", "2027-10-31T02:00:00+02:00", "2027-10-31T02:00:00+01:00"),
    ("Australia/Lord_Howe", "45 1 * * *", "2027-04-03T00:00", "2027-04-04T01:45:00+11:00", "2027-04-04T01:45:00+10:30"),
    ("America/Sao_Paulo", "30 23 * * 6", "2018-02-17T12:00", "2018-02-17T23:30:00-02:00", "2018-02-17T23:30:00-03:00"),
    ("Africa/Casablanca", "30 2 * * *", "2025-02-22T12:00", "2025-02-23T02:30:00+01:00", "2025-02-23T02:30:00+00:00"),
]


@pytest.mark.parametrize(("zone", "text", "after", "first", "second"), FOLDS)
def test_a_repeated_clock_time_follows_dst_fold(zone: str, text: str, after: str, first: str, second: str) -> None:
    """A time that the clock shows twice occurs only the first time or both times, depending on `dst_fold`."""
    once = locals_of(text, clock(zone), after, 2)
    assert once[0] == first
    assert once[1][:10] > first[:10]
    assert locals_of(text, clock(zone, fold=Fold.BOTH), after, 2) == [first, second]


def test_a_time_in_a_zone_without_summer_time_occurs_every_day() -> None:
    """In Kolkata, 02:30 occurs every day, half an hour off the full hours of UTC."""
    found = following(scheduled("30 2 * * *", clock("Asia/Kolkata")), at("2027-01-01"), 365)
    assert all(each.runs and not each.note and each.key.endswith("T02:30:00+05:30") for each in found)
    assert found[-1].at - found[0].at == 364 * DAY


@pytest.mark.parametrize("gap", Gap)
@pytest.mark.parametrize("fold", Fold)
def test_a_wildcard_hour_follows_elapsed_time(gap: Gap, fold: Fold) -> None:
    """As in Vixie cron, every half hour means elapsed time, whatever the rule for fixed times."""
    where = clock("Europe/London", gap, fold)
    for day in ("2027-03-28", "2027-10-31"):
        found = following(scheduled("*/30 * * * *", where), at(day) - HOUR, 10)
        assert [each.at for each in found] == [at(day) - HOUR + n * 30 * MINUTE for n in range(1, 11)]
        assert all(each.runs for each in found)


def test_a_wildcard_hour_with_a_step_follows_elapsed_time() -> None:
    """`*/2` is a wildcard, so a lost hour is not made up for, and a repeated hour runs twice."""
    where = clock("America/New_York", Gap.SHIFT_FORWARD, Fold.FIRST)
    assert locals_of("0 */2 * * *", where, "2027-03-14T05:00", 2) == [
        "2027-03-14T00:00:00-05:00",
        "2027-03-14T04:00:00-04:00",
    ]
    assert locals_of("0 */1 * * *", where, "2027-11-07T05:00", 3) == [
        "2027-11-07T01:00:00-04:00",
        "2027-11-07T01:00:00-05:00",
        "2027-11-07T02:00:00-05:00",
    ]


MIDNIGHT_GAPS = [("Asia/Beirut", "2027-03-27"), ("Africa/Cairo", "2027-04-29"), ("America/Santiago", "2027-09-04")]


@pytest.mark.parametrize(("zone", "day"), MIDNIGHT_GAPS)
@pytest.mark.parametrize("text", ["0 0 * * *", "0 */24 * * *", "0 */24 * * 0-6", "@daily"])
def test_a_skipped_midnight_is_reported_or_runs_after_the_gap(zone: str, day: str, text: str) -> None:
    """`*/24` is a fixed hour that runs after the gap or is skipped with a note, depending on `dst_gap`."""
    after = at(f"{day}T12:00")
    skipped = following(scheduled(text, clock(zone)), after, 2)
    assert [(each.runs, each.note[:34], each.note[-7:]) for each in skipped] == [
        (False, f"00:00 does not exist on {skipped[0].key[:10]}", "skipped"),
        (True, "", ""),
    ]
    assert skipped[1].at - skipped[0].at == 23 * HOUR
    shifted = following(scheduled(text, clock(zone, Gap.SHIFT_FORWARD)), after, 1)
    assert (shifted[0].runs, shifted[0].key[11:16]) == (True, "01:00")


@pytest.mark.parametrize(
    ("zone", "text", "after", "note"),
    [
        ("America/New_York", "0 */2 * * *", "2027-03-14T05:30", "02:00 does not exist on 2027-03-14"),
        ("Asia/Beirut", "0 */12 * * *", "2027-03-27T12:00", "00:00 does not exist on 2027-03-28"),
        ("Australia/Lord_Howe", "0 * * * *", "2027-10-02T14:30", "02:00 does not exist on 2027-10-03"),
        ("Pacific/Apia", "0 * * * fri", "2011-12-29T12:00", "00:00, 01:00, 02:00 and 21 more do not exist"),
    ],
)
def test_the_preview_shows_times_that_a_wildcard_hour_loses_in_a_gap(
    zone: str, text: str, after: str, note: str
) -> None:
    """Times that a wildcard hour loses in a gap are not made up for, but the preview shows them with the reason."""
    for gap in Gap:
        lost = [each for each in following(scheduled(text, clock(zone, gap)), at(after), 3) if not each.runs]
        assert [each.note.startswith(note) for each in lost] == [True]
        assert lost[0].note.endswith(": skipped, because the hour is a wildcard")


@pytest.mark.parametrize(
    ("zone", "text", "after"),
    [
        ("America/New_York", "0 * * * *", "2027-03-14T05:30"),
        ("America/New_York", "*/7 * * * * *", "2027-03-14T06:59:50"),
        ("Australia/Lord_Howe", "*/10 * * * *", "2027-10-02T14:55"),
        ("Pacific/Apia", "30 * * * *", "2011-12-30T08:45"),
    ],
)
def test_no_loss_is_reported_if_each_lost_time_has_an_equivalent(zone: str, text: str, after: str) -> None:
    """If each lost time has an equivalent after the gap, the runs keep their distance, and no loss is reported."""
    found = following(scheduled(text, clock(zone)), at(after), 6)
    assert all(each.runs and not each.note for each in found)
    assert len({later.at - each.at for each, later in pairwise(found)} - {4000}) == 1


def test_all_hours_written_out_are_fixed_hours() -> None:
    """`0-23` is a list of fixed hours; each occurs once, and the repeated hour only the first time."""
    found = locals_of("0 0-23 * * *", clock("America/New_York"), "2027-11-07T05:00", 2)
    assert found == ["2027-11-07T01:00:00-04:00", "2027-11-07T02:00:00-05:00"]


def test_minute_steps_in_a_fixed_hour_do_not_repeat_in_a_fold() -> None:
    """`*/30 1` runs twice, and not four times, in the night in which 01:00 to 02:00 is repeated."""
    found = locals_of("*/30 1 * * *", clock("Europe/London"), "2027-10-30T12:00", 3)
    assert found == ["2027-10-31T01:00:00+01:00", "2027-10-31T01:30:00+01:00", "2027-11-01T01:00:00+00:00"]


def test_a_rate_ignores_clock_changes_and_a_calendar_interval_follows_them() -> None:
    """A rate of one day is always 24 hours, while an interval of a calendar day keeps its time of day."""
    where = clock("Europe/London")
    rate = parse_timing(interval="R/2027-03-27T09:00:00/PT24H")
    assert locals_of(rate, where, "2027-03-27T09:00", 2)[1] == "2027-03-28T10:00:00+01:00"
    day = parse_timing(interval="R/2027-03-27T09:00:00/P1D")
    assert locals_of(day, where, "2027-03-27T09:00", 2)[1] == "2027-03-28T09:00:00+01:00"


def test_the_preview_explains_skipped_and_repeated_times() -> None:
    """The preview gives the reason for a skipped time, and says which of two repeated times an occurrence is."""
    spring = following(scheduled("30 1 * * *", clock("Europe/London")), at("2027-03-27T12:00"), 2)
    assert [(each.runs, each.note) for each in spring] == [
        (False, "01:30 does not exist on 2027-03-28 in Europe/London: skipped"),
        (True, ""),
    ]
    shifted = following(scheduled("30 1 * * *", clock("Europe/London", Gap.SHIFT_FORWARD)), at("2027-03-27T12:00"), 1)
    assert shifted[0].note == "01:30 does not exist on 2027-03-28 in Europe/London: runs at 02:00 instead"
    autumn = following(scheduled("30 1 * * *", clock("Europe/London", fold=Fold.BOTH)), at("2027-10-30T12:00"), 2)
    assert [each.note for each in autumn] == [
        "01:30 comes twice on 2027-10-31 in Europe/London, this is the first: runs both times",
        "01:30 comes twice on 2027-10-31 in Europe/London, this is the second: runs both times",
    ]
    many = following(scheduled("*/10 1 * * *", clock("Europe/London")), at("2027-03-27T12:00"), 1)
    assert many[0].note == "01:00, 01:10, 01:20 and 3 more do not exist on 2027-03-28 in Europe/London: skipped"


def test_a_skip_at_the_instant_of_another_run_shares_its_occurrence() -> None:
    """If 01:00 is skipped at the instant of the 02:00 run, a single occurrence explains both times."""
    found = following(scheduled("0 1,2 * * *", clock("Europe/London")), at("2027-03-27T12:00"), 2)
    assert (found[0].key, found[0].runs) == ("2027-03-28T02:00:00+01:00", True)
    assert found[0].note == "01:00 does not exist on 2027-03-28 in Europe/London: skipped"


def test_listed_local_times_follow_the_same_clock_rules() -> None:
    """Listed local times follow the rules for gaps and folds, while times with an offset are unambiguous."""
    dates = ["2027-03-28T01:30:00", "2027-10-31T01:30:00", "2027-10-31T01:30:00Z"]
    timing = parse_timing(dates=dates)
    found = following(scheduled(timing, clock("Europe/London")), 0, 9)
    assert [(each.key, each.runs) for each in found] == [
        ("2027-03-28T01:30:00+00:00", False),
        ("2027-10-31T01:30:00+01:00", True),
        ("2027-10-31T01:30:00+00:00", True),
    ]
    assert "skipped" in found[0].note
    assert "first time only" in found[1].note
    generous = following(scheduled(timing, clock("Europe/London", Gap.SHIFT_FORWARD, Fold.BOTH)), 0, 9)
    assert [each.key for each in generous if each.runs] == [
        "2027-03-28T02:00:00+01:00",
        "2027-10-31T01:30:00+01:00",
        "2027-10-31T01:30:00+00:00",
    ]


def test_all_listed_times_in_one_clock_gap_are_explained() -> None:
    """If several listed times are in one clock gap, one occurrence explains all of them, as for a cron expression."""
    minutes = ("10", "05", "30", "45")
    timing = parse_timing(dates=[f"2027-03-28T01:{minute}:00" for minute in minutes])
    (skipped,) = following(scheduled(timing, clock("Europe/London")), 0, 9)
    assert (skipped.key, skipped.runs) == ("2027-03-28T01:05:00+00:00", False)
    words = "01:05, 01:10, 01:30 and 1 more do not exist on 2027-03-28 in Europe/London"
    assert skipped.note == f"{words}: skipped"
    (shifted,) = following(scheduled(timing, clock("Europe/London", Gap.SHIFT_FORWARD)), 0, 9)
    assert shifted.note == f"{words}: runs at 02:00 instead"


@settings(deadline=None)
@given(
    st.sampled_from(["Europe/London", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Asia/Gaza", "UTC"]),
    st.integers(0, at("2150-01-01")),
)
def test_the_pieces_of_a_zone_agree_with_zoneinfo(name: str, instant: Millis) -> None:
    """The offset is constant within a piece of a zone, and at a piece's edges the offset or the year changes."""
    zone, info = zone_named(name), zone_info(name)
    period = zone.period_at(instant)
    assert period.start <= instant < period.end
    for each in (period.start, instant, period.end - 1):
        assert to_datetime(each + period.offset).replace(tzinfo=None) == to_datetime(each).astimezone(info).replace(
            tzinfo=None
        )
    assert next(zone.periods_until(instant)) == period
    assert to_datetime(period.start - 1 + period.before).replace(tzinfo=None) == to_datetime(
        period.start - 1
    ).astimezone(info).replace(tzinfo=None)


@settings(deadline=None)
@given(
    st.sampled_from(["Europe/London", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Asia/Gaza", "UTC"]),
    st.integers(0, at("2040-01-01") // MINUTE).map(lambda minutes: minutes * MINUTE),
    st.lists(st.integers(0, 2 * DAY // MINUTE), max_size=9),
)
def test_each_local_time_in_an_even_stretch_is_exactly_one_instant(name: str, wall: Millis, minutes: list[int]) -> None:
    """In a stretch of local time with a single offset, each local time is exactly one instant."""
    zone = zone_named(name)
    offset = zone.even_offset(wall, wall + 2 * DAY)
    for minute in minutes if offset is not None else ():
        assert zone.instants_of(wall + minute * MINUTE) == (wall + minute * MINUTE - (offset or 0),)


def test_most_days_of_a_year_are_even() -> None:
    """In London, 340 to 360 days of a year have a single offset."""
    zone, day = zone_named("Europe/London"), at("2027-01-01")
    even = [zone.even_offset(day + n * DAY, day + (n + 1) * DAY) is not None for n in range(365)]
    assert 340 < sum(even) < 360


@pytest.mark.parametrize(
    "name",
    [
        "", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe/../Europe/London", "Europe/London/", "Europe",
        "EST5EDT,M3.2.0,M11.1.0", "<+03>-3", "+01:00", "posixrules", "zone.tab", "tzdata.zi", "Factory", "localtime",
        "Europe/London\n", "Europe/London\x00", "Z" * 10_000, "éurope/London", "__init__.py",
    ],
)  # fmt: skip
def test_an_invalid_zone_name_is_rejected(name: str) -> None:
    """Paths, POSIX rules, offsets and other files are not zone names."""
    with pytest.raises(FieldInvalid) as refusal:
        zone_named(name)
    assert refusal.value.field == "timezone"


def test_the_error_for_a_zone_in_the_wrong_case_suggests_the_spelling() -> None:
    """The error for a zone name in the wrong case suggests the right spelling."""
    with pytest.raises(FieldInvalid, match="did you mean Europe/London"):
        zone_named("europe/london")


def test_the_version_of_the_time_zone_rules_is_reported() -> None:
    """The version of the time zone rules has the form `2026a`."""
    version = tzdata_version()
    assert version[:4].isdigit()
    assert version[4:].isalpha()
