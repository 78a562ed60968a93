"""Tests of users' actions on a task: pause, resume, run, retry and roll back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.http.timestamps import instant_of
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.times import MINUTE
from tests.clocks import NOW
from tests.functions.api.world import claimed_by_a_worker, closed_by_a_worker, ended_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Answer, Gateway

ACTIONS = ("pause", "resume", "run", "retry", "rollback")
LATER = {"type": "report", "delay_seconds": 60}
UNDOABLE = {"kind": "http", "url": "https://example.org/", "phases": ["rollback"]}
BOOM = failure("Boom", "no", retriable=False)


def act(api: Gateway, task: str | dict[str, Any], action: str, **request: Any) -> Answer:  # noqa: ANN401 - see `send`
    """Send an action on a task, and return the response."""
    task_id = task if isinstance(task, str) else task["id"]
    return api.send("POST", f"/v1/tasks/{task_id}/{action}", **request)


def test_a_task_that_has_not_started_is_paused(api: Gateway) -> None:
    """A task that has not started is paused at once, and a second pause changes nothing."""
    task = api.create(LATER)
    first, again = act(api, task, "pause"), act(api, task, "pause")
    assert (first.status, first.body["state"], first.headers["ETag"]) == (200, "paused", '"2"')
    assert (again.status, again.body) == (200, first.body)


def test_a_running_task_is_asked_to_pause(api: Gateway, clock: StandingClock) -> None:
    """Pausing a running task returns 202; the task keeps running and shows the request, which a resume withdraws."""
    task = api.create()
    claimed_by_a_worker(task["id"], clock)
    asked = act(api, task, "pause")
    assert (asked.status, asked.body["state"], asked.body["requested_action"]) == (202, "running", "pause")
    assert asked.body["lease"] == {"worker": "worker", "expires_at": "2026-11-21T02:33:37.250Z"}
    resumed = act(api, task, "resume")
    assert (resumed.status, resumed.body["state"], resumed.body["requested_action"]) == (200, "running", None)


def test_a_paused_task_is_resumed_at_its_due_time_or_now(api: Gateway, clock: StandingClock) -> None:
    """A resumed task keeps a due time in the future, and runs now if its due time has passed."""
    task = api.create(LATER)
    act(api, task, "pause")
    in_time = act(api, task, "resume")
    assert (in_time.status, in_time.body["state"], in_time.body["next_at"]) == (200, "scheduled", task["due_at"])
    act(api, task, "pause")
    clock.at += 2 * MINUTE
    late = act(api, task, "resume").body
    assert (late["state"], late["due_at"]) == ("scheduled", task["due_at"])
    assert late["next_at"] == "2026-11-21T02:35:07.250Z"


def test_a_task_is_run_now(api: Gateway) -> None:
    """A waiting or paused task that is run now is due at once, and keeps its id."""
    waiting, paused = api.create(LATER), api.create(LATER)
    act(api, paused, "pause")
    for task in (waiting, paused):
        answer = act(api, task, "run")
        assert (answer.status, answer.body["state"]) == (200, "scheduled")
        assert answer.body["next_at"] == "2026-11-21T02:33:07.250Z"
        assert api.send("GET", f"/v1/tasks/{task['id']}").body == answer.body


def test_a_retried_task_has_all_its_attempts_again(api: Gateway, clock: StandingClock) -> None:
    """A retried task gets its full number of attempts back, its error is cleared, and its fence numbers continue."""
    task = api.create()
    failed = ended_by_a_worker(task["id"], clock, BOOM)
    too_early = act(api, task, "retry")
    assert (too_early.status, too_early.problem["code"]) == (409, "state_conflict")
    assert "failed" in too_early.problem["detail"]
    closed_by_a_worker(failed, clock)
    again = act(api, task, "retry")
    assert again.status == 200
    expected = {"state": "scheduled", "attempt": 0, "fence": 1, "error": None, "finished_at": None}
    assert again.body | expected == again.body


def test_a_repeated_action_returns_the_current_task_without_effect(api: Gateway, clock: StandingClock) -> None:
    """A repeated resume, run or retry returns 200 with the current task, and has no effect."""
    resumed, started, failed = api.create(LATER), api.create(LATER), api.create()
    act(api, resumed, "pause")
    act(api, started, "run")
    closed_by_a_worker(ended_by_a_worker(failed["id"], clock, BOOM), clock)
    for task, action in ((resumed, "resume"), (failed, "retry")):
        first, again = act(api, task, action), act(api, task, action)
        assert (first.status, again.status, again.body) == (200, 200, first.body)
    for task, action in ((resumed, "resume"), (started, "run"), (failed, "retry")):
        clock.at = max(clock.at, instant_of(api.send("GET", f"/v1/tasks/{task['id']}").body["next_at"]))
        claimed_by_a_worker(task["id"], clock)
        before = api.send("GET", f"/v1/tasks/{task['id']}").body
        again = act(api, task, action)
        assert (again.status, again.body["state"], again.body) == (200, "running", before)


def test_a_repeated_pause_or_cancel_with_the_same_version_succeeds(api: Gateway, clock: StandingClock) -> None:
    """A repeated pause or cancel with the same `If-Match` succeeds, even if the first request changed the version."""
    for action, body, requested in (("pause", {}, "pause"), ("cancel", {"force": True}, "cancel")):
        task = api.create()
        claimed_by_a_worker(task["id"], clock)
        tag = {"If-Match": api.send("GET", f"/v1/tasks/{task['id']}").headers["ETag"]}
        first, again = (act(api, task, action, body=body, headers=tag) for _ in range(2))
        assert (first.status, first.body["requested_action"]) == (202, requested)
        assert (again.status, again.body) == (202, first.body)
        other = act(api, task, action, body={**body, "reason": "another one"}, headers=tag)
        assert (other.status, list(other.faults)) == (412, ["If-Match"])


def test_an_ended_task_is_rolled_back(api: Gateway, clock: StandingClock) -> None:
    """Rolling back a successful task that supports rollback returns 202, and a second request is a conflict."""
    task = api.create({"type": "report", "target": UNDOABLE})
    ended_by_a_worker(task["id"], clock, Succeeded(b"1"))
    undone = act(api, task, "rollback")
    assert (undone.status, undone.body["state"], undone.body["lease"]) == (202, "rolling_back", None)
    again = act(api, task, "rollback")
    assert (again.status, again.problem["code"]) == (409, "state_conflict")


def test_a_rollback_that_the_target_does_not_support_is_a_conflict(api: Gateway, clock: StandingClock) -> None:
    """Rolling back a task whose target does not support rollback is a conflict, as the error says."""
    task = api.create({"type": "report", "target": {"kind": "http", "url": "https://example.org/"}})
    ended_by_a_worker(task["id"], clock, Succeeded(b"1"))
    answer = act(api, task, "rollback")
    assert (answer.status, answer.problem["code"]) == (409, "state_conflict")
    assert "does not support rollback" in answer.problem["detail"]


@pytest.mark.parametrize(
    ("action", "state"),
    [
        *[(action, "succeeded") for action in ("pause", "resume", "run", "retry")],
        *[(action, "scheduled") for action in ("retry", "rollback")],
        *[(action, "running") for action in ("retry", "rollback")],
    ],
)
def test_an_action_that_the_state_does_not_allow_is_a_conflict(
    api: Gateway, clock: StandingClock, action: str, state: str
) -> None:
    """An action that the task's state does not allow returns 409 with the state, and the task does not change."""
    task = api.create({"type": "report", "target": UNDOABLE})
    if state == "running":
        claimed_by_a_worker(task["id"], clock)
    if state == "succeeded":
        ended_by_a_worker(task["id"], clock, Succeeded(b"1"))
    before = api.send("GET", f"/v1/tasks/{task['id']}").body
    assert before["state"] == state
    answer = act(api, task, action)
    assert (answer.status, answer.problem["code"]) == (409, "state_conflict")
    assert state in answer.problem["detail"]
    assert api.send("GET", f"/v1/tasks/{task['id']}").body == before


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_accepts_only_a_reason_in_its_body(api: Gateway, action: str) -> None:
    """An action's body may be missing or empty; fields other than `reason` are refused by name."""
    task = api.create(LATER)
    for request, status, field in (
        ({"body": {"reason": "x" * 257}}, 422, "reason"),
        ({"body": {"force": True}}, 422, "force"),
        ({"raw": "[]"}, 422, "body"),
        ({"raw": "{"}, 400, "body"),
        ({"raw": '{"a": NaN}'}, 422, "a"),
        ({"query": "force=true"}, 400, "force"),
    ):
        answer = act(api, task, action, **request)
        assert (answer.status, list(answer.faults)) == (status, [field])
    xml = act(api, task, action, raw="<a/>", headers={"Content-Type": "application/xml"})
    assert (xml.status, xml.problem["code"]) == (415, "media_type_unsupported")
    assert api.send("GET", f"/v1/tasks/{task['id']}").body == task
    for request in ({}, {"raw": ""}, {"raw": " "}, {"raw": "{}"}, {"body": {"reason": "x"}}):
        assert act(api, api.create(LATER), action, **request).status in (200, 409)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_for_another_version_returns_412(api: Gateway, clock: StandingClock, action: str) -> None:
    """An action for a different version returns 412 and changes nothing, and an invalid `If-Match` returns 400."""
    task = api.create({**LATER, "target": UNDOABLE})
    if action == "resume":
        act(api, task, "pause")
    if action in {"retry", "rollback"}:
        clock.at += MINUTE
        ended_by_a_worker(task["id"], clock, BOOM)
    before = api.send("GET", f"/v1/tasks/{task['id']}")
    for tag, status in (('"99"', 412), ("99", 400)):
        refused = act(api, task, action, headers={"If-Match": tag})
        assert (refused.status, list(refused.faults)) == (status, ["If-Match"])
    assert api.send("GET", f"/v1/tasks/{task['id']}").body == before.body
    done = act(api, task, action, headers={"If-Match": before.headers["ETag"]})
    assert (done.status, done.body["version"]) == (202 if action == "rollback" else 200, before.body["version"] + 1)


