"""Tests of schedules and calendars over REST, with real stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import DAY, HOUR, MINUTE, to_iso
from tests.clocks import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Answer, Gateway

NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "cron": "30 1 * * *",
    "timezone": "Europe/London",
    "task": {"type": "report", "payload": {"a": [1, None]}, "tags": {"team": "dba"}},
}
PATH = "/v1/schedules/nightly"
ICS = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//test//test//EN
BEGIN:VEVENT
UID:1
DTSTAMP:20260101T000000Z
DTSTART;VALUE=DATE:20261225
SUMMARY:Christmas Day
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


def created(api: Gateway, **fields: object) -> dict[str, Any]:
    """Create a schedule, and return the response body."""
    answer = api.send("POST", "/v1/schedules", {**NIGHTLY, **fields})
    assert answer.status == 201, answer.text
    schedule: dict[str, Any] = answer.body
    return schedule


def controlled(api: Gateway, action: str, body: object = None) -> Answer:
    """Send an action on the schedule, and return the response."""
    return api.send("POST", f"{PATH}/{action}", body)


def test_a_schedule_is_created_with_defaults_for_omitted_fields(api: Gateway) -> None:
    """A creation returns 201 with path, ETag and next times, and omitted fields have default values."""
    answer = api.send("POST", "/v1/schedules", NIGHTLY)
    assert (answer.status, answer.location, answer.headers["ETag"][:3]) == (201, PATH, '"1-')
    body = answer.body
    assert (body["name"], body["state"], body["revision"], body["version"]) == (
        "nightly",
        "active",
        1,
        1,
    )
    assert (body["cron"], body["rate"], body["interval"], body["dates"], body["permanent"]) == (
        "30 1 * * *",
        None,
        None,
        None,
        None,
    )
    assert (body["dst_gap"], body["dst_fold"], body["overlap"], body["catch_up_seconds"]) == (
        "skip",
        "first",
        "skip",
        3600,
    )
    assert body["task"]["payload"] == {"a": [1, None]}
    assert body["task"]["target"] is None
    assert body["next_at"] == "2026-11-22T01:30:00.000Z"
    assert [each["local_time"] for each in body["upcoming"]][:2] == [
        "2026-11-22T01:30:00+00:00",
        "2026-11-23T01:30:00+00:00",
    ]
    assert api.send("GET", PATH).body == body


def test_an_unnamed_schedule_gets_a_name(api: Gateway) -> None:
    """A schedule that is created without a name gets a name, with which the schedule can be read."""
    body = {name: value for name, value in NIGHTLY.items() if name != "name"}
    made = api.send("POST", "/v1/schedules", body)
    assert made.status == 201
    assert api.send("GET", made.location).body["name"] == made.body["name"]


@pytest.mark.parametrize(
    "timing",
    [
        {"rate": "5 minutes"},
        {"interval": "R/2026-12-01T09:00:00Z/PT1H"},
        {"dates": ["2026-12-24T09:00:00", "2027-12-24T09:00:00"]},
        {"permanent": {"gap_seconds": 60}},
        {"cron": "cron(0 10 * * ? *)", "dialect": "eventbridge"},
    ],
)
def test_every_kind_of_timing_is_shown_as_it_was_written(api: Gateway, timing: dict[str, Any]) -> None:
    """Every kind of timing is shown in the form in which the client wrote it."""
    body = {"name": "x", "task": {"type": "report"}, **timing}
    assert api.send("POST", "/v1/schedules", body).status == 201
    read = api.send("GET", "/v1/schedules/x").body
    assert {name: read[name] for name in timing} == timing


def test_a_name_that_is_taken_is_a_conflict(api: Gateway) -> None:
    """Creating a schedule with an existing name returns 409, and the existing schedule does not change."""
    before = created(api)
    answer = api.send("POST", "/v1/schedules", {**NIGHTLY, "cron": "0 5 * * *"})
    assert (answer.status, answer.problem["code"]) == (409, "schedule_exists")
    assert api.send("GET", PATH).body == before
    assert api.send("POST", "/v1/schedules", NIGHTLY, {"x-duetime-owner": "other"}).status == 201


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"rate": "1 hour"}, "rate"),
        ({"timezone": "Nowhere/Land"}, "timezone"),
        ({"end_at": "2020-01-01T00:00:00Z"}, "end_at"),
        ({"start_at": "2027-01-02T00:00:00Z", "end_at": "2027-01-01T00:00:00Z"}, "end_at"),
        ({"calendars": ["nobody"]}, "calendars[0]"),
        ({"task": {"type": "report", "due_at": "2026-12-01T00:00:00Z"}}, "task.due_at"),
        ({"task": {"type": "report", "payload": "x" * 1_048_576}}, "task.payload"),
        ({"cron": "cron(0 0 1 1 ? 2020)", "dialect": "eventbridge"}, "cron"),
    ],
)
def test_an_invalid_schedule_is_rejected_and_nothing_is_created(
    api: Gateway, fields: dict[str, Any], field: str
) -> None:
    """An error for an invalid schedule returns 422 and names the field, and no schedule is created."""
    answer = api.send("POST", "/v1/schedules", {**NIGHTLY, **fields})
    assert (answer.status, field in answer.faults) == (422, True), answer.text
    assert api.send("GET", "/v1/schedules").body["schedules"] == []


def test_an_invalid_payload_of_a_schedule_is_rejected(api: Gateway) -> None:
    """A schedule's payload with NaN, too many digits, lone surrogates or deep nesting is refused by field name."""
    for text, field in (
        ("NaN", "task.payload"),
        ("1" * 39, "task.payload"),
        ('"\\ud800"', "task.payload"),
        ("[" * 70 + "]" * 70, "task"),
    ):
        raw = f'{{"cron": "* * * * *", "task": {{"type": "report", "payload": {text}}}}}'
        answer = api.send("POST", "/v1/schedules", raw=raw)
        assert (answer.status, field in answer.faults) == (422, True), answer.text


