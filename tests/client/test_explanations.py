"""Tests the client's requests for explanations, and the output of `duetime why`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from duetime_client import Client, NotFound, UnexpectedResponse
from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

LOCKED = {"key": "db-17", "max_holders": 1, "holders": [], "position": 2}
TASK = {
    "task_id": "01M7",
    "state": "waiting",
    "as_of": "2026-11-21T12:00:00Z",
    "text": "The lock db-17 is held by the task 01M6. It is number 2 in line.",
    "since": "2026-11-21T11:58:59.500Z",
    "due_at": "2026-11-21T11:59:00Z",
    "until": "2026-11-21T12:00:00Z",
    "total_ms": 60_500,
    "overdue_ms": 60_000,
    "gates": [
        {"name": "due", "state": "passed", "text": "500 ms: waited for its due time.", "duration_ms": 500},
        {
            "name": "lock",
            "state": "waiting",
            "text": "The lock db-17 is held by the task 01M6.",
            "since": "2026-11-21T11:59:00Z",
            "until": None,
            "duration_ms": 60_000,
            "waits_for": {"lock": LOCKED},
        },
        {"name": "concurrency_limit", "state": "ahead", "text": "At most 5 run.\x1b[2J", "duration_ms": None},
    ],
}
SCHEDULE = {
    "schedule": "nightly",
    "at": "2026-11-21T01:30:00Z",
    "outcome": "no_runs_left",
    "text": "It did not run: no runs remained.",
    "task_id": "01M7",
}


def test_an_explanation_has_the_gates_in_order(client: Client, deployment: Deployment) -> None:
    """The gates are in order and have times, and the objects that a task waits for are given as data."""
    deployment.scripted.append(Answer(200, TASK))
    found = client.tasks.explain("01M7/8")
    assert deployment.received[0].target == "/stage/v1/tasks/01M7%2F8/explain"
    assert [(gate.name, gate.state, gate.duration_ms) for gate in found.gates] == [
        ("due", "passed", 500),
        ("lock", "waiting", 60_000),
        ("concurrency_limit", "ahead", None),
    ]
    assert found.gates[1].waits_for == {"lock": LOCKED}
    assert found.document == TASK


def test_a_schedule_is_explained_at_a_time(client: Client, deployment: Deployment) -> None:
    """A schedule is explained at an instant, which is sent in UTC."""
    deployment.scripted.append(Answer(200, SCHEDULE))
    found = client.schedules.explain("a/b", "2026-11-21T01:30:00Z")
    assert deployment.received[0].target.startswith("/stage/v1/schedules/a%2Fb/explain?")
    assert deployment.received[0].query == {"at": ["2026-11-21T01:30:00Z"]}
    assert (found.outcome, found.task_id) == ("no_runs_left", "01M7")


def test_an_invalid_explanation_raises_unexpected_response(client: Client, deployment: Deployment) -> None:
    """A response that is not an explanation raises `UnexpectedResponse`."""
    deployment.scripted += [Answer(200, {"gates": 1}), problem(404, "task_not_found", "there is no such task")]
    with pytest.raises(UnexpectedResponse):
        client.tasks.explain("a")
    with pytest.raises(NotFound):
        client.tasks.explain("a")


def test_the_command_prints_the_current_wait_then_a_table_of_gates(duetime: Run, deployment: Deployment) -> None:
    """The current wait is printed first, followed by a row per gate and the total; `--json` prints the response."""
    deployment.scripted += [Answer(200, TASK)] * 2
    shown = duetime("why", "01M7")
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0].startswith("01M7  waiting  due 20:59:00")
    assert lines[1:3] == ["The lock db-17 is held by the task 01M6.", "At most 5 run.\\x1b[2J"]
    assert [line.split()[0] for line in lines[3:]] == ["gate", "due", "lock", "concurrency", "total"]
    assert "1 min" in lines[5]
    assert "\x1b" not in shown.output
    assert json.loads(duetime("why", "01M7", "--json").output) == TASK


def test_the_command_prints_the_completed_steps(duetime: Run, deployment: Deployment) -> None:
    """The names of completed steps are printed; for a task without steps, the line is left out."""
    deployment.scripted += [Answer(200, {**TASK, "steps": ["charge", "ship"]}), Answer(200, TASK)]
    sentence = "Completed steps: charge, ship. The next attempt does not repeat them."
    assert sentence in duetime("why", "01M7").stdout
    assert "Completed steps" not in duetime("why", "01M7").stdout


def test_the_command_explains_a_schedule_at_a_time(duetime: Run, deployment: Deployment) -> None:
    """A time without a time zone is local time; each task is printed with the command that explains it."""
    deployment.scripted.append(Answer(200, SCHEDULE))
    shown = duetime("why", "--schedule", "nightly", "--at", "2026-11-21T10:30")
    assert deployment.received[0].query == {"at": ["2026-11-21T10:30:00+09:00"]}
    assert shown.output.splitlines()[0].startswith("nightly  10:30:00")
    assert "no runs left" in shown.output
    assert "duetime why 01M7" in shown.output


def test_without_a_time_the_latest_occurrence_is_explained(
    duetime: Run, client: Client, deployment: Deployment
) -> None:
    """If no time is given, the request contains none, and the client returns a failed run's error."""
    error = {"type": "ValueError", "message": "no paper"}
    deployment.scripted += [Answer(200, {**SCHEDULE, "outcome": "ran", "state": "failed", "error": error})] * 2
    assert duetime("why", "--schedule", "nightly").exit_code == 0
    found = client.schedules.explain("nightly")
    assert [each.query for each in deployment.received] == [{}, {}]
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("ValueError", "no paper")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a", "--schedule", "b", "--at", "2026-11-21"),
        ("--at", "2026-11-21"),
        ("a", "--at", "1"),
    ],
)
def test_the_command_needs_a_task_or_a_schedule(
    duetime: Run, deployment: Deployment, arguments: tuple[str, ...]
) -> None:
    """Any combination other than one task or one schedule is a usage error, and nothing is sent."""
    assert duetime("why", *arguments).exit_code == 2
    assert not deployment.received
