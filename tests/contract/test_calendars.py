"""Tests which bodies for calendars are accepted, and that a response can be sent back as a request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.contract.http.operation import read_query
from duetime.contract.http.problems import faults_of, kind_of
from duetime.contract.http.request_json import read
from duetime.contract.schedules.calendars import (
    WEEKDAYS,
    CalendarListQuery,
    ICalendarQuery,
    calendar_of,
    calendar_response,
    new_calendar_name,
)
from duetime.domain.errors import RequestError
from duetime.domain.schedules.calendars import Calendar, CalendarMode, Span, Window
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.times import DAY, HOUR, SECOND
from tests.clocks import NOW
from tests.contract.properties import unhurried

WINDOW = {"start": "22:00", "end": "06:00"}
LATER = "2026-11-22T00:00:00Z"
EARLIER = "2026-11-21T00:00:00Z"
BAD_CALENDARS: list[tuple[object, str, str]] = [
    ([], "body", "object"),
    ({}, "dates", "would exclude nothing"),
    ({"mode": "includes"}, "dates", "nothing would ever run"),
    ({"dates": ["2026-12-25"], "except_dates": ["2026-12-25"]}, "dates", "would exclude nothing"),
    ({"weekdays": ["sun"], "known_until": "soon"}, "known_until", "RFC 3339"),
    ({"name": "other"}, "name", "should be 'uk', as in the path"),
    ({"mode": "closes"}, "mode", "'excludes' or 'includes'"),
    ({"timezone": "Mars/Olympus"}, "timezone", "IANA"),
    ({"dates": {"2026-12-32": ""}}, "dates.2026-12-32", "does not exist"),
    ({"dates": {"Christmas": ""}}, "dates.Christmas", "a date such as"),
    ({"dates": {"2026-12-25": 1}}, "dates.2026-12-25", "should be text"),
    ({"dates": {"2026-12-25": "x" * 129}}, "dates.2026-12-25", "at most 128"),
    ({"dates": {f"{2000 + n // 28}-01-{n % 28 + 1:02}": "" for n in range(5001)}}, "dates", "at most 5000"),
    ({"dates": [1]}, "dates", "object"),
    ({"except_dates": ["2026-02-29"]}, "except_dates[0]", "does not exist"),
    ({"weekdays": ["funday"]}, "weekdays[0]", "'mon'"),
    ({"weekdays": ["sun", "sun"]}, "weekdays", "more than once"),
    ({"windows": [{"start": "25:00", "end": "06:00"}]}, "windows[0].start", "time of day"),
    ({"windows": [{"start": 1320, "end": "06:00"}]}, "windows[0].start", "time of day"),
    ({"windows": [{"start": "22:00"}]}, "windows[0].end", "required"),
    ({"windows": [WINDOW, {"start": "06:00", "end": "06:00"}]}, "windows[1]", "two times"),
    ({"windows": [{"start": "24:00", "end": "06:00"}]}, "windows[0]", "two times"),
    ({"windows": [{**WINDOW, "weekdays": []}]}, "windows[0].weekdays", "at least 1"),
    ({"windows": [WINDOW] * 65}, "windows", "at most 64"),
    ({"spans": [{"start": LATER, "end": EARLIER}]}, "spans[0].end", "after start"),
    ({"spans": [{"start": "now", "end": EARLIER}]}, "spans[0].start", "RFC 3339"),
]


@pytest.mark.parametrize(("body", "field", "reason"), BAD_CALENDARS)
def test_an_invalid_field_is_rejected_with_its_name_and_reason(body: object, field: str, reason: str) -> None:
    """A calendar with a bad field is refused with status 422, and the error has the field's name and the reason."""
    with pytest.raises(RequestError) as caught:
        calendar_of(read(json.dumps(body)), "uk")
    assert kind_of(caught.value).status.value == 422
    fault = faults_of(caught.value)[0]
    assert (fault.field, reason in fault.reason) == (field, True), fault.reason


