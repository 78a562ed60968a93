"""All schedules with certain task tags are paused or resumed in one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.limits import MAX_PAGE
from tests.scenarios.scenario import MINUTE, PLAIN, Scenario
from tests.scenarios.schedules import is_of_a_schedule
from tests.scenarios.test_bulk_operations import killing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_testing.simulation.faults import Call

DBA = {"filter": {"tags": {"team": "dba"}}, "reason": "a release"}
NAMES = [f"s{number}" for number in range(6)]


@pytest.fixture
def scenario() -> Iterator[Scenario]:
    """An account with six schedules, of which every other schedule has the team tag `dba`."""
    with Scenario() as scenario:
        for number, name in enumerate(NAMES):
            tags = {"team": "dba" if number % 2 else "web", "tier": "1"}
            body = {"name": name, "cron": "0 0 1 1 *", "task": {"type": PLAIN, "tags": tags}}
            assert scenario.ask("POST", "/v1/schedules", body).status == 201
        yield scenario


def paused(scenario: Scenario) -> dict[str, str]:
    """The paused schedules, with their reasons."""
    listed = scenario.ask("GET", "/v1/schedules").body["schedules"]
    return {each["name"]: each["paused_reason"] for each in listed if each["state"] == "paused"}


def test_the_schedules_with_a_tag_are_paused_and_resumed(scenario: Scenario) -> None:
    """Active schedules with all the tags are paused with the given reason; schedules already paused do not change."""
    assert scenario.ask("POST", "/v1/schedules/s1/pause", {"reason": "another"}).status == 200
    answer = scenario.ask("POST", "/v1/schedules/pause", DBA)
    assert (answer.status, answer.body["examined"], answer.body["matched"], answer.body["affected"]) == (200, 6, 2, 2)
    assert paused(scenario) == {"s1": "another", "s3": "a release", "s5": "a release"}
    event = scenario.ask("GET", "/v1/schedules/s3/events").body["events"][-1]
    assert (event["type"], event["reason"]) == ("paused", "a release")
    both = {"filter": {"tags": {"team": "dba", "tier": "2"}}}
    assert scenario.ask("POST", "/v1/schedules/resume", both).body["affected"] == 0
    assert scenario.ask("POST", "/v1/schedules/resume", DBA).body["affected"] == 3
    assert not paused(scenario)


def test_schedules_that_cannot_be_resumed_are_counted_by_reason(scenario: Scenario) -> None:
    """If one schedule's calendar was deleted, the other schedules resume, and `refused` has a count for the reason."""
    assert scenario.ask("PUT", "/v1/calendars/off", {"dates": ["2030-12-25"]}).status == 201
    scenario.ask("POST", "/v1/schedules/pause", DBA)
    # The deletion has found no schedule that uses the calendar.

    def name_it(_call: Call) -> None:
        assert scenario.users.ask("PATCH", "/v1/schedules/s3", {"calendars": ["off"]}) is not None

    scenario.once(lambda call: call.operation == "put_item" and "off" in str(call.request["Item"]), name_it)
    assert scenario.ask("DELETE", "/v1/calendars/off").status in {200, 204}
    answer = scenario.ask("POST", "/v1/schedules/resume", DBA).body
    assert (answer["affected"], answer["refused"]) == (2, {"fields_invalid": 1})
    assert list(paused(scenario)) == ["s3"]


@pytest.mark.parametrize("change", ["other tags", "another one"])
def test_a_schedule_that_lost_its_tag_meanwhile_is_skipped(scenario: Scenario, change: str) -> None:
    """A schedule that no longer has the tag stays active and is not counted."""
    web = {"type": PLAIN, "tags": {"team": "web"}}

    def change_it(_call: Call) -> None:
        if change == "other tags":
            assert scenario.users.ask("PATCH", "/v1/schedules/s3", {"task": web}) is not None
            return
        assert scenario.users.ask("DELETE", "/v1/schedules/s3") is not None
        body = {"name": "s3", "cron": "0 0 1 1 *", "task": web}
        assert scenario.users.ask("POST", "/v1/schedules", body) is not None

    # The list has been read, and each schedule is now read separately.
    scenario.once(lambda call: call.operation == "query" and (call.partition or "").endswith("#s3"), change_it)
    answer = scenario.ask("POST", "/v1/schedules/pause", DBA).body
    assert (answer["matched"], answer["affected"], answer["refused"]) == (2, 2, {})
    assert sorted(paused(scenario)) == ["s1", "s5"]
    assert scenario.ask("GET", "/v1/schedules/s3").body["task"]["tags"]["team"] == "web"


def test_many_schedules_are_paused_in_the_background_despite_a_crash(scenario: Scenario) -> None:
    """If the store is slow, a bulk operation pauses all schedules, even if its function dies once."""

    def writes_a_schedule(call: Call) -> bool:
        return call.operation in {"put_item", "update_item"} and is_of_a_schedule(call)

    calls: list[Call] = []
    scenario.before_call = killing("bulk", 8, calls)
    scenario.slow(writes_a_schedule, 1_300)
    answer = scenario.ask("POST", "/v1/schedules/pause", {"filter": {"tags": {"tier": "1"}}})
    assert answer.status == 202, answer.body
    assert (answer.body["kind"], answer.body["topology_id"]) == ("pause", None)
    path = f"/v1/bulk-operations/{answer.body['id']}"
    assert scenario.run_until(lambda: scenario.ask("GET", path).body["state"] == "succeeded", 10 * MINUTE, 5_000)
    assert len(calls) > 8
    assert sorted(paused(scenario)) == NAMES


@pytest.mark.slow
def test_schedules_on_several_pages_are_resumed(scenario: Scenario) -> None:
    """The request continues after each page of schedules, and examines each schedule once."""
    for number in range(MAX_PAGE):
        task = {"type": PLAIN, "tags": {"team": "web" if number else "last"}}
        body = {"name": f"a{number:03}", "cron": "0 0 1 1 *", "task": task}
        assert scenario.ask("POST", "/v1/schedules", body).status == 201
    assert scenario.ask("POST", "/v1/schedules/pause", DBA).body["affected"] == 3
    answer = scenario.ask("POST", "/v1/schedules/resume", DBA).body
    assert (answer["examined"], answer["affected"]) == (MAX_PAGE + len(NAMES), 3)
