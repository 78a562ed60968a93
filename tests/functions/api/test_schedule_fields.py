"""Tests that each field of a schedule can be created, read, listed and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contract.schedules.bodies import TIMINGS, ScheduleCreate, SchedulePatch
from duetime.contract.schedules.responses import ScheduleSummary

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

FULL: dict[str, Any] = {
    "name": "nightly",
    "cron": "cron(30 1 * * ? *)",
    "dialect": "eventbridge",
    "timezone": "Europe/London",
    "dst_gap": "shift_forward",
    "dst_fold": "both",
    "calendars": ["holidays"],
    "on_excluded": "previous_day",
    "extra_dates": ["2026-12-27T12:00:00"],
    "excluded_dates": ["2026-12-25"],
    "spread_seconds": 11,
    "jitter_seconds": 7,
    "start_at": "2026-12-01T00:00:00.000Z",
    "end_at": "2030-12-01T00:00:00.000Z",
    "remaining_runs": 9,
    "overlap": "allow_all",
    "catch_up_seconds": 61,
    "catch_up_mode": "all",
    "pause_on_failure": True,
    "expect_success_by": "06:00",
    "expect_every_seconds": 7200,
    "expect_duration_factor": 2.5,
    "task": {"type": "report", "notify_on": {"to": "https://example.org/alerts", "failed": True}},
}
PATH = "/v1/schedules/nightly"
SAID = {name: value for name, value in FULL.items() if name != "task"}


def test_the_example_has_every_field_of_a_creation() -> None:
    """The example has every field of a creation request with one kind of timing, and no default values."""
    assert set(FULL) | set(TIMINGS) == set(ScheduleCreate.model_fields)
    defaults = ScheduleCreate.model_validate({"task": FULL["task"]}).model_dump(mode="json")
    assert [name for name, value in SAID.items() if value == defaults[name]] == []


def test_the_forms_of_a_schedule_have_the_same_fields() -> None:
    """All fields of a creation request are also in responses and, except for the name, in updates."""
    assert set(ScheduleCreate.model_fields) <= set(ScheduleSummary.__annotations__)
    assert set(ScheduleCreate.model_fields) - {"name"} == set(SchedulePatch.model_fields)


def test_a_schedule_is_shown_and_listed_as_it_was_created(api: Gateway) -> None:
    """A schedule is shown and listed with the values of all fields as they were at its creation."""
    api.send("PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]})
    assert api.send("POST", "/v1/schedules", FULL).status == 201
    told = api.send("GET", PATH).body
    (listed,) = api.send("GET", "/v1/schedules").body["schedules"]
    for shown in (told, listed):
        assert {name: shown[name] for name in SAID} == SAID


def test_every_field_can_be_changed(api: Gateway) -> None:
    """An update can change every field of a schedule."""
    api.send("PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]})
    first = {"name": "nightly", "rate": "1 day", "task": {"type": "other"}}
    assert api.send("POST", "/v1/schedules", first).status == 201
    changed = api.send("PATCH", PATH, {name: value for name, value in FULL.items() if name != "name"})
    assert changed.status == 200, changed.text
    told = api.send("GET", PATH).body
    assert {name: told[name] for name in SAID} == SAID
    assert told["task"]["type"] == "report"
