"""Tests the client's requests for rates, unique keys and ordered keys, and the commands with their output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from duetime_client import Client

    Run = Callable[..., Result]

RATE = {
    "key": "crm",
    "limit": 10,
    "per_seconds": 60,
    "burst": 0,
    "pinned": {"limit": 10, "per_seconds": 60, "burst": 0},
    "asked": {"limit": 50, "per_seconds": 1, "burst": 5},
    "paused_at": None,
    "used": 1,
    "available": 0,
    "waiting": 1,
    "next_free_at": "2026-11-21T12:00:12Z",
    "waiters": [
        {"task_id": "01M7XZ6VHH000XDHX76H0NY653", "due_at": "2026-11-21T12:00:00Z", "next_at": "2026-11-21T12:00:06Z"}
    ],
}
HELD = {"task_id": "01M7XZ6VHH000XDHX76H0NY653", "state": "scheduled", "due_at": "2026-11-21T12:00:00Z"}
KEY = {"key": "customer/17", "kind": "unique", "until": "ended", "holders": [HELD]}


def test_a_rate_is_shown_with_its_limit_and_waiting_tasks(deployment: Deployment, duetime: Run) -> None:
    """The pinned limit, the limit that tasks request, the next start, and each waiting task's position are printed."""
    deployment.scripted.append(Answer(200, RATE))
    _, first, waiter = duetime("rates", "show", "crm").stdout.splitlines()
    assert "10 per 60 s, pinned; tasks ask for 50 per 1 s + 5" in first
    assert "1 waiting; a new task starts" in first
    assert "waiting, position 1, its turn" in waiter
    assert deployment.received[0].path == "/stage/v1/rates/crm"


def test_a_paused_rate_is_marked_in_the_list(deployment: Deployment, duetime: Run) -> None:
    """A paused rate is marked in the list, which does not show waiting tasks."""
    paused = {**RATE, "paused_at": "2026-11-21T11:00:00Z", "waiting": None, "next_free_at": None}
    paused.pop("waiters")
    deployment.scripted.append(Answer(200, {"rates": [paused], "next_token": None}))
    assert "paused" in duetime("rates", "list").stdout


@pytest.mark.parametrize("action", ["pause", "resume", "reset"])
def test_an_action_on_a_rate_sends_its_reason(deployment: Deployment, duetime: Run, action: str) -> None:
    """The reason is sent in the request's body, and the command confirms the action."""
    deployment.scripted.append(Answer(200, RATE))
    said = duetime("rates", action, "crm", "--reason", "the CRM is down").stdout.splitlines()[0]
    assert said.endswith("the rate crm")
    (sent,) = deployment.received
    assert (sent.method, sent.path) == ("POST", f"/stage/v1/rates/crm/{action}")
    assert sent.document == {"reason": "the CRM is down"}


def test_a_rate_limit_is_pinned_and_unpinned(deployment: Deployment, duetime: Run) -> None:
    """A request to pin a rate contains a complete limit and can be repeated."""
    deployment.scripted += [Answer(None), Answer(200, RATE), Answer(200, RATE)]
    duetime("rates", "pin", "crm", "10", "--per", "60")
    duetime("rates", "unpin", "crm")
    body = {"limit": 10, "per_seconds": 60, "burst": 0, "reason": ""}
    assert [each.document for each in deployment.received[:2]] == [body, body]
    assert [each.method for each in deployment.received] == ["PUT", "PUT", "DELETE"]


def test_a_unique_key_is_shown_with_its_task(client: Client, deployment: Deployment, duetime: Run) -> None:
    """The unique key is one segment of the path."""
    deployment.scripted += [Answer(200, KEY), Answer(200, {"unique_keys": [KEY], "next_token": None})]
    assert client.unique_keys.get("customer/17").holders[0].state == "scheduled"
    assert deployment.received[0].target == "/stage/v1/unique-keys/customer%2F17"
    assert "customer/17" in duetime("locks", "list-unique-keys").stdout


def test_an_ordered_key_is_shown_with_its_waiting_tasks(client: Client, deployment: Deployment, duetime: Run) -> None:
    """An ordered key's current task and the waiting tasks' positions are printed; a list has only current tasks."""
    line = {"key": "customer/17", "turn": HELD | {"state": "failed"}, "waiting": [HELD, HELD]}
    listed = [{"key": "customer/17", "turn": None}]
    deployment.scripted += [Answer(200, line), Answer(200, line), Answer(200, {"ordered_keys": listed})]
    found = client.ordered_keys.get("customer/17")
    assert ([each.state for each in found.waiting], found.turn and found.turn.state) == (["scheduled"] * 2, "failed")
    assert deployment.received[0].target == "/stage/v1/ordered-keys/customer%2F17"
    _, first, second, third = duetime("locks", "show-ordered-key", "customer/17").stdout.splitlines()
    assert all(part in first for part in ("customer/17", "has the turn", "failed"))
    assert ("position 1" in second, "position 2" in third) == (True, True)
    assert "none has the turn" in duetime("locks", "list-ordered-keys").stdout


def test_a_preview_of_a_task_is_printed_and_creates_nothing(deployment: Deployment, duetime: Run) -> None:
    """A preview sends the same body as a creation."""
    found = {"as_of": "2026-11-21T12:00:00Z", "due_at": "2026-11-21T12:00:00Z", "expected_start_at": None}
    deployment.scripted.append(Answer(200, {**found, "text": "It is not known when it would start.", "reasons": []}))
    assert duetime("tasks", "create", "report", "--lock", "db", "--preview").stdout == (
        "It is not known when it would start.\n"
    )
    (sent,) = deployment.received
    assert (sent.path, sent.document["type"]) == ("/stage/v1/tasks/preview", "report")
    refused = duetime("tasks", "create", "--file", "tasks.jsonl", "--preview")
    assert refused.exit_code == 2
    assert "goes with one task" in refused.stderr
