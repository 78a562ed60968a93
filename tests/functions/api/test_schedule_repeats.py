"""Tests of schedule requests that are repeated with an idempotency key or with the version that was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import DAY, HOUR, to_iso
from tests.clocks import NOW
from tests.functions.api.test_schedules import NIGHTLY, PATH, controlled, created

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Answer, Gateway

KEY = {"idempotency-key": "k-1"}
PERIOD = {"scheduled_after": to_iso(NOW - 10 * DAY), "scheduled_before": to_iso(NOW - DAY), "per_minute": 1}
REPLAYED = "Idempotent-Replayed"
ACTIONS: list[tuple[str, dict[str, Any] | None]] = [("run", None), ("backfills", PERIOD)]


def names(api: Gateway) -> list[str]:
    """The names of all schedules."""
    return [each["name"] for each in api.send("GET", "/v1/schedules").body["schedules"]]


def is_replay(answer: Answer) -> bool:
    """Whether a response has the header of a replay."""
    return bool(answer.headers.get(REPLAYED) == "true")


@pytest.mark.parametrize("name", ["nightly", None], ids=["named", "unnamed"])
def test_a_repeated_creation_returns_the_schedules_current_state(
    api: Gateway, clock: StandingClock, name: str | None
) -> None:
    """Repeating a schedule's creation returns its current state, even if the schedule's name was generated."""
    body = {key: value for key, value in NIGHTLY.items() if key != "name" or name}
    first = api.send("POST", "/v1/schedules", body, KEY)
    assert (first.status, is_replay(first)) == (201, False), first.text
    clock.at += HOUR
    again = api.send("POST", "/v1/schedules", body, KEY)
    assert (again.status, is_replay(again), again.location) == (201, True, first.location)
    assert again.body["created_at"] == first.body["created_at"]
    assert names(api) == [first.body["name"]]
    other = api.send("POST", "/v1/schedules", {**body, "overlap": "allow_all"}, KEY)
    assert (other.status, other.problem["code"]) == (422, "idempotency_key_reused")


def test_a_name_conflict_does_not_use_up_the_key(api: Gateway) -> None:
    """If a schedule's name is taken, the conflict does not use up the key.

    The key can be used when the name is free.
    """
    created(api, cron="0 5 * * *")
    for _ in range(2):
        taken = api.send("POST", "/v1/schedules", NIGHTLY, KEY)
        assert (taken.status, taken.problem["code"]) == (409, "schedule_exists")
    api.send("DELETE", PATH)
    assert api.send("POST", "/v1/schedules", NIGHTLY, KEY).status == 201


def test_a_refused_creation_does_not_use_up_its_key(api: Gateway) -> None:
    """A refused creation does not use up its key, so that a corrected request can use the key."""
    assert api.send("POST", "/v1/schedules", {**NIGHTLY, "cron": "0 0 30 2 *"}, KEY).status == 422
    assert api.send("POST", "/v1/schedules", NIGHTLY, KEY).status == 201


def test_a_repeated_creation_of_a_deleted_schedule_returns_404(api: Gateway) -> None:
    """Repeating the creation of a deleted schedule returns 404, and 409 while another schedule has the name."""
    api.send("POST", "/v1/schedules", NIGHTLY, KEY)
    api.send("DELETE", PATH)
    assert api.send("POST", "/v1/schedules", NIGHTLY, KEY).status == 404
    created(api)
    taken = api.send("POST", "/v1/schedules", NIGHTLY, KEY)
    assert (taken.status, taken.problem["code"]) == (409, "schedule_exists")
    api.send("DELETE", PATH)
    assert api.send("POST", "/v1/schedules", NIGHTLY, KEY).status == 404
    assert names(api) == []


def test_a_repeated_run_request_returns_the_same_task(api: Gateway, clock: StandingClock) -> None:
    """Repeating a run request returns the same task, which counts as one run, and another key runs another task."""
    created(api)
    first = api.send("POST", f"{PATH}/run", None, KEY)
    clock.at += HOUR
    again = api.send("POST", f"{PATH}/run", None, KEY)
    assert (first.status, again.status, is_replay(first), is_replay(again)) == (201, 201, False, True)
    assert (again.body["id"], again.location) == (first.body["id"], first.location)
    other = api.send("POST", f"{PATH}/run", None, {"idempotency-key": "k-2"})
    assert other.body["id"] != first.body["id"]
    events = api.send("GET", f"{PATH}/events").body["events"]
    assert [each["type"] for each in events].count("run_requested") == 2
    created(api, name="other")
    assert api.send("POST", "/v1/schedules/other/run", None, KEY).status == 422


def test_a_repeated_backfill_request_returns_the_same_backfill(api: Gateway, clock: StandingClock) -> None:
    """Repeating a backfill request returns the same backfill, and a repeat with a different body is refused."""
    created(api)
    first = api.send("POST", f"{PATH}/backfills", PERIOD, KEY)
    clock.at += HOUR
    again = api.send("POST", f"{PATH}/backfills", PERIOD, KEY)
    assert (first.status, again.status, is_replay(first), is_replay(again)) == (201, 201, False, True)
    assert (again.body["id"], again.location) == (first.body["id"], first.location)
    assert len(api.send("GET", f"{PATH}/backfills").body["backfills"]) == 1
    assert api.send("POST", f"{PATH}/backfills", {**PERIOD, "per_minute": 2}, KEY).status == 422
    assert api.send("POST", f"{PATH}/backfills", PERIOD, {"idempotency-key": "k-2"}).body["id"] != first.body["id"]


@pytest.mark.parametrize(("action", "body"), ACTIONS, ids=["run", "backfill"])
def test_a_run_with_an_earlier_version_returns_412(api: Gateway, action: str, body: dict[str, Any] | None) -> None:
    """A run or backfill request with an earlier version in `If-Match` returns 412.

    A repeat with the same key returns the first request's task or backfill, whatever the version.
    """
    tag = api.send("POST", "/v1/schedules", NIGHTLY).headers["ETag"]
    done = api.send("POST", f"{PATH}/{action}", body, {**KEY, "if-match": tag})
    assert done.status == 201, done.text
    api.send("PATCH", PATH, {"overlap": "allow_all"})
    late = api.send("POST", f"{PATH}/{action}", body, {"if-match": tag})
    assert (late.status, late.problem["code"]) == (412, "version_mismatch")
    again = api.send("POST", f"{PATH}/{action}", body, {**KEY, "if-match": tag})
    assert (again.status, again.body["id"]) == (201, done.body["id"])
    now = api.send("GET", PATH).headers["ETag"]
    assert api.send("POST", f"{PATH}/{action}", body, {"if-match": now}).status == 201


def test_a_get_of_a_schedule_with_its_current_etag_returns_304(api: Gateway) -> None:
    """GET with the current ETag returns 304. A run of the schedule changes its ETag, but not its version."""
    created(api)
    read = api.send("GET", PATH)
    unchanged = api.send("GET", PATH, headers={"if-none-match": f'"0", {read.headers["ETag"]}'})
    assert (unchanged.status, unchanged.text, unchanged.headers["ETag"]) == (304, "", read.headers["ETag"])
    controlled(api, "run")
    later = api.send("GET", PATH, headers={"if-none-match": read.headers["ETag"]})
    assert (later.status, later.body["version"], later.headers["ETag"] != read.headers["ETag"]) == (200, 1, True)
    assert api.send("PATCH", PATH, {"overlap": "allow_all"}, {"if-match": read.headers["ETag"]}).status == 200
    assert api.send("PATCH", PATH, {"overlap": "skip"}, {"if-match": '"2"'}).status == 200


def test_a_repeated_pause_or_resume_returns_200_and_changes_nothing(api: Gateway) -> None:
    """Repeating a pause or a resume returns 200 and changes no field."""
    created(api)
    paused = [controlled(api, "pause", {"reason": "x"}).body for _ in range(2)]
    resumed = [controlled(api, "resume") for _ in range(2)]
    assert (paused[0]["state"], [each.status for each in resumed]) == ("paused", [200, 200])
    assert paused[0] == paused[1]
    assert resumed[0].body == resumed[1].body
