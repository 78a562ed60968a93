from __future__ import annotations

import contextlib
import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.adapters.calendars import calendar_from_ics
from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.calendars import Calendar, CalendarMode
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.times import DAY
from tests.domain.schedules.times import at

START, END = at("2026-11-21"), at("2029-11-21")


def file_of(*events: str) -> bytes:
    """Return an iCalendar file with the given events; each event is a list of lines."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN"]
    for event in events:
        lines += ["BEGIN:VEVENT", *event.strip().replace("    ", "").splitlines(), "END:VEVENT"]
    return ("\r\n".join([*lines, "END:VCALENDAR"]) + "\r\n").encode()


def read(*events: str, zone: str = "Europe/London") -> Calendar:
    """Return the calendar of the given events for three years from now."""
    return calendar_from_ics(file_of(*events), "c", START, END, zone=zone_named(zone))


def test_all_day_events_become_dates() -> None:
    """All-day events become dates up to the day before their end, with the summary as the reason."""
    calendar = read(
        "DTSTART;VALUE=DATE:20261225\nSUMMARY:Christmas\\, Day",
        "DTSTART;VALUE=DATE:20261230\nDTEND;VALUE=DATE:20270102\nSUMMARY:Closed",
        "DTSTART;VALUE=DATE:20270405\nDURATION:P2D\nSUMMARY:Spring",
    )
    assert calendar.dates == {
        date(2026, 12, 25): "Christmas, Day",
        **dict.fromkeys((date(2026, 12, 30), date(2026, 12, 31), date(2027, 1, 1)), "Closed"),
        **dict.fromkeys((date(2027, 4, 5), date(2027, 4, 6)), "Spring"),
    }
    span = calendar.covering(at("2026-12-25T12:00"))
    assert span is not None
    assert span.reason == "c: 2026-12-25 (Christmas, Day)"


@pytest.mark.parametrize(
    "end", ["DTEND;VALUE=DATE:20261225", "DURATION:P0D", "DTEND;VALUE=DATE:20261226", "SEQUENCE:0"]
)
def test_an_event_ending_on_its_first_day_lasts_one_day(end: str) -> None:
    """An event that ends on its first day lasts one day, because some programs omit the later end that is required."""
    assert list(read(f"DTSTART;VALUE=DATE:20261225\n{end}").dates) == [date(2026, 12, 25)]


TODO = file_of("DUE:20261225T090000Z").replace(b"VEVENT", b"VTODO")


@pytest.mark.parametrize("mode", CalendarMode)
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (TODO, "has no events (VEVENT)"),
        (file_of(), "has no events (VEVENT)"),
        (file_of("DTSTART;VALUE=DATE:20201225"), "takes any time from 2026-11-21 to 2029-11-21"),
        (file_of("DTSTART;VALUE=DATE:20351225"), "takes any time from 2026-11-21 to 2029-11-21"),
        (file_of("DTSTART:20270601T100000Z"), "takes any time"),
        (file_of("DTSTART:20270601T100000Z\nDTEND:20270601T100000Z"), "takes any time"),
        (file_of("DTSTART;VALUE=DATE:20261225\nSTATUS:CANCELLED"), "takes any time"),
        (file_of("DTSTART;VALUE=DATE:20261225\nEXDATE;VALUE=DATE:20261225"), "takes any time"),
    ],
)
def test_a_calendar_file_without_exclusions_is_rejected(data: bytes, reason: str, mode: CalendarMode) -> None:
    """A file without exclusions is refused, and the error says what is missing."""
    with pytest.raises(FieldInvalid) as refusal:
        calendar_from_ics(data, "c", START, END, mode=mode)
    assert (refusal.value.field, reason in refusal.value.reason) == ("ics", True)


@pytest.mark.parametrize(
    ("event", "known"),
    [
        ("DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY", False),
        ("DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY;COUNT=3", True),
        ("DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY;COUNT=4", False),
        ("DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY;UNTIL=20281225", True),
        ("DTSTART:20261225T100000Z\nDURATION:PT1H\nRRULE:FREQ=YEARLY;UNTIL=99991231T000000Z", False),
        ("DTSTART;VALUE=DATE:20261225", True),
        ("DTSTART;VALUE=DATE:20291121", True),
        ("DTSTART;VALUE=DATE:20261225\nRDATE;VALUE=DATE:20351225", False),
        ("DTSTART;VALUE=DATE:20291120\nDTEND;VALUE=DATE:20291201", False),
        ("DTSTART:20291120T230000Z\nDTEND:20291122T010000Z", False),
    ],
)
def test_a_calendar_says_until_when_it_is_known(event: str, known: bool) -> None:  # noqa: FBT001 - a parameter
    """A calendar is known until the end of the stored period, or forever if no rule or event continues after it."""
    assert read(event).known_until == (None if known else at("2029-11-21"))


def with_zone(name: str, event: str) -> bytes:
    """Return a file with an event that is preceded by a description of its time zone, as Outlook writes it."""
    zone = f"""BEGIN:VTIMEZONE
        TZID:{name}
        BEGIN:STANDARD
        DTSTART:16010101T030000
        TZOFFSETFROM:+0200
        TZOFFSETTO:+0100
        RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
        END:STANDARD
        BEGIN:DAYLIGHT
        DTSTART:16010101T020000
        TZOFFSETFROM:+0100
        TZOFFSETTO:+0200
        RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
        END:DAYLIGHT
        END:VTIMEZONE
        BEGIN:VEVENT""".replace("    ", "")
    return file_of(event).replace(b"BEGIN:VEVENT", zone.replace("\n", "\r\n").encode(), 1)


@pytest.mark.parametrize(
    ("name", "starts"),
    [
        ("Romance Standard Time", "2027-06-01T08:00"),
        ("Pacific Standard Time", "2027-06-01T17:00"),
        ("Europe/Paris", "2027-06-01T08:00"),
        ("/freeassociation.sourceforge.net/Europe/Paris", "2027-06-01T08:00"),
        ("/mozilla.org/20050126_1/America/New_York", "2027-06-01T14:00"),
    ],
)
def test_windows_and_prefixed_iana_time_zones_are_recognized(name: str, starts: str) -> None:
    """Windows time zones that Outlook describes, and IANA names with a prefix, are both recognized."""
    event = f"DTSTART;TZID={name}:20270601T100000\nDTEND;TZID={name}:20270601T110000\nRRULE:FREQ=YEARLY;COUNT=2"
    data = with_zone(name, event)
    calendar = calendar_from_ics(data, "c", START, END, zone=zone_named("Europe/London"))
    assert [span.start for span in calendar.spans][:1] == [at(starts)]
    assert len(calendar.spans) == 2


def test_a_time_zone_without_a_known_name_is_rejected() -> None:
    """A time zone without a known name is refused, because its rules may change."""
    name = "Customized Time Zone"
    data = with_zone(name, f"DTSTART;TZID={name}:20270601T100000\nDURATION:PT1H")
    with pytest.raises(FieldInvalid, match="Customized Time Zone: only names of IANA and Windows are supported"):
        calendar_from_ics(data, "c", START, END)


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("DTSTART:20270601T100000Z", "2027-06-01T10:00"),
        ("DTSTART:20270601T100000", "2027-06-01T09:00"),
        ("DTSTART;TZID=America/New_York:20270601T100000", "2027-06-01T14:00"),
        ("DTSTART;TZID=Pacific Standard Time:20270601T100000", "2027-06-01T17:00"),
    ],
)
def test_event_times_become_periods_in_any_time_zone(line: str, start: str) -> None:
    """An event's times can be in UTC, in the calendar's own zone, in a named zone or in a Windows zone."""
    (span,) = read(f"{line}\nDURATION:PT90M\nSUMMARY:Release").spans
    assert (span.start, span.end - span.start, span.reason) == (at(start), 90 * 60_000, "Release")


def test_recurring_events_are_expanded() -> None:
    """A yearly event by weekday is expanded with exceptions, added and moved occurrences, within the period only."""
    calendar = read(
        """UID:bank
        DTSTART;VALUE=DATE:20250526
        RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO
        EXDATE;VALUE=DATE:20280529
        RDATE;VALUE=DATE:20280603
        SUMMARY:Spring bank holiday""",
        """UID:bank
        RECURRENCE-ID;VALUE=DATE:20270531
        DTSTART;VALUE=DATE:20270601
        SUMMARY:Moved""",
    )
    assert calendar.dates == {
        date(2028, 6, 3): "Spring bank holiday",
        date(2029, 5, 28): "Spring bank holiday",
        date(2027, 6, 1): "Moved",
    }


def test_recurring_events_keep_their_local_time_of_day() -> None:
    """An event at ten o'clock in London has a different UTC time in summer; its rule's end is given in UTC."""
    calendar = read(
        """DTSTART;TZID=Europe/London:20270301T100000
        DTEND;TZID=Europe/London:20270301T110000
        RRULE:FREQ=MONTHLY;UNTIL=20270401T090000Z"""
    )
    assert [span.start for span in calendar.spans] == [at("2027-03-01T10:00"), at("2027-04-01T09:00")]


@pytest.mark.parametrize(
    "event",
    [
        "DTSTART;VALUE=DATE:19500305\nRRULE:FREQ=YEARLY",
        "DTSTART;TZID=Europe/London:19500305T090000\nDTEND;TZID=Europe/London:19500305T100000\nRRULE:FREQ=YEARLY",
        "DTSTART:19690305T090000Z\nDURATION:PT1H\nRRULE:FREQ=YEARLY;UNTIL=99991231T235959Z",
    ],
)
def test_a_recurring_event_can_start_before_time_zones_are_known(event: str) -> None:
    """A birthday from 1950 still recurs, and a rule can end in the year 9999, as some programs write it."""
    calendar = read(event)
    assert [calendar.covering(at(f"{year}-03-05T09:30")) is not None for year in (2027, 2028, 2029)] == [True] * 3
    assert len(calendar.dates) + len(calendar.spans) == 3


def test_days_outside_the_stored_period_are_left_out() -> None:
    """A date in the year 9999 and the past days of a long event are left out of the calendar."""
    calendar = read("DTSTART;VALUE=DATE:20261110\nDTEND;VALUE=DATE:20261123\nRDATE;VALUE=DATE:99991231")
    assert list(calendar.dates) == [date(2026, 11, 21), date(2026, 11, 22)]


def test_a_label_contains_only_printable_characters() -> None:
    """Control characters in a summary become spaces."""
    assert set(read("DTSTART;VALUE=DATE:20270101\nSUMMARY:New\x07Year").dates.values()) == {"New Year"}


def test_cancelled_events_are_left_out() -> None:
    """Cancelled events and events outside the period are left out."""
    calendar = read(
        "DTSTART;VALUE=DATE:20261225\nSTATUS:CANCELLED",
        "DTSTART;VALUE=DATE:20200101",
        "DTSTART;VALUE=DATE:20350101",
        "DTSTART:20270101T000000Z",
        "DTSTART;VALUE=DATE:20270405",
    )
    assert list(calendar.dates) == [date(2027, 4, 5)]
    assert not calendar.spans


def test_a_file_read_as_including_allows_work_only_during_events() -> None:
    """If a file is read as a list of working times, work runs only during the file's events."""
    data = file_of("DTSTART:20270601T100000Z\nDTEND:20270601T110000Z")
    calendar = calendar_from_ics(data, "windows", START, END, mode=CalendarMode.INCLUDES)
    assert calendar.covering(at("2027-06-01T10:30")) is None
    assert calendar.covering(at("2027-06-01T11:00")) is not None


