"""Tests the client's requests for dead letters, and the commands that list and redrive dead letters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.deployment import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from duetime_client import Client
    from tests.client.deployment import Deployment

    Run = Callable[..., Result]

LETTERS = "/stage/v1/tasks"


def page(deployment: Deployment, client: Client, token: str | None = None) -> Answer:
    """Return a page with one dead letter."""
    task = client.tasks.create("report")
    failed = {
        **deployment.tasks[task.id],
        "state": "failed",
        "attempt": 5,
        "error": {"type": "Boom", "message": "no such row"},
        "finished_at": "2026-11-21T11:00:00Z",
    }
    deployment.received.clear()
    return Answer(200, {"tasks": [failed], "next_token": token})


def piece(changed: int, token: str | None = None, **refused: int) -> Answer:
    """Return the API's response to one part of a redrive."""
    told = {"examined": 9, "matched": changed + sum(refused.values()), "affected": changed}
    return Answer(200, {**told, "refused": refused, "next_token": token})


def bodies(deployment: Deployment) -> list[Any]:
    """Return the bodies of the redrive requests."""
    return [request.document for request in deployment.received if request.path == f"{LETTERS}/retry"]


def test_dead_letters_are_fetched_page_by_page(client: Client, deployment: Deployment) -> None:
    """Listing dead letters sends the filters and the page token as parameters."""
    pages = [page(deployment, client, "more"), page(deployment, client)]
    deployment.scripted += pages
    found = list(client.dead_letters.list(error_type="Boom", tags={"a": "b"}, order="asc"))
    assert [task.error and task.error.type for task in found] == ["Boom", "Boom"]
    query = {"state": ["failed"], "error_type": ["Boom"], "tag": ["a:b"], "order": ["asc"]}
    assert [(each.path, each.query) for each in deployment.received] == [
        (LETTERS, query),
        (LETTERS, {**query, "next_token": ["more"]}),
    ]


def test_a_redrive_continues_until_the_last_page(client: Client, deployment: Deployment) -> None:
    """Each redrive request has the filter and the token from the previous response."""
    deployment.scripted += [piece(100, "one"), piece(1)]
    assert [each.affected for each in client.tasks.retry_by_filter({"error_type": "Boom"}, per_second=5)] == [100, 1]
    body = {"filter": {"error_type": "Boom"}, "per_second": 5}
    assert bodies(deployment) == [body, {**body, "next_token": "one"}]


def test_the_command_lists_dead_letters_with_their_errors(duetime: Run, client: Client, deployment: Deployment) -> None:
    """Dead letters are listed with error and attempts, `--json` prints all fields, and an empty list is reported."""
    found = page(deployment, client)
    deployment.scripted += [found, found, Answer(200, {"tasks": [], "next_token": None})]
    table = duetime("dead-letters", "list", "--error-type", "Boom").stdout
    assert "01TASK" in table
    assert "Boom: no such" in table
    assert deployment.received[-1].query == {"state": ["failed"], "error_type": ["Boom"]}
    assert json.loads(duetime("dead-letters", "list", "--json").stdout)[0]["attempt"] == 5
    assert "no dead letters" in duetime("dead-letters", "list").stdout


def test_the_command_redrives_after_confirmation(duetime: Run, client: Client, deployment: Deployment) -> None:
    """The command counts dead letters, shows some tasks, and asks for confirmation; a rejection sets the exit code."""
    found = page(deployment, client)
    deployment.scripted += [piece(3), found, piece(2, state_conflict=1)]
    result = duetime("dead-letters", "retry", "--all", "--per-second", "5", typed="y\n")
    assert "3 tasks will be retried" in result.stderr
    assert "2 retried, 9 scanned" in result.stdout
    assert "1 rejected: state_conflict" in result.stdout
    body = {"filter": {}, "all": True, "per_second": 5.0}
    assert bodies(deployment) == [{**body, "dry_run": True}, body]
    assert result.exit_code == 1


def test_one_dead_letter_is_redriven_by_its_id(duetime: Run, deployment: Deployment) -> None:
    """Redriving one dead letter by id sends a request to retry the task."""
    duetime("tasks", "create", "report", "--in", "1h")
    (task_id,) = deployment.tasks
    duetime("dead-letters", "retry", task_id)
    assert deployment.received[-1].path == f"/stage/v1/tasks/{task_id}/retry"


def test_the_command_deletes_dead_letters_after_confirmation(
    duetime: Run, client: Client, deployment: Deployment
) -> None:
    """The command counts the matching dead letters first, and deletes only the counted tasks."""
    counted = {"examined": 9, "matched": 3, "affected": 0, "refused": {}, "confirmation_token": "now"}
    deployment.scripted += [Answer(200, {**counted, "next_token": None}), page(deployment, client), piece(3)]
    result = duetime("dead-letters", "delete", "--error-type", "Boom", typed="y\n")
    assert "3 tasks will be deleted" in result.stderr
    assert "3 deleted, 9 scanned" in result.stdout
    wanted = {"filter": {"state": "failed", "error_type": "Boom"}}
    sent = [each.document for each in deployment.received if each.path == f"{LETTERS}/delete"]
    assert sent == [{**wanted, "dry_run": True}, {**wanted, "confirmation_token": "now"}]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [((), "give an ID"), (("ID", "--error-type", "Boom"), "not both"), (("ID", "--yes"), "need a filter")],
)
def test_an_ambiguous_redrive_is_rejected(
    duetime: Run, deployment: Deployment, arguments: tuple[str, ...], reason: str
) -> None:
    """An ambiguous redrive is refused, and nothing is sent."""
    result = duetime("dead-letters", "retry", *arguments)
    assert (result.exit_code, deployment.received) == (2, [])
    assert reason in " ".join(result.stderr.replace("\u2502", " ").split())
