from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.calendars import Calendar, CalendarMode, Span, Window, covering, next_working_moment
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.times import DAY, HOUR, MINUTE, Millis
from tests.domain.schedules.times import at

LONDON = zone_named("Europe/London")
HOLIDAYS = Calendar(
    "uk-holidays", zone=LONDON, dates={date(2026, 12, 25): "Christmas Day", date(2027, 6, 7): "a made-up day"}
)
WEEKENDS = Calendar("weekends", zone=LONDON, weekdays=frozenset({5, 6}), except_dates=frozenset({date(2026, 11, 21)}))
OFFICE = Calendar(
    "office", CalendarMode.INCLUDES, LONDON, windows=(Window(9 * HOUR, 17 * HOUR, frozenset(range(5)), "office hours"),)
)
NIGHTS = Calendar("nights", zone=LONDON, windows=(Window(22 * HOUR, 6 * HOUR, frozenset({4})),))
FREEZE = Calendar("freeze", spans=(Span(at("2026-12-20T10:00"), at("2026-12-22T10:00"), "release"),))


@pytest.mark.parametrize(
    ("calendar", "moment", "reason"),
    [
        (HOLIDAYS, "2026-12-25T00:00", "uk-holidays: 2026-12-25 (Christmas Day)"),
        (HOLIDAYS, "2026-12-24T23:59", None),
        (HOLIDAYS, "2026-12-26T00:00", None),
        # These times are in London's local time, an hour ahead of UTC in June.
        (HOLIDAYS, "2027-06-06T23:00", "uk-holidays: 2027-06-07 (a made-up day)"),
        (HOLIDAYS, "2027-06-07T23:00", None),
        (WEEKENDS, "2026-11-22T12:00", "weekends: Sunday"),
        (WEEKENDS, "2026-11-21T12:00", None),
        (OFFICE, "2026-11-23T08:59", "office: outside its times"),
        (OFFICE, "2026-11-23T09:00", None),
        (OFFICE, "2026-11-23T17:00", "office: outside its times"),
        (OFFICE, "2026-11-22T12:00", "office: outside its times"),
        (NIGHTS, "2026-11-20T22:00", "nights: 22:00 to 06:00"),
        (NIGHTS, "2026-11-21T05:59", "nights: 22:00 to 06:00"),
        (NIGHTS, "2026-11-21T06:00", None),
        (NIGHTS, "2026-11-21T22:00", None),
        (FREEZE, "2026-12-21T00:00", "freeze: release"),
        (FREEZE, "2026-12-22T10:00", None),
    ],
)
def test_a_calendar_covers_days_weekdays_windows_and_spans(calendar: Calendar, moment: str, reason: str | None) -> None:
    """A calendar covers days, weekdays, windows (also over midnight) and spans, by its own clock, with a reason."""
    span = calendar.covering(at(moment))
    assert (None if span is None else span.reason) == reason


def test_the_first_of_overlapping_windows_gives_the_reason() -> None:
    """Of overlapping windows, the window that began first gives the reason for as long as it lasts."""
    calendar = Calendar("c", windows=(Window(11 * HOUR, 14 * HOUR, label="meeting"), Window(9 * HOUR, 12 * HOUR)))
    found = [calendar.covering(at(f"2026-11-23T{time}")) for time in ("08:59", "11:30", "12:00", "13:59", "14:00")]
    assert [each and (each.reason, each.end) for each in found] == [
        None,
        ("c: 09:00 to 12:00", at("2026-11-23T12:00")),
        ("c: meeting", at("2026-11-23T14:00")),
        ("c: meeting", at("2026-11-23T14:00")),
        None,
    ]


@pytest.mark.parametrize(
    ("calendars", "moment", "expected"),
    [
        ((OFFICE,), "2026-11-20T17:30", "2026-11-23T09:00"),
        ((OFFICE, HOLIDAYS), "2026-12-24T18:00", "2026-12-28T09:00"),
        ((WEEKENDS, FREEZE), "2026-12-19T12:00", "2026-12-22T10:00"),
        ((NIGHTS,), "2026-11-20T23:00", "2026-11-21T06:00"),
        ((), "2026-11-20T23:00", "2026-11-20T23:00"),
    ],
)
def test_the_next_working_moment_is_allowed_by_every_calendar(
    calendars: tuple[Calendar, ...], moment: str, expected: str
) -> None:
    """The next working moment is the first moment at which every calendar allows work."""
    assert next_working_moment(calendars, at(moment)) == at(expected)


