"""Tests of notifications, heartbeats and progress, which an external worker reports to the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.domain.conditional_writes import Applied
from duetime.domain.tasks.attempt_results import Deferred
from duetime.domain.tasks.attempt_run import Run
from tests.contract.test_actions import BAD_REPORTS
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Answer, Gateway

ENDPOINT = {"kind": "http", "url": "https://example.org/"}
SUCCESS = {"fence": 1, "outcome": "succeeded", "result": {"rows": 17}}
FAILURE = {"fence": 1, "outcome": "failed", "error": {"type": "Boom", "message": "no"}}
ROUTES = {"notice": "notify", "heartbeat": "heartbeat", "progress": "progress"}


@pytest.fixture
def task(api: Gateway, clock: StandingClock) -> dict[str, Any]:
    """A task whose target has accepted the work, and may report its outcome within a minute."""
    made = api.create({"type": "report", "target": ENDPOINT, "notify_within_seconds": 60})
    claimed = claimed_by_a_worker(made["id"], clock)
    deferred = composed(TaskServices).attempt_reports.outcome_writer.finish(
        Run(claimed, clock.at, clock.at), Deferred(), frozenset()
    )
    assert isinstance(deferred, Applied)
    return read(api, made)


def read(api: Gateway, task: dict[str, Any]) -> dict[str, Any]:
    """The task as the API currently shows it."""
    found: dict[str, Any] = api.send("GET", f"/v1/tasks/{task['id']}").body
    return found


def tell(api: Gateway, task: dict[str, Any], what: str, body: object) -> Answer:
    """Report on a task, and return the response."""
    return api.send("POST", f"/v1/tasks/{task['id']}/{what}", body)


def test_a_deferred_task_shows_the_deadline_for_its_notification(task: dict[str, Any]) -> None:
    """A deferred task is shown as running and as waiting for a notification, and its lease ends at the deadline."""
    assert (task["state"], task["awaiting_notification"]) == ("running", True)
    assert task["lease"] == {"worker": "worker", "expires_at": "2026-11-21T02:34:07.250Z"}


def test_a_notified_success_is_the_outcome(api: Gateway, clock: StandingClock, task: dict[str, Any]) -> None:
    """After a notified success, the task has the result, and is no longer deferred or leased."""
    clock.at += 30_000
    answer = tell(api, task, "notify", SUCCESS)
    assert (answer.status, answer.body["state"], answer.body["result"]) == (200, "succeeded", {"rows": 17})
    assert (answer.body["awaiting_notification"], answer.body["lease"]) == (False, None)
    assert read(api, task) == answer.body


def test_a_notified_outcome_writes_one_line_of_metrics(
    api: Gateway, task: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A notified outcome is counted in one line of metrics, and a report of progress writes no line."""
    capsys.readouterr()
    tell(api, task, "progress", {"fence": 1, "percent": 50, "message": ""})
    assert "_aws" not in capsys.readouterr().out
    tell(api, task, "notify", SUCCESS)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "_aws" in line)
    assert '"tasks_succeeded":[1.0]' in line.replace(" ", "")


def test_a_notified_success_without_a_result_has_a_null_result(api: Gateway, task: dict[str, Any]) -> None:
    """A notified success without a result sets the task's result to null."""
    answer = tell(api, task, "notify", {"fence": 1, "outcome": "succeeded"})
    assert (answer.status, answer.body["state"], answer.body["result"]) == (200, "succeeded", None)


def test_a_task_waits_for_its_next_attempt_after_a_notified_failure(api: Gateway, task: dict[str, Any]) -> None:
    """After a notified failure, the task waits for its next attempt and shows the reported error."""
    answer = tell(api, task, "notify", FAILURE)
    assert (answer.status, answer.body["state"]) == (200, "waiting")
    assert answer.body["error"] == {"type": "Boom", "message": "no"}


def test_an_unretriable_failure_is_the_outcome(api: Gateway, task: dict[str, Any]) -> None:
    """After a notified failure that is not retriable, the task fails without another attempt."""
    answer = tell(api, task, "notify", {**FAILURE, "retriable": False})
    assert (answer.status, answer.body["state"], answer.body["attempt"]) == (200, "failed", 1)


@pytest.mark.parametrize("body", [SUCCESS, FAILURE, {**FAILURE, "retriable": False}])
def test_a_repeated_notification_returns_200_with_the_current_task(
    api: Gateway, task: dict[str, Any], body: dict[str, Any]
) -> None:
    """A repeated notification returns 200 with the current task."""
    first, again = tell(api, task, "notify", body), tell(api, task, "notify", body)
    assert (first.status, again.status, again.body) == (200, 200, first.body)