@pytest.mark.parametrize("action", [*ACTIONS, "notify", "heartbeat", "progress"])
def test_another_owners_task_cannot_be_controlled(api: Gateway, action: str) -> None:
    """Actions on another owner's task, and on unknown or invalid ids, return 404 and change nothing."""
    bodies: dict[str, Any] = {
        "notify": {"fence": 1, "outcome": "succeeded"},
        "heartbeat": {"fence": 1},
        "progress": {"fence": 1, "percent": 1},
    }
    task = api.create(LATER, {"X-Duetime-Owner": "other"})
    for text in (task["id"], str(TaskId.of(NOW, 7, 42)), "1", "batch"):
        answer = act(api, text, action, body=bodies.get(action))
        assert (answer.status, answer.problem["code"]) == (404, "task_not_found")
    assert api.send("GET", f"/v1/tasks/{task['id']}", headers={"X-Duetime-Owner": "other"}).body == task


@pytest.mark.parametrize("action", [*ACTIONS, "notify", "heartbeat", "progress"])
def test_an_action_accepts_only_post(api: Gateway, action: str) -> None:
    """The path of an action returns 405 for all methods except POST."""
    path = f"/v1/tasks/{api.create(LATER)['id']}/{action}"
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        answer = api.send(method, path)
        assert (answer.status, answer.headers["Allow"]) == (405, "POST, OPTIONS")