@pytest.mark.parametrize("name", ["nobody", "a b", "%00", "a#b", "é", "x" * 129])
def test_an_unknown_schedule_is_not_found(api: Gateway, name: str) -> None:
    """Requests for an unknown or invalid schedule name return 404 on every path."""
    sent = [
        api.send("GET", f"/v1/schedules/{name}"),
        api.send("DELETE", f"/v1/schedules/{name}"),
        api.send("PATCH", f"/v1/schedules/{name}", {"overlap": "skip"}),
        api.send("GET", f"/v1/schedules/{name}/occurrences"),
        *(api.send("POST", f"/v1/schedules/{name}/{action}") for action in ("pause", "resume", "run")),
    ]
    # Paths with some of these letters match no route.
    assert {(answer.status, answer.problem["code"] in {"schedule_not_found", "path_not_found"}) for answer in sent} == {
        (404, True)
    }


def test_another_owners_schedule_cannot_be_read_changed_run_or_deleted(api: Gateway) -> None:
    """Another owner's schedule cannot be read, changed, run or deleted, and is not listed."""
    created(api)
    other = {"x-duetime-owner": "other"}
    for method, path, body in (
        ("GET", PATH, None),
        ("PATCH", PATH, {"overlap": "skip"}),
        ("DELETE", PATH, None),
        ("POST", f"{PATH}/run", None),
        ("POST", f"{PATH}/pause", {}),
        ("GET", f"{PATH}/occurrences", None),
    ):
        assert api.send(method, path, body, other).status == 404
    assert api.send("GET", "/v1/schedules", headers=other).body == {"schedules": [], "next_token": None}


def test_schedules_are_listed_page_by_page(api: Gateway) -> None:
    """Schedules are listed by name with their payloads, and a page token works only for its list."""
    for name in ("b", "a", "c"):
        created(api, name=name)
    api.send("POST", "/v1/schedules/b/pause")
    first = api.send("GET", "/v1/schedules", query="limit=2").body
    assert [each["name"] for each in first["schedules"]] == ["a", "b"]
    assert first["schedules"][0]["task"]["payload"] == {"a": [1, None]}
    assert "upcoming" not in first["schedules"][0]
    rest = api.send("GET", "/v1/schedules", query=f"limit=2&next_token={first['next_token']}").body
    assert ([each["name"] for each in rest["schedules"]], rest["next_token"]) == (["c"], None)
    paused = api.send("GET", "/v1/schedules", query="state=paused").body
    assert [each["name"] for each in paused["schedules"]] == ["b"]
    strange = api.send("GET", "/v1/schedules", query=f"state=paused&next_token={first['next_token']}")
    assert (strange.status, "next_token" in strange.faults) == (400, True)


def test_an_update_changes_the_given_fields_and_increases_the_revision(api: Gateway) -> None:
    """An update changes the given fields, keeps other fields, increases the revision, and recomputes the next time."""
    before = created(api)
    answer = api.send("PATCH", PATH, {"cron": "0 5 * * *", "overlap": "allow_all"})
    assert answer.status == 200, answer.text
    after = answer.body
    assert (after["cron"], after["overlap"], after["timezone"]) == ("0 5 * * *", "allow_all", "Europe/London")
    assert (after["revision"], after["version"] > before["version"]) == (2, True)
    assert after["next_at"] == "2026-11-21T05:00:00.000Z"
    assert after["task"] == before["task"]
    assert answer.headers["ETag"].startswith(f'"{after["version"]}-')


