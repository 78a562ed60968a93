"""Tests the client's requests for task actions, such as pause and resume, and the commands with their output."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from duetime_client import Client, Conflict, Retries, UnexpectedResponse, Unreachable
from tests.client.deployment import ATTEMPT, FAILED, LOST, STRANGE_FENCE, Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from duetime_client import Task

    Run = Callable[..., Result]

ACTIONS: dict[str, Callable[[Client, str], Task]] = {
    "pause": lambda client, task_id: client.tasks.pause(task_id),
    "resume": lambda client, task_id: client.tasks.resume(task_id),
    "run": lambda client, task_id: client.tasks.run(task_id),
    "retry": lambda client, task_id: client.tasks.retry(task_id),
    "rollback": lambda client, task_id: client.tasks.rollback(task_id),
}
REPORTS: list[tuple[str, Callable[[Client, str], Task], dict[str, object]]] = [
    (
        "notify",
        lambda client, task_id: client.tasks.notify_success(task_id, 1, {"rows": 17}),
        {"fence": 1, "outcome": "succeeded", "result": {"rows": 17}},
    ),
    (
        "notify",
        lambda client, task_id: client.tasks.notify_failure(task_id, 1, "Boom", "no", retriable=False),
        {"fence": 1, "outcome": "failed", "error": {"type": "Boom", "message": "no"}, "retriable": False},
    ),
    ("heartbeat", lambda client, task_id: client.tasks.report_heartbeat(task_id, 1), {"fence": 1}),
    (
        "progress",
        lambda client, task_id: client.tasks.report_progress(task_id, 1, 40, "half way"),
        {"fence": 1, "percent": 40, "message": "half way"},
    ),
]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_a_post_without_a_body(client: Client, deployment: Deployment, action: str) -> None:
    """Each method sends a POST without a body to the action's address, and returns the resulting task."""
    task = client.tasks.create("report")
    controlled = ACTIONS[action](client, task.id)
    request = deployment.received[-1]
    assert (request.method, request.path, request.body) == ("POST", f"/stage/v1/tasks/{task.id}/{action}", b"")
    assert (controlled.version, controlled.etag) == (2, '"2"')


def test_deleting_a_task_prints_a_confirmation(client: Client, deployment: Deployment, duetime: Run) -> None:
    """After a deletion, the command prints a confirmation because there is no task to print."""
    task = client.tasks.create("report")
    deployment.scripted.append(Answer(204, text=b""))
    assert duetime("tasks", "delete", task.id).stdout.split() == ["deleted", "the", "task", task.id]
    assert (deployment.received[-1].method, deployment.received[-1].path) == ("DELETE", f"/stage/v1/tasks/{task.id}")


def test_a_query_is_sent_to_the_endpoint(client: Client, deployment: Deployment, duetime: Run) -> None:
    """The query is sent as a parameter, and the command prints the endpoint's reply or, with `--json`, the response."""
    task = client.tasks.create("report", target={"kind": "http", "url": "https://e.org/", "queries": ["status"]})
    reply = client.tasks.query(task.id, "status")
    assert (reply.status, reply.body) == (200, {"asked": ["status"]})
    assert deployment.received[-1].target == f"/stage/v1/tasks/{task.id}/query"
    result = duetime("tasks", "query", task.id, "summary")
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"asked": ["summary"]})
    whole = duetime("tasks", "query", task.id, "progress", "--json")
    assert json.loads(whole.stdout) == {"status": 200, "body": {"asked": ["progress"]}}
    assert duetime("tasks", "query", task.id, "health").exit_code == 2


@pytest.mark.parametrize(("status", "code"), [(200, 0), (404, 1), (500, 1)])
def test_an_error_of_the_endpoint_sets_the_exit_code(
    duetime: Run, client: Client, deployment: Deployment, status: int, code: int
) -> None:
    """The exit code says whether the endpoint replied with success."""
    task = client.tasks.create("report")
    deployment.scripted.append(Answer(200, {"status": status, "body": None}))
    assert duetime("tasks", "query", task.id, "status").exit_code == code