def test_every_field_of_a_calendar_is_decoded() -> None:
    """Each field of a calendar is decoded to the domain's field."""
    body: dict[str, Any] = {
        "mode": "includes",
        "timezone": "Europe/London",
        "dates": {"2026-12-25": "Christmas Day"},
        "except_dates": ["2026-12-26"],
        "weekdays": ["sat", "sun"],
        "windows": [{"start": "22:00", "end": "24:00", "weekdays": ["fri"], "label": "late"}],
        "spans": [{"start": EARLIER, "end": LATER, "reason": "move"}],
        "known_until": LATER,
    }
    calendar = calendar_of(read(json.dumps(body)), "uk")
    assert (calendar.name, calendar.mode, calendar.zone) == ("uk", CalendarMode.INCLUDES, zone_named("Europe/London"))
    assert {str(day): label for day, label in calendar.dates.items()} == {"2026-12-25": "Christmas Day"}
    assert [str(day) for day in calendar.except_dates] == ["2026-12-26"]
    assert calendar.weekdays == {5, 6}
    assert calendar.windows == (Window(22 * HOUR, DAY, frozenset({4}), "late"),)
    assert [(span.end - span.start, span.reason) for span in calendar.spans] == [(DAY, "move")]
    assert calendar_response(calendar) == {
        **body,
        "name": "uk",
        "spans": [{"start": "2026-11-21T00:00:00.000Z", "end": "2026-11-22T00:00:00.000Z", "reason": "move"}],
        "known_until": "2026-11-22T00:00:00.000Z",
    }


def test_a_calendar_can_be_a_list_of_days() -> None:
    """All labels of a calendar can be left out, so that only days are listed."""
    assert calendar_response(calendar_of(read('{"dates": ["2026-12-25"]}'), "uk"))["dates"] == {"2026-12-25": ""}


TIMES = st.integers(0, DAY // SECOND - 1).map(lambda seconds: seconds * SECOND)
WINDOWS = st.builds(
    Window,
    TIMES,
    TIMES.map(lambda time: time or DAY),
    st.frozensets(st.integers(0, 6), min_size=1),
    st.sampled_from(["", "night"]),
).filter(lambda window: window.start != window.end)
CALENDARS = st.builds(
    Calendar,
    st.just("uk"),
    st.sampled_from(CalendarMode),
    st.sampled_from([zone_named("UTC"), zone_named("Asia/Kolkata")]),
    dates=st.dictionaries(st.dates(), st.sampled_from(["", "Holiday"]), max_size=3),
    except_dates=st.frozensets(st.dates(), max_size=3),
    weekdays=st.frozensets(st.integers(0, 6)),
    windows=st.lists(WINDOWS, max_size=3).map(tuple),
    spans=st.lists(
        st.builds(lambda at, length: Span(at, at + length, "why"), st.integers(NOW, 2 * NOW), st.integers(1, NOW)),
        max_size=3,
    ).map(tuple),
    known_until=st.none() | st.integers(NOW, 2 * NOW),
).filter(lambda calendar: not calendar.is_empty)


@unhurried
@given(CALENDARS)
def test_the_response_for_a_calendar_is_a_valid_request(calendar: Calendar) -> None:
    """The response for a calendar equals the request, apart from the calendar's name."""
    shown = calendar_response(calendar)
    body = {name: value for name, value in shown.items() if name != "name"}
    assert calendar_of(read(json.dumps(body)), "uk") == calendar
    assert set(shown["weekdays"]) <= set(WEEKDAYS)


@pytest.mark.parametrize(("raw", "field"), [("limit=0", "limit"), ("mode=includes", "mode")])
def test_an_invalid_list_query_is_rejected(raw: str, field: str) -> None:
    """A bad list query is refused, and the error names the parameter."""
    with pytest.raises(RequestError) as caught:
        read_query(CalendarListQuery, raw)
    assert faults_of(caught.value)[0].field == field


def test_an_icalendar_file_has_its_own_parameters() -> None:
    """Mode and time zone are parameters, because an iCalendar file states no mode and no time zone."""
    query = read_query(ICalendarQuery, "mode=includes&timezone=Europe%2FLondon")
    assert (query.mode, query.timezone) == (CalendarMode.INCLUDES, "Europe/London")
    with pytest.raises(RequestError):
        read_query(ICalendarQuery, "mode=closes")


@pytest.mark.parametrize("name", ["a b", "", "x" * 129, "é", "-x"])
def test_an_invalid_calendar_name_is_rejected(name: str) -> None:
    """An invalid name in the path is refused with status 400 instead of 422, because the body is valid."""
    with pytest.raises(RequestError) as caught:
        new_calendar_name(name)
    assert (kind_of(caught.value).status.value, faults_of(caught.value)[0].field) == (400, "name")