def test_a_timing_of_another_kind_replaces_the_previous_timing(api: Gateway) -> None:
    """A timing of a different kind replaces the previous timing, and the time zone does not change."""
    created(api)
    after = api.send("PATCH", PATH, {"rate": "2 hours"}).body
    assert (after["cron"], after["rate"], after["timezone"]) == (None, "2 hours", "Europe/London")
    gap = api.send("PATCH", PATH, {"permanent": {"gap_seconds": 60}}).body
    assert (gap["rate"], gap["permanent"]) == (None, {"gap_seconds": 60})
    assert api.send("PATCH", PATH, {"permanent": {}}).body["permanent"] == {"gap_seconds": 60}


def test_an_update_merges_the_fields_of_a_schedules_task(api: Gateway) -> None:
    """An update merges the fields of a schedule's task (RFC 7396), removes null fields, and replaces the payload."""
    created(api, task={**NIGHTLY["task"], "retry": {"max_attempts": 9, "max_seconds": 60}, "lock": {"key": "db"}})
    patch = {"retry": {"max_seconds": 50}, "lock": None, "tags": {"team": None, "x": "y"}, "timeout_seconds": 7}
    task = api.send("PATCH", PATH, {"task": patch}).body["task"]
    assert (task["type"], task["payload"], task["timeout_seconds"]) == ("report", {"a": [1, None]}, 7)
    assert (task["retry"]["max_attempts"], task["retry"]["max_seconds"]) == (9, 50)
    assert (task["lock"], task["tags"]) == (None, {"x": "y"})
    task = api.send("PATCH", PATH, {"task": {"payload": {"b": None}, "retry": None, "type": "other"}}).body["task"]
    assert (task["type"], task["payload"], task["retry"]["max_attempts"]) == ("other", {"b": None}, 5)
    assert controlled(api, "run").body["payload"] == {"b": None}


def test_an_update_merges_a_target_of_the_same_kind_and_replaces_others(api: Gateway) -> None:
    """An update merges a target of the same kind and replaces a target of another kind."""
    created(api, task={"type": "report", "target": {"kind": "http", "url": "https://e.org/a", "phases": ["prepare"]}})
    merged = api.send("PATCH", PATH, {"task": {"target": {"url": "https://e.org/b"}}}).body["task"]["target"]
    assert (merged["url"], merged["phases"]) == ("https://e.org/b", ["prepare"])
    replaced = api.send("PATCH", PATH, {"task": {"target": {"kind": "handler"}}})
    assert replaced.body["task"]["target"] == {"kind": "handler"}
    assert api.send("PATCH", PATH, {"task": {"target": None}}).body["task"]["target"] is None


def test_read_only_fields_in_an_update_are_rejected(api: Gateway) -> None:
    """Read-only fields in an update are refused, but the rest of a response, including nulls, can be sent back."""
    shown = created(api, task={"type": "report", "payload": {"a": None}})
    refused = api.send("PATCH", PATH, shown)
    reasons = {each["field"]: each["reason"] for each in refused.problem["errors"]}
    assert (refused.status, set(reasons.values())) == (422, {"is read-only: leave it out"})
    writable = {name: value for name, value in shown.items() if name not in reasons}
    assert {"name", "cron", "rate", "task", "end_at"} <= set(writable)
    answer = api.send("PATCH", PATH, writable)
    assert answer.status == 200, answer.text
    assert {name: answer.body[name] for name in writable} == writable
    copy = {**writable, "name": "copy", "task": NIGHTLY["task"]}
    assert api.send("POST", "/v1/schedules", copy).status == 201
    assert api.send("PATCH", PATH, {"name": "other"}).faults == {
        "name": "cannot be changed after creation: leave it out"
    }


def test_a_new_time_zone_keeps_the_local_times_of_the_schedule(api: Gateway) -> None:
    """If only the time zone changes, the schedule keeps its local times in the new zone."""
    created(api)
    after = api.send("PATCH", PATH, {"timezone": "Asia/Kolkata"}).body
    assert (after["cron"], after["next_at"]) == ("30 1 * * *", "2026-11-21T20:00:00.000Z")


