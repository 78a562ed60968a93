from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.api import BulkExecutorServices
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.attempt_results import Failed
from tests.functions.api.world import closed_by_a_worker, ended_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

LETTERS = "/v1/tasks"
REDRIVE = "/v1/tasks/retry"
DELETE = "/v1/tasks/delete"


def gave_up(api: Gateway, clock: StandingClock, error: str = "Boom", **fields: Any) -> str:  # noqa: ANN401 - fields of a task
    """Create a task whose only attempt fails, and return its id."""
    task_id: str = api.create({"type": "report", "retry": {"max_attempts": 1}, **fields})["id"]
    ended = ended_by_a_worker(task_id, clock, Failed(TaskError(error, "no such row")))
    if ended.finished_at is None:
        closed_by_a_worker(ended, clock)
    return task_id


def states(api: Gateway, *ids: str) -> list[str]:
    """The states of these tasks, as the API shows them."""
    return [api.send("GET", f"/v1/tasks/{each}").body["state"] for each in ids]


def listed(api: Gateway, query: str = "") -> list[str]:
    """The ids on a page of failed tasks."""
    return [task["id"] for task in api.send("GET", LETTERS, query=f"state=failed&{query}".rstrip("&")).body["tasks"]]


def test_dead_letters_are_the_callers_failed_tasks(api: Gateway, clock: StandingClock) -> None:
    """The list of failed tasks has only the caller's failed tasks, each with its error."""
    boom, lost = gave_up(api, clock), gave_up(api, clock, "WorkerLost", type="mail", tags={"team": "dba"})
    api.create()
    ended_by_a_worker(api.create()["id"], clock, Failed(TaskError("Boom", "try again")))
    page = api.send("GET", LETTERS, query="state=failed&order=asc").body
    assert [(task["id"], task["error"]["type"], task["state"]) for task in page["tasks"]] == [
        (boom, "Boom", "failed"),
        (lost, "WorkerLost", "failed"),
    ]
    assert listed(api, "error_type=Boom") == [boom]
    assert listed(api, "type=mail&tag=team:dba") == [lost]
    assert listed(api, "due_after=2036-01-01T00:00:00Z") == []
    other = api.send("GET", LETTERS, headers={"X-Duetime-Owner": "you"})
    assert (other.body["tasks"], other.body["next_token"]) == ([], None)


def test_pages_of_failed_tasks_continue_by_token(api: Gateway, clock: StandingClock) -> None:
    """Pages of failed tasks continue by token, and a token from another list is refused."""
    ids = [gave_up(api, clock) for _ in range(3)]
    first = api.send("GET", LETTERS, query="state=failed&limit=2&order=asc").body
    assert [task["id"] for task in first["tasks"]] == ids[:2]
    assert listed(api, f"order=asc&next_token={first['next_token']}") == ids[2:]
    assert api.send("GET", LETTERS, query=f"state=failed&error_type=x&next_token={first['next_token']}").status == 400


def test_a_retried_task_is_no_longer_a_dead_letter(api: Gateway, clock: StandingClock) -> None:
    """A failed task that is retried is no longer in the list of failed tasks."""
    task = gave_up(api, clock)
    assert api.send("POST", f"/v1/tasks/{task}/retry").body["state"] == "scheduled"
    assert listed(api) == []


def test_dead_letters_are_redriven_by_a_filter(api: Gateway, clock: StandingClock) -> None:
    """A retry by filter restarts matching failed tasks with their first attempt, and changes no other task."""
    boom, other, mail = gave_up(api, clock), gave_up(api, clock, "Other"), gave_up(api, clock, type="mail")
    waiting = api.create({"type": "report", "delay_seconds": 60})["id"]
    answer = api.send("POST", REDRIVE, {"filter": {"type": "report", "error_type": "Boom"}})
    assert (answer.status, answer.body) == (
        200,
        {"examined": 3, "matched": 1, "affected": 1, "refused": {}, "next_token": None, "confirmation_token": None},
    )
    assert states(api, boom, other, mail) == ["scheduled", "failed", "failed"]
    assert api.send("GET", f"/v1/tasks/{boom}").body["attempt"] == 0
    assert api.send("GET", f"/v1/tasks/{waiting}").body["version"] == 1


def test_all_dead_letters_are_redriven_page_by_page(api: Gateway, clock: StandingClock) -> None:
    """With `all`, all failed tasks are retried page by page, and a dry run only counts the tasks."""
    ids = [gave_up(api, clock) for _ in range(5)]
    everything = {"filter": {}, "all": True}
    assert api.send("POST", REDRIVE, {**everything, "dry_run": True}).body["matched"] == 5
    assert set(states(api, *ids)) == {"failed"}
    first = api.send("POST", REDRIVE, {**everything, "limit": 3, "order": "asc"}).body
    assert states(api, *ids) == ["scheduled"] * 3 + ["failed"] * 2
    last = api.send("POST", REDRIVE, {**everything, "order": "asc", "next_token": first["next_token"]}).body
    assert (first["affected"], last["affected"], last["next_token"]) == (3, 2, None)
    assert listed(api) == []


