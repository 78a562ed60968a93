"""A schedule's history lists each action with its actor, time and reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import ACTIONS_INLINE
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = "/v1/schedules/nightly"
NIGHTLY = {"name": "nightly", "cron": "0 3 * * *", "task": {"type": PLAIN}}


@pytest.fixture
def scenario() -> Iterator[Scenario]:
    """An account with one schedule."""
    with Scenario() as account:
        assert account.ask("POST", "/v1/schedules", NIGHTLY).status == 201
        yield account


def events(scenario: Scenario) -> list[dict[str, Any]]:
    """The schedule's events as the API returns them."""
    found: list[dict[str, Any]] = scenario.ask("GET", f"{PATH}/events").body["events"]
    return found


def test_the_history_lists_each_action_with_actor_time_and_reason(scenario: Scenario) -> None:
    """In the history, an update names the changed fields, a run its task, and a backfill its id."""
    changes = {"cron": "0 4 * * *", "timezone": "Europe/London", "task": {"timeout_seconds": 9}}
    scenario.ask("PATCH", PATH, changes, query="reason=too+early")
    scenario.ask("POST", f"{PATH}/pause", {"reason": "the printer is broken"})
    scenario.ask("POST", f"{PATH}/resume", {"reason": "repaired"})
    task = scenario.ask("POST", f"{PATH}/run", {"reason": "to see"}).body
    period = {"scheduled_after": "2026-11-01T00:00:00Z", "scheduled_before": "2026-11-20T00:00:00Z", "per_minute": 1}
    backfill = scenario.ask("POST", f"{PATH}/backfills", period).body
    scenario.ask("DELETE", f"{PATH}/backfills/{backfill['id']}")
    found = events(scenario)
    assert [(each["type"], each["reason"]) for each in found] == [
        ("created", None),
        ("updated", "too early"),
        ("paused", "the printer is broken"),
        ("resumed", "repaired"),
        ("run_requested", "to see"),
        ("backfill_requested", None),
        ("backfill_cancelled", None),
    ]
    assert found[1]["fields"] == ["cron", "task.timeout_seconds", "timezone"]
    assert [(each["field"], each["before"], each["after"]) for each in found[1]["values"]] == [
        ("cron", "0 3 * * *", "0 4 * * *"),
        ("task.timeout_seconds", "60", "9"),
        ("timezone", "UTC", "Europe/London"),
    ]
    assert found[4]["task_id"] == task["id"]
    assert found[5]["backfill_id"] == found[6]["backfill_id"] == backfill["id"]
    assert {each["actor"]["name"] for each in found} == {"local"}
    assert [each["at"] for each in found] == sorted(each["at"] for each in found)
    versions = [each["version"] for each in found[1:]]
    assert versions == sorted(versions)


@pytest.mark.parametrize(
    ("change", "fields", "values"),
    [
        ({"dialect": "vixie"}, ["dialect"], [("dialect", "cron", "vixie")]),
        ({"task": {"priority": "normal"}}, ["task.priority"], []),
        ({"task": {"priority": "high"}}, ["task.priority"], [("task.priority", "normal", "high")]),
    ],
)
def test_an_update_names_its_field_whatever_the_change(
    scenario: Scenario, change: dict[str, Any], fields: list[str], values: list[tuple[str, str, str]]
) -> None:
    """An update names the field that it changed, also if it sets the dialect or pins an option's built-in value."""
    assert scenario.ask("PATCH", PATH, change).status == 200
    updated = events(scenario)[1]
    assert updated["fields"] == fields
    assert [(each["field"], each["before"], each["after"]) for each in updated["values"]] == values


def test_requests_without_an_effect_are_not_in_the_history(scenario: Scenario) -> None:
    """Repeated requests, updates with unchanged values and refused requests are not in the history."""
    for _ in range(2):
        scenario.ask("POST", f"{PATH}/pause", {"reason": "broken"})
    scenario.ask("PATCH", PATH, {"cron": "0 3 * * *"})
    assert scenario.ask("PATCH", PATH, {"cron": "never"}).status == 422
    scenario.ask("POST", f"{PATH}/pause", {"reason": "not again"}, headers={"if-match": '"999"'})
    assert [each["type"] for each in events(scenario)] == ["created", "paused"]


def test_a_pause_by_the_system_names_it_as_the_actor() -> None:
    """If a failure pauses the schedule, the event's actor is the system and its reason names the task."""
    with Scenario() as account:
        account.target = _fail
        body = {**NIGHTLY, "rate": "1 hour", "pause_on_failure": True}
        del body["cron"]
        body["task"] = {"type": PLAIN, "retry": {"max_attempts": 1}}
        assert account.ask("POST", "/v1/schedules", body).status == 201
        assert account.run_until(lambda: len(events(account)) > 1, within=2 * HOUR, step=MINUTE)
        paused = events(account)[1]
        assert (paused["type"], paused["actor"]) == ("paused", {"kind": "system", "name": None})
        assert "failed" in paused["reason"]


def test_the_latest_actions_are_kept_and_the_others_counted(scenario: Scenario) -> None:
    """The creation and the latest events are kept, and `dropped` counts the other events."""
    for number in range(ACTIONS_INLINE + 3):
        scenario.ask("POST", f"{PATH}/pause", {"reason": f"reason {number}"})
    found = scenario.ask("GET", f"{PATH}/events").body
    assert (len(found["events"]), found["dropped"]) == (ACTIONS_INLINE + 1, 3)
    assert found["events"][0]["type"] == "created"
    assert found["events"][-1]["reason"] == f"reason {ACTIONS_INLINE + 2}"


def test_a_new_schedule_of_a_deleted_schedules_name_has_its_own_history(scenario: Scenario) -> None:
    """Deleting a schedule deletes its history, so a new schedule with the same name has its own history."""
    scenario.ask("POST", f"{PATH}/pause", {"reason": "broken"})
    scenario.ask("DELETE", PATH)
    assert scenario.ask("GET", f"{PATH}/events").status == 404
    assert scenario.ask("POST", "/v1/schedules", NIGHTLY).status == 201
    assert [each["type"] for each in events(scenario)] == ["created"]


def test_the_triggers_writes_do_not_change_the_history(scenario: Scenario) -> None:
    """The trigger's writes do not change a schedule's history."""
    scenario.ask("PATCH", PATH, {"cron": "* * * * *"})
    scenario.run(3 * MINUTE)
    assert scenario.ask("GET", f"{PATH}/runs").body["runs"], "it has been expanded"
    assert [each["type"] for each in events(scenario)] == ["created", "updated"]


def _fail(_phase: str, _context: object) -> Any:  # noqa: ANN401 - never returns
    raise ValueError("broken")