def test_null_removes_end_at_and_remaining_runs(api: Gateway) -> None:
    """Null removes `end_at` and `remaining_runs`."""
    created(api, end_at="2027-01-01T00:00:00Z", remaining_runs=5)
    after = api.send("PATCH", PATH, {"end_at": None, "remaining_runs": None}).body
    assert (after["end_at"], after["remaining_runs"]) == (None, None)


@pytest.mark.parametrize("method", ["PATCH", "DELETE", "pause", "resume"])
def test_a_change_of_a_schedule_with_an_earlier_etag_returns_412(api: Gateway, method: str) -> None:
    """A change with an earlier ETag in `If-Match` returns 412, and the schedule does not change."""
    created(api)
    api.send("PATCH", PATH, {"overlap": "allow_all"})
    if method == "resume":
        api.send("POST", f"{PATH}/pause")
    state = api.send("GET", PATH).body["state"]
    guard = {"if-match": '"1"'}
    if method in {"pause", "resume"}:
        answer = api.send("POST", f"{PATH}/{method}", None, guard)
    else:
        answer = api.send(method, PATH, {"overlap": "skip"} if method == "PATCH" else None, guard)
    assert (answer.status, answer.problem["code"]) == (412, "version_mismatch"), answer.text
    assert "If-Match" in answer.faults
    body = api.send("GET", PATH).body
    assert (body["overlap"], body["state"]) == ("allow_all", state)


def test_a_deletion_returns_the_schedule_as_it_was(api: Gateway) -> None:
    """A deletion returns the deleted schedule, whose name can then be used again."""
    before = created(api)
    assert api.send("DELETE", PATH).body == before
    assert api.send("GET", PATH).status == 404
    assert api.send("DELETE", PATH).status == 404
    created(api)


def test_a_paused_schedule_shows_its_reason_and_no_next_times(api: Gateway) -> None:
    """A paused schedule shows its reason and no next times, and a resumed schedule shows next times and no reason."""
    created(api)
    paused = controlled(api, "pause", {"reason": "no paper"}).body
    shown = paused["state"], paused["paused_reason"], paused["upcoming"], paused["next_at"]
    assert shown == ("paused", "no paper", [], None)
    resumed = controlled(api, "resume").body
    assert (resumed["state"], resumed["paused_reason"], resumed["next_at"]) == (
        "active",
        None,
        "2026-11-22T01:30:00.000Z",
    )
    assert controlled(api, "pause").body["paused_reason"] is None
    assert controlled(api, "pause", {"reason": "x" * 257}).status == 422


def test_a_manual_run_creates_a_task_and_does_not_change_the_timing(api: Gateway) -> None:
    """A manual run returns 201 with the run's task, and the schedule's timing does not change."""
    before = created(api)
    answer = controlled(api, "run")
    assert (answer.status, answer.location) == (201, f"/v1/tasks/{answer.body['id']}")
    task = api.send("GET", answer.location).body
    assert task["schedule"] == {
        "name": "nightly",
        "revision": 1,
        "scheduled_at": task["schedule"]["scheduled_at"],
        "previous_at": "2026-11-21T01:30:00.000Z",
        "next_at": "2026-11-22T01:30:00.000Z",
        "cause": "manual",
    }
    assert (task["type"], task["payload"], task["tags"]) == ("report", {"a": [1, None]}, {"team": "dba"})
    assert task["due_at"] == to_iso(NOW)
    assert api.send("GET", PATH).body["next_at"] == before["next_at"]


def test_a_task_without_a_schedule_shows_null_as_its_schedule(api: Gateway) -> None:
    """A task without a schedule shows null as its `schedule`."""
    assert api.create()["schedule"] is None


def test_a_backfill_is_created_read_listed_and_cancelled(api: Gateway) -> None:
    """A backfill can be created, read, listed and cancelled, and an unknown id returns 404."""
    created(api)
    period = {"scheduled_after": to_iso(NOW - 10 * DAY), "scheduled_before": to_iso(NOW - DAY), "per_minute": 1}
    answer = controlled(api, "backfills", period)
    assert answer.status == 201, answer.text
    run, path = answer.body, f"{PATH}/backfills/{answer.body['id']}"
    assert {**run, **period} == run
    assert (run["occurrences"], run["finished_at"], answer.location) == (9, None, path)
    assert api.send("GET", path).body == run
    assert api.send("GET", f"{PATH}/backfills").body == {"backfills": [run]}
    cancelled = api.send("DELETE", path)
    assert (cancelled.status, cancelled.body["finished_at"]) == (200, to_iso(NOW))
    assert api.send("DELETE", path).body == cancelled.body == api.send("GET", path).body
    for method in ("GET", "DELETE"):
        unknown = api.send(method, f"{PATH}/backfills/other")
        assert (unknown.status, unknown.problem["code"]) == (404, "backfill_not_found")


