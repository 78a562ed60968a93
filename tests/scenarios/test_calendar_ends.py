"""Schedules warn once before their calendar ends, and at each occurrence after its end."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.domain.operating_parameters import CALENDAR_NOTICE, LONGEST_SLEEP
from duetime.domain.schedules.time_zones import UTC_ZONE
from duetime.domain.times import DAY, to_iso
from tests.scenarios.scenario import HOUR
from tests.scenarios.schedules import Schedules

TOLD = "the known dates of a schedule's calendar end soon"


def put(schedules: Schedules, known_until: int | None, name: str = "off") -> None:
    """Store a calendar whose only day is long past."""
    body: dict[str, Any] = {
        "dates": ["2026-01-01"],
        "known_until": None if known_until is None else to_iso(known_until),
    }
    assert schedules.ask("PUT", f"/v1/calendars/{name}", body).status in {200, 201}


def remarks(schedules: Schedules) -> list[str]:
    """The warnings about calendars that the schedule shows."""
    return [each["reason"] for each in schedules.schedule()["skipped_runs"] if "not known from" in each["reason"]]


def test_the_end_of_a_calendar_is_reported_once_a_month_ahead() -> None:
    """A month ahead, the log, a metric and the schedule warn of a calendar's end, once per calendar version."""
    with Schedules() as schedules:
        end = schedules.now + CALENDAR_NOTICE + 2 * HOUR
        put(schedules, end)
        schedules.make(rate="30 minutes", calendars=["off"])
        schedules.run(HOUR)
        assert (schedules.counts()["calendars_ending"], schedules.notes().count(TOLD), remarks(schedules)) == (0, 0, [])
        schedules.run(3 * HOUR)
        assert (schedules.counts()["calendars_ending"], schedules.notes().count(TOLD)) == (1, 1)
        assert remarks(schedules) == [f"off: its times are not known from {UTC_ZONE.text_at(end)} on: replace it"]
        put(schedules, end + 60 * DAY)
        schedules.run(2 * HOUR)
        assert schedules.counts()["calendars_ending"] == 1
        put(schedules, schedules.now + DAY)
        schedules.run(HOUR)
        assert schedules.counts()["calendars_ending"] == 2


def test_the_ends_of_several_calendars_are_each_reported_once() -> None:
    """If two calendars of a schedule end soon, each end is reported, once, and a new end is reported again."""
    with Schedules() as schedules:
        ends = {"off": schedules.now + DAY, "also": schedules.now + 2 * DAY}
        for name, end in ends.items():
            put(schedules, end, name)
        schedules.make(rate="30 minutes", calendars=["off", "also"])
        schedules.run(3 * HOUR)
        words = [f"{name}: its times are not known from {UTC_ZONE.text_at(end)} on" for name, end in ends.items()]
        assert remarks(schedules) == [f"{each}: replace it" for each in reversed(words)]
        assert schedules.counts()["calendars_ending"] == 2
        put(schedules, schedules.now + 3 * DAY, "off")
        schedules.run(3 * HOUR)
        assert schedules.counts()["calendars_ending"] == 3


@pytest.mark.parametrize("known", ["always", "later"])
def test_a_calendar_without_a_near_end_causes_no_warning(known: str) -> None:
    """A calendar without an end, or with an end in half a year, causes no warning."""
    with Schedules() as schedules:
        put(schedules, None if known == "always" else schedules.now + 180 * DAY)
        schedules.make(rate="30 minutes", calendars=["off"])
        schedules.run(2 * HOUR)
        assert (schedules.counts()["calendars_ending"], remarks(schedules)) == (0, [])


def test_a_rarely_checked_schedule_warns_three_weeks_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule that is checked only every week (in this test, every two hours) still warns three weeks ahead."""
    assert CALENDAR_NOTICE - LONGEST_SLEEP >= 3 * 7 * DAY
    monkeypatch.setattr("duetime.services.schedules.expansion_planner.LONGEST_SLEEP", 2 * HOUR)
    with Schedules() as schedules:
        end = schedules.now + CALENDAR_NOTICE + HOUR
        put(schedules, end)
        schedules.make(rate="100 days", calendars=["off"], start_at=to_iso(schedules.now + 90 * DAY))
        schedules.run(3 * HOUR + HOUR // 2)
        assert schedules.counts()["calendars_ending"] == 1


def test_only_occurrences_after_a_calendars_end_have_a_warning() -> None:
    """In previews and `upcoming`, only occurrences after the calendar's end have a warning."""
    with Schedules() as schedules:
        end = schedules.now // DAY * DAY + 3 * DAY
        put(schedules, end)
        schedules.make(cron="0 12 * * *", calendars=["off"])
        words = f"off: its times are not known from {to_iso(end)[:10]} on"
        for found in (
            schedules.ask(
                "POST", "/v1/schedules/preview", {"cron": "0 12 * * *", "calendars": ["off"], "count": 5}
            ).body["occurrences"],
            schedules.schedule()["upcoming"],
        ):
            assert len(found) == 5
            for each in found:
                assert each["runs"]
                assert each["note"] == (words if each["scheduled_at"] >= to_iso(end) else None)


def test_an_empty_calendar_and_a_calendar_without_events_are_rejected() -> None:
    """A calendar without dates or events is refused, because a user who stores a calendar expects exclusions."""
    with Schedules() as schedules:
        empty = b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n"
        for body, kind, field in (
            ({"timezone": "Europe/London"}, "application/json", "dates"),
            (empty, "text/calendar", "ics"),
        ):
            answer = schedules.ask("PUT", "/v1/calendars/off", body, headers={"Content-Type": kind})
            assert answer.status == 422
            (fault,) = answer.body["errors"]
            assert (fault["field"], "would exclude nothing" in fault["reason"]) == (field, True)