def test_a_redrive_does_not_exceed_its_rate(api: Gateway, clock: StandingClock) -> None:
    """With `per_second` 2, retrying three tasks takes 1.5 s and continues after the response."""
    for _ in range(3):
        gave_up(api, clock)
    began = clock.at
    answer = api.send("POST", REDRIVE, {"filter": {}, "all": True, "per_second": 2})
    assert (answer.status, answer.body["affected"], clock.at - began) == (202, 2, 1_000)
    composed(BulkExecutorServices).executor.carry_out(TaskId(answer.body["id"]), "holder")
    done = api.send("GET", answer.location).body
    assert (done["state"], done["affected"], clock.at - began) == ("succeeded", 3, 1_500)


def test_a_failed_task_with_unfinished_follow_up_is_counted_as_refused(api: Gateway, clock: StandingClock) -> None:
    """A failed task whose follow-up steps are not done yet is counted as refused."""
    task = api.create({"type": "report", "retry": {"max_attempts": 1}, "callback_url": "https://example.org/x"})["id"]
    ended = ended_by_a_worker(task, clock, Failed(TaskError("Boom", "")))
    assert ended.finished_at is None
    assert api.send("POST", REDRIVE, {"filter": {"type": "report"}}).body["refused"] == {"state_conflict": 1}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["filter"]),
        ({"filter": {}}, ["filter"]),
        ({"filter": {"type": "report"}, "all": True}, ["all"]),
        ({"filter": {"state": "failed"}}, ["filter.state"]),
        ({"filter": {"error_type": ""}}, ["filter.error_type"]),
        ({"filter": {"error_type": "\x00"}}, ["filter.error_type"]),
        ({"filter": {"error_type": 7}}, ["filter.error_type"]),
        ({"filter": {"type": "report"}, "force": True}, ["force"]),
        ({"filter": {"type": "report"}, "next_token": "x"}, ["next_token"]),
        ({"filter": {"type": "report"}, "per_second": 1e400}, ["per_second"]),
    ],
)
def test_an_error_for_an_invalid_redrive_names_each_faulty_field(
    api: Gateway, clock: StandingClock, body: dict[str, Any], fields: list[str]
) -> None:
    """An invalid retry by filter names each faulty field, and no task is retried."""
    task = gave_up(api, clock)
    refused = api.send("POST", REDRIVE, body)
    assert (refused.status, list(refused.faults)) == (422, fields)
    assert states(api, task) == ["failed"]


def test_ended_tasks_are_deleted_by_a_filter(api: Gateway, clock: StandingClock) -> None:
    """A deletion by filter for an error deletes only failed tasks with this error."""
    boom, other = [gave_up(api, clock) for _ in range(3)], gave_up(api, clock, "Other")
    waiting = api.create({"type": "report", "delay_seconds": 60})["id"]
    wanted = {"filter": {"state": "failed", "error_type": "Boom"}}
    counted = api.send("POST", DELETE, {**wanted, "dry_run": True}).body
    assert (counted["matched"], len(listed(api))) == (3, 4)
    late = gave_up(api, clock)
    done = api.send("POST", DELETE, {**wanted, "confirmation_token": counted["confirmation_token"]})
    assert (done.status, done.body["affected"], done.body["refused"]) == (200, 3, {})
    assert {api.send("GET", f"/v1/tasks/{each}").status for each in boom} == {404}
    assert set(listed(api)) == {other, late}
    assert states(api, waiting) == ["scheduled"]
    assert api.send("POST", DELETE, wanted).body["affected"] == 1


def test_without_a_state_every_ended_task_that_matches_is_deleted(api: Gateway, clock: StandingClock) -> None:
    """A deletion without a state deletes all ended tasks that match, and does not count open tasks."""
    failed, open_ = gave_up(api, clock, name="old"), api.create({"type": "report", "name": "old"})["id"]
    cancelled = api.create({"type": "report", "name": "old"})["id"]
    api.send("POST", f"/v1/tasks/{cancelled}/cancel")
    done = api.send("POST", DELETE, {"filter": {"name": "old"}}).body
    assert (done["matched"], done["affected"]) == (2, 2)
    assert {api.send("GET", f"/v1/tasks/{each}").status for each in (failed, cancelled)} == {404}
    assert states(api, open_) == ["scheduled"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"filter": {}}, ["filter"]),
        ({"filter": {"state": "running"}}, ["filter.state"]),
        ({"filter": {"state": ["failed", "scheduled"]}}, ["filter.state"]),
        ({"filter": {"type": "report"}, "all": True}, ["all"]),
    ],
)
def test_an_error_for_an_ambiguous_deletion_names_each_faulty_field(
    api: Gateway, clock: StandingClock, body: dict[str, Any], fields: list[str]
) -> None:
    """An ambiguous deletion by filter names each faulty field, and no task is deleted."""
    task = gave_up(api, clock)
    refused = api.send("POST", DELETE, body)
    assert (refused.status, list(refused.faults)) == (422, fields)
    assert states(api, task) == ["failed"]


@pytest.mark.parametrize("query", ["state=dead", "ids=x", "error_type=", "limit=0", "order=up", "nonsense=1"])
def test_an_error_for_an_invalid_dead_letter_list_names_the_parameter(api: Gateway, query: str) -> None:
    """An error for an invalid list request names the parameter."""
    refused = api.send("GET", LETTERS, query=query)
    assert (refused.status, list(refused.faults)) == (400, [query.partition("=")[0]])