def test_a_period_includes_its_start_but_not_its_end(api: Gateway) -> None:
    """Periods of backfills and lists include an occurrence at `scheduled_after`, but not at `scheduled_before`."""
    created(api, cron="0 * * * *", timezone="UTC")
    hour = NOW // HOUR * HOUR
    period = {"scheduled_after": to_iso(hour - 3 * HOUR), "scheduled_before": to_iso(hour - HOUR)}
    assert controlled(api, "backfills", period).body["occurrences"] == 2
    query = f"scheduled_after={to_iso(hour + HOUR)}&scheduled_before={to_iso(hour + 3 * HOUR)}"
    seen = api.send("GET", f"{PATH}/occurrences", query=query).body["occurrences"]
    assert [each["scheduled_at"] for each in seen] == [to_iso(hour + HOUR), to_iso(hour + 2 * HOUR)]


@pytest.mark.parametrize("period", [(NOW - HOUR, NOW - 2 * HOUR), (NOW - HOUR, NOW - HOUR), (NOW - HOUR, NOW + HOUR)])
def test_a_backfill_of_an_invalid_period_is_rejected(api: Gateway, period: tuple[int, int]) -> None:
    """Backfills for reversed, empty and future periods are refused."""
    created(api)
    body = {"scheduled_after": to_iso(period[0]), "scheduled_before": to_iso(period[1])}
    answer = controlled(api, "backfills", body)
    assert (answer.status, "scheduled_before" in answer.faults) == (422, True)


def test_placed_occurrences_show_their_task_and_skipped_ones_a_reason(api: Gateway, clock: StandingClock) -> None:
    """Placed occurrences have a task id and a state, future occurrences lack both, and skipped ones have a reason."""
    api.send("PUT", "/v1/calendars/uk", {"dates": {"2026-11-22": "Holiday"}})
    created(api, cron="0 * * * *", timezone="UTC", calendars=["uk"])
    query = f"scheduled_after={to_iso(NOW)}&scheduled_before={to_iso(NOW + 23 * HOUR)}&limit=100"
    seen = api.send("GET", f"{PATH}/occurrences", query=query).body["occurrences"]
    assert [each["scheduled_at"] for each in seen] == sorted(each["scheduled_at"] for each in seen)
    assert (seen[0]["scheduled_at"], seen[0]["runs"], seen[-1]["runs"]) == ("2026-11-21T03:00:00.000Z", True, False)
    assert (seen[0]["task_id"], seen[0]["state"]) == (None, None)
    assert "Holiday" in seen[-1]["note"]
    created(api, name="minutely", cron="* * * * *")
    first = api.send("GET", "/v1/schedules/minutely/occurrences", query="limit=1").body["occurrences"][0]
    assert first["state"] == "scheduled"
    task = api.send("GET", f"/v1/tasks/{first['task_id']}").body
    assert (task["due_at"], task["schedule"]["name"], task["schedule"]["cause"]) == (
        first["scheduled_at"],
        "minutely",
        "schedule",
    )
    clock.at += 2 * MINUTE
    past = api.send("GET", "/v1/schedules/minutely/occurrences", query=f"scheduled_after={to_iso(NOW)}&limit=1").body
    assert past["occurrences"][0]["task_id"] == first["task_id"]


def test_a_preview_creates_nothing_and_reads_calendars(api: Gateway) -> None:
    """A preview creates no schedule, and explains the effects of calendars.

    The error for an unknown calendar names the calendar.
    """
    api.send("PUT", "/v1/calendars/uk", {"dates": {"2026-11-22": "Holiday"}})
    body = {"cron": "30 1 * * *", "count": 2, "calendars": ["uk"]}
    answer = api.send("POST", "/v1/schedules/preview", body)
    assert answer.status == 200
    assert answer.body["occurrences"] == [
        {
            "scheduled_at": "2026-11-22T01:30:00.000Z",
            "local_time": "2026-11-22T01:30:00+00:00",
            "runs": False,
            "due_at": None,
            "note": "uk: 2026-11-22 (Holiday): skipped",
        },
        {
            "scheduled_at": "2026-11-23T01:30:00.000Z",
            "local_time": "2026-11-23T01:30:00+00:00",
            "runs": True,
            "due_at": "2026-11-23T01:30:00.000Z",
            "note": None,
        },
    ]
    moved = api.send("POST", "/v1/schedules/preview", {**body, "on_excluded": "move", "jitter_seconds": 0}).body
    assert moved["occurrences"][0]["due_at"] == "2026-11-23T00:00:00.000Z"
    assert "calendars[0]" in api.send("POST", "/v1/schedules/preview", {**body, "calendars": ["nobody"]}).faults
    assert api.send("GET", "/v1/schedules").body["schedules"] == []