EVENT = "DTSTART;VALUE=DATE:20270101\n"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("SUMMARY:no start", "DTSTART is missing"),
        ("DTSTART:soon", "DTSTART"),
        (EVENT + "DTSTART;VALUE=DATE:20270102", "repeated"),
        (EVENT + "DTEND:20270101T100000Z", "begins on a date and ends at a time"),
        (EVENT + "DTEND;VALUE=DATE:20261231", "0 to 366 days"),
        (EVENT + "DTEND;VALUE=DATE:20990101", "0 to 366 days"),
        (EVENT + "DURATION:P9999W", "0 to 366 days"),
        ("DTSTART;VALUE=DATE:00010101", "DTSTART"),
        ("DTSTART;TZID=Mars/Olympus:20270101T100000", "Mars/Olympus"),
        (EVENT + "RRULE:FREQ=SECONDLY", "YEARLY, MONTHLY, WEEKLY or DAILY"),
        (EVENT + "RRULE:FREQ=YEARLY;BYSECOND=1", "BYSECOND"),
        (EVENT + "RRULE:FREQ=DAILY;BYMONTH=2", "BYMONTH"),
        (EVENT + "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never occurs"),
        (EVENT + "RRULE:FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6", "never occurs"),
        (EVENT + "RRULE:FREQ=YEARLY;INTERVAL=0", "interval of 0"),
        (EVENT + "RRULE:FREQ=YEARLY;INTERVAL=-1", "interval of -1"),
        (EVENT + "RRULE:FREQ=YEARLY;BYDAY=99MO", "cannot be applied"),
        (EVENT + "RRULE:FREQ=MONTHLY;BYMONTHDAY=0", "day 0"),
        (EVENT + "RRULE:FREQ=YEARLY\nEXRULE:FREQ=YEARLY;INTERVAL=2", "EXRULE"),
        (EVENT + "RECURRENCE-ID:soon", "RECURRENCE-ID"),
        (EVENT + "RRULE:FREQ=YEARLY\nRRULE:FREQ=MONTHLY", "several"),
        (EVENT + "RRULE:FREQ=YEARLY;BYMONTHDAY=" + ",".join(["1"] * 101), "very long list"),
    ],
)
def test_an_unreadable_part_of_a_calendar_is_rejected(event: str, reason: str) -> None:
    """No event is omitted silently, because an error names the part that could not be read."""
    with pytest.raises(FieldInvalid) as refusal:
        read(event)
    assert refusal.value.field == "ics"
    assert reason in refusal.value.reason


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"BEGIN:VEVENT\r\nEND:VEVENT\r\n",
        b"BEGIN:VCALENDAR\r\n" * 1_000,
        b"\xff\xfe\x00",
        b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n" * 2,
        b"x" * 1_048_577,
        file_of(*["DTSTART;VALUE=DATE:20270101"] * 5_001),
        file_of(*["DTSTART;VALUE=DATE:20270101\nRRULE:FREQ=YEARLY"] * 101),
        file_of(*["DTSTART;VALUE=DATE:19000101\nRRULE:FREQ=DAILY"] * 100),
        file_of(*[f"DTSTART:2027010{n}T000000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY" for n in range(1, 9)]),
        file_of("DTSTART;VALUE=DATE:20270101\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", *[EVENT] * 50),
    ],
)
def test_hostile_calendar_files_are_rejected_quickly(data: bytes) -> None:
    """A file that is too large, has endless rules or too many events, or is not a calendar is refused in seconds."""
    began = time.process_time()
    with pytest.raises(FieldInvalid):
        calendar_from_ics(data, "c", START, START + 3_000 * DAY)
    # Expanding an endless rule would never end.
    assert time.process_time() - began < 30


_LINES = st.sampled_from(
    [
        "DTSTART;VALUE=DATE:20270101", "DTSTART:20270101T100000", "DTEND:20270101T110000Z", "DURATION:-PT1H",
        "RRULE:FREQ=YEARLY;UNTIL=20300101", "RRULE:FREQ=WEEKLY;BYDAY=XX", "RRULE:", "EXDATE:", "EXDATE:20270101,x",
        "RDATE;VALUE=PERIOD:20270101T000000Z/PT1H", "RECURRENCE-ID:20270101", "STATUS:?", "UID:", "SUMMARY", ":", ";=:",
    ]
)  # fmt: skip


@given(st.lists(_LINES | st.text(max_size=30), max_size=8))
def test_any_event_is_read_or_rejected_by_the_parser(lines: list[str]) -> None:
    """Any event is either read or raises the parser's documented error."""
    with contextlib.suppress(FieldInvalid):
        read("\n".join(lines))
