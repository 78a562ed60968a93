"""Tests the client's requests for links to tasks, and the `links` commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

from duetime.domain.links import LinkAction
from duetime_client import task_links
from duetime_client.commands.links import ActionName
from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from duetime_client import Client

    Run = Callable[..., Result]

ID = "01M7YJJ6RJ000VK12BGKK15FQ0"
URL = f"https://api.example.org/v1/links/dtl_{ID}_01a1fc020e348e0a2aaf_{'0' * 64}"
LINK = {
    "id": "01a1fc020e348e0a2aaf",
    "actions": ["approve", "reject"],
    "message": "Pay Ann?",
    "takes_payload": False,
    "ended": None,
    "created_at": "2026-11-21T11:00:00Z",
    "created_by": "ann",
    "expires_at": "2026-11-23T12:00:00Z",
    "used_at": None,
    "used_for": None,
}


def test_client_and_command_know_every_action() -> None:
    """The client and the command list the API's actions, in the API's order."""
    assert [*ActionName] == [*get_args(task_links.LinkAction)] == [*LinkAction]


def test_a_link_is_created_and_printed_once(duetime: Run, deployment: Deployment) -> None:
    """For scripts, standard output contains only the link's address; the error stream names the actions."""
    deployment.scripted.append(Answer(201, {**LINK, "url": URL}))
    wanted = ("--action", "approve", "--action", "reject", "--expires", "2d", "--message", "Pay Ann?")
    result = duetime("links", "create", ID, *wanted)
    assert (result.exit_code, result.stdout) == (0, f"{URL}\n")
    assert "link 01a1fc020e348e0a2aaf to approve or reject, until" in result.stderr
    sent = deployment.received[0]
    assert (sent.method, sent.path) == ("POST", f"/stage/v1/tasks/{ID}/links")
    assert sent.document == {"actions": ["approve", "reject"], "expires_seconds": 172_800, "message": "Pay Ann?"}
    assert "Idempotency-Key" not in sent.headers


def test_links_are_listed_as_a_table_or_json(duetime: Run, deployment: Deployment) -> None:
    """Links are listed as a table or as one JSON array, and a link that has ended is shown with the reason."""
    used = {**LINK, "ended": "it has been used", "used_at": "2026-11-21T11:30:00Z", "used_for": "approve"}
    found = [LINK, used, {**LINK, "ended": "it has expired"}]
    deployment.scripted += [Answer(200, {"links": found})] * 2
    table = duetime("links", "list", ID).stdout
    assert ("valid" in table, "used to approve" in table, "expired" in table) == (True, True, True)
    assert json.loads(duetime("links", "list", ID, "--json").stdout) == found


def test_a_link_is_deleted_by_its_id(duetime: Run, deployment: Deployment) -> None:
    """The command names the deleted link."""
    deployment.scripted.append(Answer(204, None))
    assert duetime("links", "delete", ID, str(LINK["id"])).stdout == "deleted the link 01a1fc020e348e0a2aaf\n"
    assert deployment.received[0].path == f"/stage/v1/tasks/{ID}/links/{LINK['id']}"


def test_a_link_is_used_by_its_token(client: Client, deployment: Deployment) -> None:
    """A link can be used with an action, a payload and a reason, or only to read the task."""
    task = {"name": None, "type": "pay", "state": "succeeded", "due_at": "2026-11-21T11:00:00Z", "finished_at": None}
    opened = {**LINK, "is_awaited": False, "task": {**task, "percent": None}, "used_for": "approve"}
    deployment.scripted += [Answer(200, opened)] * 2
    token = URL.rpartition("/")[2]
    assert client.task_links.use(token, "approve", {"limit": 5}, reason="fine").task.state == "succeeded"
    client.task_links.use(token)
    assert [each.path for each in deployment.received] == [f"/stage/v1/links/{token}"] * 2
    assert deployment.received[0].document == {"action": "approve", "payload": {"limit": 5}, "reason": "fine"}
    assert deployment.received[1].body == b""