def test_a_preview_shows_the_same_times_as_the_schedule(api: Gateway) -> None:
    """A preview and the schedule itself show the same times, even on the day when London's clocks go forward."""
    timing = {"cron": "30 1 * * *", "timezone": "Europe/London", "start_at": "2027-03-27T00:00:00Z"}
    previewed = api.send("POST", "/v1/schedules/preview", {**timing, "count": 5}).body["occurrences"]
    assert created(api, **timing)["upcoming"] == previewed
    assert [each["runs"] for each in previewed] == [True, False, True, True, True]


def test_a_calendar_is_set_read_listed_and_deleted(api: Gateway) -> None:
    """A calendar can be set, read, listed and deleted, and a second PUT replaces the calendar completely."""
    body = {"timezone": "Europe/London", "dates": {"2026-12-25": "Christmas Day"}, "weekdays": ["sun"]}
    put = api.send("PUT", "/v1/calendars/uk", body)
    assert put.status == 201, put.text
    assert (put.body["name"], put.body["mode"], put.body["dates"]) == ("uk", "excludes", body["dates"])
    assert api.send("GET", "/v1/calendars/uk").body == put.body
    assert api.send("PUT", "/v1/calendars/uk", {"weekdays": ["sat"]}).body["dates"] == {}
    for name in ("b", "a"):
        api.send("PUT", f"/v1/calendars/{name}", {"weekdays": ["sun"]})
    first = api.send("GET", "/v1/calendars", query="limit=2").body
    rest = api.send("GET", "/v1/calendars", query=f"limit=2&next_token={first['next_token']}").body
    assert [each["name"] for each in (*first["calendars"], *rest["calendars"])] == ["a", "b", "uk"]
    assert api.send("DELETE", "/v1/calendars/uk").body["weekdays"] == ["sat"]
    gone = api.send("GET", "/v1/calendars/uk")
    assert (gone.status, gone.problem["code"]) == (404, "calendar_not_found")


def test_all_day_events_of_an_icalendar_file_become_dates(api: Gateway) -> None:
    """All-day events of an iCalendar file become dates, and an invalid file is refused with the field."""
    headers = {"content-type": "text/calendar; charset=utf-8"}
    put = api.send("PUT", "/v1/calendars/uk", raw=ICS, headers=headers, query="timezone=Europe/London")
    assert put.status == 201, put.text
    assert (put.body["dates"], put.body["timezone"]) == ({"2026-12-25": "Christmas Day"}, "Europe/London")
    bad = api.send("PUT", "/v1/calendars/uk", raw="nonsense", headers=headers)
    assert (bad.status, bool(bad.faults)) == (422, True)
    torn = api.send("PUT", "/v1/calendars/uk", raw=ICS.replace("Day", "\ud800"), headers=headers)
    assert (torn.status, torn.problem["code"]) == (400, "body_unreadable")
    assert api.send("PUT", "/v1/calendars/uk", {}, query="timezone=UTC").status == 400
    assert api.send("PUT", "/v1/calendars/uk", raw=ICS, headers={"content-type": "text/plain"}).status == 415


def test_a_calendar_that_a_schedule_uses_cannot_be_deleted(api: Gateway) -> None:
    """Deleting a calendar that a schedule uses returns 409 with the schedule's name, until the schedule is deleted."""
    api.send("PUT", "/v1/calendars/uk", {"weekdays": ["sun"]})
    created(api, calendars=["uk"])
    answer = api.send("DELETE", "/v1/calendars/uk")
    assert (answer.status, answer.problem["code"], "nightly" in answer.problem["detail"]) == (
        409,
        "calendar_in_use",
        True,
    )
    api.send("DELETE", PATH)
    assert api.send("DELETE", "/v1/calendars/uk").status == 200