def test_a_query_response_without_a_reply_raises_an_error(client: Client, deployment: Deployment) -> None:
    """A response without the endpoint's status or body raises an error."""
    task = client.tasks.create("report")
    documents: list[object] = [{}, {"status": 200}, {"status": "200", "body": 1}, []]
    for document in documents:
        deployment.scripted.append(Answer(200, document))
        with pytest.raises(UnexpectedResponse):
            client.tasks.query(task.id, "status")


def test_an_empty_callback_url_removes_the_callback(duetime: Run, client: Client, deployment: Deployment) -> None:
    """An empty callback URL is sent as null, because an option cannot express null."""
    task = client.tasks.create("report", callback_url="https://example.org/ended")
    assert task.callback_url == "https://example.org/ended"
    assert "https://example.org/ended" in duetime("tasks", "get", task.id).stdout
    duetime("tasks", "update", task.id, "--callback-url", "")
    assert deployment.received[-1].document == {"callback_url": None}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_not_retried_after_a_lost_response(deployment: Deployment, action: str) -> None:
    """An action whose response was lost is not retried, because the task may already be resumed or retried."""
    with Client(deployment.url, retries=Retries(), sleep=lambda _: None) as client:
        task = client.tasks.create("report")
        deployment.scripted.append(Answer(None))
        with pytest.raises(Unreachable):
            ACTIONS[action](client, task.id)
    assert len(deployment.received) == 2


@pytest.mark.parametrize(("what", "tell", "body"), REPORTS)
def test_a_report_with_its_fence_is_retried_after_a_lost_response(
    client: Client, deployment: Deployment, what: str, tell: Callable[[Client, str], Task], body: dict[str, object]
) -> None:
    """A report that contains the fence is retried after a lost response, because repeating it has no effect."""
    task = client.tasks.create("report")
    deployment.scripted.append(Answer(None))
    assert tell(client, task.id).id == task.id
    first, again = deployment.received[-2:]
    assert (again.method, again.path, again.document) == ("POST", f"/stage/v1/tasks/{task.id}/{what}", body)
    assert first.body == again.body


def test_a_fence_mismatch_is_a_conflict_with_a_specific_code(client: Client) -> None:
    """The errors for a fence mismatch and for a state conflict have different codes."""
    task = client.tasks.create("report")
    with pytest.raises(Conflict) as refusal:
        client.tasks.report_heartbeat(task.id, STRANGE_FENCE)
    assert refusal.value.code == "fence_mismatch"


def test_the_attempts_of_a_task_are_returned(client: Client) -> None:
    """Each attempt's known attributes are returned, and a lost attempt's unknown attributes are `None`."""
    last, lost = client.tasks.list_attempts(client.tasks.create("report").id)
    assert (last.worker, last.outcome, last.duration_ms) == ("worker 1", "succeeded", 480)
    assert last.started_at == datetime.fromisoformat("2026-11-21T12:00:00Z")
    assert (lost.outcome, lost.started_at, lost.cost_dollars) == ("lost", None, None)


@pytest.mark.parametrize("document", [None, [], {"attempts": {}}, {"attempts": [5]}, {"attempts": [{"fence": 1}]}])
def test_an_invalid_response_for_attempts_is_an_error(client: Client, deployment: Deployment, document: object) -> None:
    """Every kind of invalid response raises the same documented error."""
    deployment.scripted.append(Answer(200, document))
    with pytest.raises(UnexpectedResponse):
        client.tasks.list_attempts("x")


def test_force_and_wait_are_sent_only_if_requested(client: Client, deployment: Deployment) -> None:
    """If a task is cancelled or created without options, no query parameters are sent."""
    task = client.tasks.create("report", wait_seconds=25)
    client.tasks.cancel(task.id, force=True)
    client.tasks.create("report")
    client.tasks.cancel(task.id)
    assert [request.query for request in deployment.received] == [{"wait_seconds": ["25"]}, {}, {}, {}]
    assert [request.document for request in deployment.received[1::2]] == [{"force": True}, {}]