@pytest.mark.parametrize("other", [{**SUCCESS, "result": 18}, FAILURE, {"fence": 1, "outcome": "succeeded"}])
def test_a_different_notification_is_a_conflict(api: Gateway, task: dict[str, Any], other: dict[str, Any]) -> None:
    """A second notification with a different outcome returns 409, and the task does not change."""
    first = tell(api, task, "notify", SUCCESS).body
    answer = tell(api, task, "notify", other)
    assert (answer.status, answer.problem["code"]) == (409, "outcome_conflict")
    assert "succeeded" in answer.problem["detail"]
    assert read(api, task) == first


@pytest.mark.parametrize(
    ("what", "body"), [("notify", SUCCESS), ("heartbeat", {"fence": 1}), ("progress", {"fence": 1, "percent": 1})]
)
def test_a_report_with_another_fence_is_a_conflict(
    api: Gateway, task: dict[str, Any], what: str, body: dict[str, Any]
) -> None:
    """A report with a different fence returns 409, and the task does not change."""
    for fence in (2, 10**37):
        answer = tell(api, task, what, {**body, "fence": fence})
        assert (answer.status, answer.problem["code"]) == (409, "fence_mismatch")
        assert "running at fence 1" in answer.problem["detail"]
    assert read(api, task) == task


@pytest.mark.parametrize(
    ("what", "body"), [("notify", SUCCESS), ("heartbeat", {"fence": 1}), ("progress", {"fence": 1, "percent": 1})]
)
def test_a_report_after_the_deadline_is_rejected(
    api: Gateway, clock: StandingClock, task: dict[str, Any], what: str, body: dict[str, Any]
) -> None:
    """A report one millisecond after the deadline returns 409, even if no other attempt has begun."""
    clock.at += 60_001
    answer = tell(api, task, what, body)
    assert (answer.status, answer.problem["code"]) == (409, "fence_mismatch")
    assert read(api, task) == task
    clock.at -= 1
    assert tell(api, task, what, body).status == 200


def test_a_report_on_a_task_that_has_not_started_is_rejected(api: Gateway) -> None:
    """A report on a task that has not started is refused with status 409 and the task's state."""
    waiting = api.create({"type": "report", "delay_seconds": 60})
    for what, body in (("notify", SUCCESS), ("heartbeat", {"fence": 1}), ("progress", {"fence": 1, "percent": 1})):
        answer = tell(api, waiting, what, body)
        assert (answer.status, answer.problem["code"]) == (409, "fence_mismatch")
        assert "scheduled" in answer.problem["detail"]


def test_a_heartbeat_restarts_the_deadline_and_returns_the_requested_action(
    api: Gateway, clock: StandingClock, task: dict[str, Any]
) -> None:
    """A heartbeat restarts the deadline, and the response has the action that a user requested."""
    clock.at += 40_000
    assert api.send("POST", f"/v1/tasks/{task['id']}/pause").status == 202
    answer = tell(api, task, "heartbeat", {"fence": 1})
    assert (answer.status, answer.body["requested_action"], answer.body["progress"]) == (200, "pause", None)
    assert answer.body["lease"]["expires_at"] == "2026-11-21T02:34:47.250Z"


def test_reported_progress_is_kept_until_the_next_report(api: Gateway, task: dict[str, Any]) -> None:
    """Reported progress is kept until the next report of progress, and is not removed by heartbeats."""
    answer = tell(api, task, "progress", {"fence": 1, "percent": 40, "message": "half way"})
    assert (answer.status, answer.body["progress"]) == (200, {"percent": 40, "message": "half way"})
    assert tell(api, task, "heartbeat", {"fence": 1}).body["progress"] == {"percent": 40, "message": "half way"}
    assert tell(api, task, "progress", {"fence": 1, "percent": 80}).body["progress"] == {"percent": 80, "message": ""}


@pytest.mark.parametrize(("name", "body", "fields"), [bad for bad in BAD_REPORTS if bad[0] in ROUTES])
def test_an_error_for_an_invalid_report_names_its_faulty_fields(
    api: Gateway, task: dict[str, Any], name: str, body: object, fields: list[str]
) -> None:
    """An invalid report returns 422 with the names of its faulty fields, and the task does not change."""
    answer = tell(api, task, ROUTES[name], body)
    assert (answer.status, list(answer.faults)) == (422, fields)
    assert read(api, task) == task


@pytest.mark.parametrize("what", ROUTES.values())
def test_a_report_without_a_body_or_with_parameters_is_refused(api: Gateway, task: dict[str, Any], what: str) -> None:
    """A report without a body, or with query parameters, is refused."""
    empty = api.send("POST", f"/v1/tasks/{task['id']}/{what}")
    assert (empty.status, empty.problem["code"]) == (400, "body_unreadable")
    asked = api.send("POST", f"/v1/tasks/{task['id']}/{what}", {"fence": 1}, query="fence=1")
    assert (asked.status, list(asked.faults)) == (400, ["fence"])