def test_another_owners_calendar_cannot_be_read_deleted_or_used(api: Gateway) -> None:
    """Another owner's calendar cannot be read, deleted or used in a schedule."""
    api.send("PUT", "/v1/calendars/uk", {"weekdays": ["sun"]})
    other = {"x-duetime-owner": "other"}
    assert api.send("GET", "/v1/calendars/uk", headers=other).status == 404
    assert api.send("DELETE", "/v1/calendars/uk", headers=other).status == 404
    assert "calendars[0]" in api.send("POST", "/v1/schedules", {**NIGHTLY, "calendars": ["uk"]}, other).faults


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/schedules", "limit=0"),
        ("/v1/schedules", "state=running"),
        ("/v1/schedules", "next_token=x"),
        ("/v1/calendars", "limit=101"),
        ("/v1/calendars", "next_token="),
        (PATH, "verbose=1"),
        (f"{PATH}/occurrences", "limit=0"),
        (f"{PATH}/occurrences", "scheduled_after=now"),
        (f"{PATH}/occurrences", "scheduled_before=2020-01-01T00:00:00Z"),
    ],
)
def test_an_error_for_an_invalid_query_parameter_names_the_parameter(api: Gateway, path: str, query: str) -> None:
    """An error for an invalid query parameter returns 400 and names the parameter."""
    answer = api.send("GET", path, query=query)
    assert (answer.status, answer.problem["errors"][0]["field"]) == (400, query.partition("=")[0])


def test_occurrences_of_a_schedule_every_second_are_placed_at_its_creation(api: Gateway) -> None:
    """The first occurrences of a schedule that runs every second are placed at its creation, before the next tick."""
    created(api, cron="* * * * * *", task={"type": "report", "tags": {"x": "y"}})
    placed = api.send("GET", "/v1/tasks", query="tag=x:y&order=asc&limit=5").body["tasks"]
    assert [task["due_at"] for task in placed[:2]] == ["2026-11-21T02:33:08.000Z", "2026-11-21T02:33:09.000Z"]
    assert placed[0]["schedule"]["name"] == "nightly"