def test_the_lease_and_requested_action_of_a_task_are_read(client: Client, deployment: Deployment) -> None:
    """The lease, the deferral and the requested action are read; an older API that omits these fields is supported."""
    task = client.tasks.create("report")
    assert (task.lease, task.awaiting_notification, task.requested_action) == (None, False, None)
    lease = {"worker": "worker 1", "expires_at": "2026-11-21T12:01:00Z"}
    deployment.tasks[task.id] |= {
        "lease": lease,
        "awaiting_notification": True,
        "requested_action": "pause",
        "rollback_on_failure": True,
    }
    seen = client.tasks.get(task.id)
    assert seen.lease is not None
    assert (seen.lease.worker, seen.awaiting_notification, seen.requested_action, seen.rollback_on_failure) == (
        "worker 1",
        True,
        "pause",
        True,
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_has_a_command_that_prints_the_task(duetime: Run, deployment: Deployment, action: str) -> None:
    """Each action has a command, and `--json` prints the response."""
    task_id = json.loads(duetime("tasks", "create", "report", "--json").stdout)["id"]
    result = duetime("tasks", action, task_id, "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, deployment.tasks[task_id])
    assert deployment.received[-1].path.endswith(f"/{task_id}/{action}")
    assert "state" in duetime("tasks", action, task_id).stdout


def test_the_commands_for_targets_report_outcome_and_progress(duetime: Run, deployment: Deployment) -> None:
    """`tasks notify` reports a success unless an error is given, and `tasks progress` takes a percentage."""
    task_id = json.loads(duetime("tasks", "create", "report", "--json").stdout)["id"]
    for words, body in (
        (["notify", task_id, "--result", '{"rows": 17}'], REPORTS[0][2]),
        (["notify", task_id, "--error", "Boom", "--message", "no", "--unretriable"], REPORTS[1][2]),
        (["notify", task_id], {"fence": 1, "outcome": "succeeded", "result": None}),
        (["heartbeat", task_id], REPORTS[2][2]),
        (["progress", task_id, "40", "--message", "half way"], REPORTS[3][2]),
    ):
        assert duetime("tasks", *words, "--fence", "1").exit_code == 0
        assert deployment.received[-1].document == body


def test_a_conflict_is_printed_on_the_error_stream(duetime: Run) -> None:
    """A conflict is printed on the error stream, with exit code 1."""
    task_id = json.loads(duetime("tasks", "create", "report", "--json").stdout)["id"]
    result = duetime("tasks", "progress", task_id, "40", "--fence", str(STRANGE_FENCE))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "fence_mismatch" in result.stderr


def test_the_force_option_is_sent_in_the_body(duetime: Run, deployment: Deployment) -> None:
    """`--force` is sent in the request's body."""
    task_id = json.loads(duetime("tasks", "create", "report", "--json").stdout)["id"]
    assert duetime("tasks", "cancel", task_id, "--force").exit_code == 0
    assert deployment.received[-1].document == {"force": True}


def test_attempts_are_printed(duetime: Run, deployment: Deployment) -> None:
    """Attempts are printed as a table, or as JSON for scripts; an empty list is reported."""
    task_id = json.loads(duetime("tasks", "create", "report", "--json").stdout)["id"]
    heading, last, lost = duetime("tasks", "attempts", task_id).stdout.splitlines()
    assert heading.split() == ["attempt", "fence", "outcome", "started", "late", "took", "dollars", "worker", "version"]
    assert {"succeeded", "12", "480", "0.00000765", "worker", "17"} <= set(last.split())
    assert lost.split() == ["1", "1", "lost"]
    assert json.loads(duetime("tasks", "attempts", task_id, "--json").stdout) == [ATTEMPT, LOST]
    deployment.scripted.append(Answer(200, {"attempts": []}))
    assert "no finished attempts" in duetime("tasks", "attempts", task_id).stdout


def test_steps_are_printed(duetime: Run, deployment: Deployment) -> None:
    """Steps are printed as a table that names phases other than `run`, or as JSON; an empty list is reported."""
    step = {
        "phase": "run",
        "name": "charge",
        "attempt": 1,
        "fence": 1,
        "duration_ms": 250,
        "result": {"id": 7},
        "finished_at": "2026-11-21T12:00:00Z",
    }
    answer = Answer(200, {"steps": [step, {**step, "phase": "rollback", "name": "refund"}]})
    deployment.scripted += [answer, answer, Answer(200, {"steps": []})]
    heading, first, second = duetime("tasks", "attempts", "01M7", "--steps").stdout.splitlines()
    assert deployment.received[0].target == "/stage/v1/tasks/01M7/steps"
    assert heading.split() == ["step", "attempt", "ended", "took", "result"]
    assert {"charge", "250", '{"id":'} <= set(first.split())
    assert "rollback: refund" in second
    assert json.loads(duetime("tasks", "attempts", "01M7", "--steps", "--json").stdout) == answer.document["steps"]
    assert "no stored steps" in duetime("tasks", "attempts", "01M7", "--steps").stdout


def test_the_view_of_a_task_shows_its_lease(duetime: Run, deployment: Deployment) -> None:
    """The view shows the lease, whether the target has accepted the task, and the requested action."""
    task_id = json.loads(duetime("tasks", "create", "report", "--json").stdout)["id"]
    lease = {"worker": "worker 1", "expires_at": "2026-11-21T12:01:00Z"}
    deployment.tasks[task_id] |= {"lease": lease, "awaiting_notification": True, "requested_action": "pause"}
    shown = duetime("tasks", "get", task_id).stdout
    assert "worker 1 until 2026-11-21 21:01:00 JST (in 1 min)" in shown
    assert "will notify" in shown
    assert "pause" in shown


def test_the_error_of_each_attempt_is_shown(duetime: Run, client: Client, deployment: Deployment) -> None:
    """If an attempt failed, the table has an error column; the client returns the error's class and message."""
    deployment.scripted += [Answer(200, {"attempts": [LOST, FAILED]})] * 2
    assert "Boom: no such row" in duetime("tasks", "attempts", "ID").stdout
    lost, failed = client.tasks.list_attempts("ID")
    assert lost.error is None
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("Boom", "no such row")


def test_events_of_a_task_are_printed(duetime: Run, client: Client, deployment: Deployment) -> None:
    """Actions, actors and reasons are printed as a table without control characters, or as the API's JSON."""
    at = "2026-11-21T12:00:00Z"
    told = {
        "events": [
            {"type": "created", "at": at, "actor": {"kind": "schedule", "name": "nightly"}, "version": 1},
            {"type": "updated", "at": at, "actor": {"kind": "user", "name": "anna"}, "fields": ["due_at", "name"]},
            {"type": "paused", "at": at, "actor": {"kind": "user", "name": "anna"}, "reason": "month\x1b[31m end"},
            {"type": "attempt_ended", "at": None, "outcome": "lost", "attempt": 1, "fence": 1},
            {"type": "finished", "at": at, "state": "cancelled"},
        ],
        "dropped": 3,
    }
    deployment.scripted += [Answer(200, told)] * 3
    shown = duetime("tasks", "events", "ID").stdout
    assert "3 older actions not kept" in shown
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert any("created schedule:nightly" in line for line in lines)
    assert any("updated anna due_at, name" in line for line in lines)
    assert any("attempt ended lost, attempt 1" in line for line in lines)
    assert "\x1b[31m" not in shown
    assert json.loads(duetime("tasks", "events", "ID", "--json").stdout) == told
    history = client.tasks.list_events("ID")
    assert (history.dropped, history.events[1].fields_changed) == (3, ("due_at", "name"))


@pytest.mark.parametrize("action", ["pause", "resume", "run", "retry", "rollback", "cancel"])
def test_the_reason_of_an_action_is_sent(duetime: Run, deployment: Deployment, action: str) -> None:
    """`--reason` is sent in the body of an action, and as a query parameter of an update."""
    task_id = json.loads(duetime("tasks", "create", "report", "--json").stdout)["id"]
    duetime("tasks", action, task_id, "--reason", "why not")
    assert json.loads(deployment.received[-1].body) == {"reason": "why not"}
    deployment.scripted.append(Answer(200, {"tasks": []}))
    duetime("tasks", "update", task_id, "--name", "n", "--reason", "a & b")
    assert deployment.received[-1].target.endswith("?reason=a%20%26%20b")