def test_windows_may_be_given_in_any_order() -> None:
    """If the afternoon's window comes before the morning's, both are working hours, and lunch is not."""
    windows = (Window(13 * HOUR, 17 * HOUR), Window(9 * HOUR, 12 * HOUR))
    calendar = Calendar("hours", CalendarMode.INCLUDES, windows=windows)
    closed = [hour for hour in range(24) if calendar.covering(at("2026-11-23") + hour * HOUR)]
    assert closed == [*range(9), 12, *range(17, 24)]


def test_the_search_for_a_working_moment_ends_after_two_years() -> None:
    """If a calendar allows no work within two years, the search ends without a result."""
    nothing = Calendar("nothing", CalendarMode.INCLUDES)
    long_ago = Calendar("past", CalendarMode.INCLUDES, dates={date(2020, 1, 1): ""})
    assert next_working_moment((nothing,), at("2026-11-21")) is None
    assert next_working_moment((long_ago,), at("2026-11-21")) is None
    assert next_working_moment((Calendar("all", weekdays=frozenset(range(7))),), at("2199-12-31")) is None


def test_a_window_with_an_edge_in_a_gap_or_fold_is_adjusted() -> None:
    """A window that begins in a gap starts after the gap; in a fold, it lasts from the first start to the last end."""
    calendar = Calendar("w", zone=LONDON, windows=(Window(HOUR + 30 * MINUTE, 3 * HOUR),))
    spring = calendar.covering(at("2027-03-28T01:30"))
    assert spring is not None
    assert (spring.start, spring.end) == (at("2027-03-28T01:00"), at("2027-03-28T02:00"))
    early = Calendar("w", zone=LONDON, windows=(Window(0, HOUR + 30 * MINUTE),))
    autumn = early.covering(at("2027-10-31T00:45"))
    assert autumn is not None
    assert (autumn.start, autumn.end) == (at("2027-10-30T23:00"), at("2027-10-31T01:30"))


def test_a_date_that_a_zone_skipped_covers_no_time() -> None:
    """In Apia, 2011-12-30 did not exist, so a calendar with that date covers no time there."""
    calendar = Calendar("c", zone=zone_named("Pacific/Apia"), dates={date(2011, 12, 30): ""})
    assert not any(calendar.covering(at("2011-12-29") + hour * HOUR) for hour in range(72))


spans = st.builds(
    lambda start, length: Span(start, start + length, "x"), st.integers(0, 10 * DAY), st.integers(1, 3 * DAY)
)


@settings(deadline=None)
@given(
    st.lists(spans, max_size=5),
    st.lists(
        st.builds(Window, st.integers(0, DAY - 1), st.integers(0, DAY)).filter(lambda each: each.start != each.end),
        max_size=4,
    ),
    st.sampled_from(CalendarMode),
    st.integers(0, 12 * DAY),
)
def test_the_next_working_moment_is_the_first_uncovered_instant(
    some: list[Span], windows: list[Window], kind: CalendarMode, moment: Millis
) -> None:
    """Every instant of a covering span is covered, and the next working moment is the first uncovered instant."""
    calendar = Calendar("c", kind, spans=tuple(some), windows=tuple(windows))
    span = calendar.covering(moment)
    if span is not None:
        assert span.start <= moment < span.end
        assert calendar.covering(span.start)
        assert calendar.covering(span.end - 1)
    found = next_working_moment((calendar,), moment)
    if found is None:
        assert kind is CalendarMode.INCLUDES or windows
        return
    assert found >= moment
    assert covering((calendar,), found) is None
    assert found == moment or calendar.covering(found - 1)
    inside = any(each.start <= found < each.end for each in some) or any(
        each.start <= found % DAY < each.end
        if each.start < each.end
        else found % DAY >= each.start or found % DAY < each.end
        for each in windows
    )
    assert inside == (kind is CalendarMode.INCLUDES)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"name": ""}, "name"),
        ({"spans": tuple(Span(n, n + 1) for n in range(5_001))}, "dates"),
        ({"windows": (Window(0, 0),)}, "windows[0]"),
        ({"windows": (Window(0, 1), Window(0, DAY + 1))}, "windows[1]"),
        ({"windows": (Window(0, 1, frozenset({7})),)}, "windows[0].weekdays"),
        ({"windows": (Window(0, 1),) * 65}, "windows"),
    ],
)
def test_an_error_for_an_invalid_calendar_names_the_field(arguments: dict[str, object], field: str) -> None:
    """Too many entries, empty windows and invalid days are refused, and the error names the field."""
    with pytest.raises(FieldInvalid) as refusal:
        Calendar(**({"name": "c"} | arguments))  # type: ignore[arg-type]  # each case has different types
    assert refusal.value.field == field