def some_schedules(api: Gateway) -> None:
    """Create schedules of two types and teams, and pause every third schedule."""
    for number in range(12):
        task = {"type": ("report", "mail")[number % 2], "tags": {"team": ("dba", "ops")[number // 6], "all": "yes"}}
        name = f"{'ab'[number % 2]}-{number:02}"
        assert api.send("POST", "/v1/schedules", {"name": name, "rate": "1 hours", "task": task}).status == 201
        if number % 3 == 0:
            assert api.send("POST", f"/v1/schedules/{name}/pause").status == 200


def named(api: Gateway, query: str) -> list[str]:
    """The names of all matching schedules; asserts that only the last page may be empty."""
    found: list[str] = []
    token = ""
    while True:
        page = api.send("GET", "/v1/schedules", query=f"{query}{token}")
        assert page.status == 200, page.text
        found += [each["name"] for each in page.body["schedules"]]
        if page.body["next_token"] is None:
            return found
        assert page.body["schedules"]
        token = f"&next_token={page.body['next_token']}"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", lambda _number: True),
        ("state=paused", lambda number: number % 3 == 0),
        ("state=paused&state=active", lambda _number: True),
        ("state=ended", lambda _number: False),
        ("type=mail", lambda number: number % 2 == 1),
        ("tag=team:ops", lambda number: number >= 6),
        ("tag=team:ops&tag=all:yes&type=report&state=active", lambda number: number in {8, 10}),
        ("tag=team:none", lambda _number: False),
        ("name_prefix=b-", lambda number: number % 2 == 1),
        ("name_prefix=a-0&state=paused", lambda number: number in {0, 6}),
        ("name_prefix=b-09", lambda number: number == 9),
        ("name_prefix=c", lambda _number: False),
    ],
)
def test_a_filter_finds_every_schedule_once(api: Gateway, query: str, wanted: Callable[[int], bool]) -> None:
    """A filter finds each matching schedule once, ordered by name, with any page size."""
    some_schedules(api)
    names = sorted(f"{'ab'[number % 2]}-{number:02}" for number in range(12) if wanted(number))
    for limit in (1, 2, 5, 100):
        assert named(api, f"limit={limit}&{query}".removesuffix("&")) == names


def test_a_page_of_schedules_reads_a_limited_number(api: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page reads a limited number of schedules, so if few of these match, the page is short and has a token."""
    monkeypatch.setattr("duetime.services.schedules.manage.MAX_EXAMINED", 4)
    monkeypatch.setattr("duetime.services.schedules.manage.MAX_PAGE", 2)
    some_schedules(api)
    page = api.send("GET", "/v1/schedules", query="name_prefix=a&tag=team:ops")
    assert ([each["name"] for each in page.body["schedules"]], page.body["next_token"] is None) == (["a-06"], False)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("state=asleep", "state"),
        ("state=", "state"),
        ("type=a%20b", "type"),
        ("type=a&type=b", "type"),
        ("tag=team", "tag"),
        ("tag=a:1&tag=a:2", "tag"),
        ("name_prefix=%2A", "name_prefix"),
        ("name_prefix=", "name_prefix"),
    ],
)
def test_an_error_for_an_invalid_schedule_filter_names_the_parameter(api: Gateway, query: str, parameter: str) -> None:
    """An error for an invalid filter names the parameter."""
    answer = api.send("GET", "/v1/schedules", query=query)
    assert (answer.status, set(answer.faults)) == (400, {parameter})


def test_a_page_token_is_rejected_with_another_filter(api: Gateway) -> None:
    """A page token is refused with another filter, so that no schedule is missed."""
    some_schedules(api)
    token = api.send("GET", "/v1/schedules", query="type=mail&limit=2").body["next_token"]
    assert api.send("GET", "/v1/schedules", query=f"type=report&limit=2&next_token={token}").status == 400


def test_a_manual_run_can_have_its_own_payload_and_due_time(api: Gateway) -> None:
    """A manual run can have its own payload (even null) and due time. The schedule's payload does not change."""
    before = created(api)
    run = api.send("POST", f"{PATH}/run", {"payload": {"rows": [1]}, "due_at": "2026-12-01T09:00:00Z"})
    assert (run.status, run.body["payload"], run.body["due_at"]) == (201, {"rows": [1]}, "2026-12-01T09:00:00.000Z")
    assert run.body["state"] == "scheduled"
    later = api.send("POST", f"{PATH}/run", {"delay_seconds": 90, "payload": None}).body
    assert (later["payload"], later["due_at"]) == (None, "2026-11-21T02:34:37.250Z")
    soon = api.send("POST", f"{PATH}/run", {"delay_seconds": 0.2901}).body
    assert soon["due_at"] == "2026-11-21T02:33:07.541Z"
    past = api.send("POST", f"{PATH}/run", {"due_at": "2020-01-01T00:00:00Z"}).body
    assert (past["payload"], past["due_at"]) == ({"a": [1, None]}, "2026-11-21T02:33:07.250Z")
    assert api.send("GET", PATH).body["task"] == before["task"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"due_at": "2026-12-01T09:00:00Z", "delay_seconds": 5}, "delay_seconds"),
        ({"due_at": "2037-12-01T09:00:00Z"}, "due_at"),
        ({"due_at": "soon"}, "due_at"),
        ({"delay_seconds": -1}, "delay_seconds"),
        ({"payload": "x" * 1_048_576}, "payload"),
        ({"payload": {"a": "<duetime.nothing>"}}, "payload.a"),
        ({"type": "mail"}, "type"),
    ],
)
def test_an_error_for_an_invalid_manual_run_names_the_field(api: Gateway, body: dict[str, Any], field: str) -> None:
    """An error for an invalid manual run names the field, and no task is created."""
    created(api)
    before = api.listed()
    answer = api.send("POST", f"{PATH}/run", body)
    assert (answer.status, set(answer.faults)) == (422, {field})
    assert api.listed() == before


def test_a_manual_run_of_a_topology_cannot_have_its_own_payload(api: Gateway) -> None:
    """A manual run of a topology's schedule can have its own time, but not its own payload."""
    graph = {"nodes": {"a": {"type": "echo"}}}
    task = {"type": "graph", "target": {"kind": "topology"}, "payload": graph}
    assert api.send("POST", "/v1/schedules", {"name": "nightly", "rate": "1 hours", "task": task}).status == 201
    assert set(api.send("POST", f"{PATH}/run", {"payload": graph}).faults) == {"payload"}
    assert api.send("POST", f"{PATH}/run", {"delay_seconds": 60}).status == 201


def test_a_repeated_run_with_a_payload_is_the_same_run(api: Gateway) -> None:
    """Repeating a manual run with the same key returns the same run, and a different payload or time is refused."""
    created(api)
    body = {"payload": {"rows": 1}, "delay_seconds": 60}
    first, again = (api.send("POST", f"{PATH}/run", body, {"Idempotency-Key": "one"}) for _ in range(2))
    assert (first.status, again.status, again.body["id"]) == (201, 201, first.body["id"])
    for other in ({**body, "payload": 2}, {**body, "delay_seconds": 61}, None):
        answer = api.send("POST", f"{PATH}/run", other, {"Idempotency-Key": "one"})
        assert (answer.status, answer.problem["code"]) == (422, "idempotency_key_reused")
