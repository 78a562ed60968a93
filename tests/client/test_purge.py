"""Tests the client's requests for purges, and the command's question and output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.client.deployment import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.deployment import Deployment

    Run = Callable[..., Result]


def purge(state: str, refused: dict[str, int] | None = None, **removed: int) -> dict[str, Any]:
    """Return a purge as the API returns it."""
    left = [{"kind": "backups", "until": "2026-12-31T11:00:00Z"}] if state == "succeeded" else []
    return {
        "id": "01M7XZ8CGJ0013P2ZBN3YDT3DX",
        "kind": "purge",
        "state": state,
        "created_at": "2026-11-26T11:00:00Z",
        "refused": refused or {},
        "receipt": {"owner": "local", "removed": removed, "left": left},
    }


def test_the_command_follows_a_purge_and_prints_the_receipt(duetime: Run, deployment: Deployment) -> None:
    """The command sends the filter and the reason, and prints what was removed and what is left."""
    deployment.scripted += [Answer(202, purge("running")), Answer(200, purge("succeeded", tasks=3, archive_rows=2))]
    ended = duetime("purge", "--of-tag", "customer=7", "--reason", "request 17", "--cancel", "--yes")
    assert ended.exit_code == 0, ended.output
    sent = deployment.received[0].document
    assert {name: sent[name] for name in ("filter", "reason", "open_tasks", "all", "task_ids", "owner")} == {
        "filter": {"tags": {"customer": "7"}},
        "reason": "request 17",
        "open_tasks": "cancel",
        "all": False,
        "task_ids": None,
        "owner": None,
    }
    for line in ("3 tasks removed", "2 archive rows removed", "left: backups, until"):
        assert line in ended.stdout


def test_rejected_tasks_of_a_purge_set_exit_code_1(duetime: Run, deployment: Deployment) -> None:
    """The number of refused tasks and the problem's code are printed, and the exit code is 1."""
    deployment.scripted += [Answer(202, purge("running")), Answer(200, purge("succeeded", {"state_conflict": 2}))]
    ended = duetime("purge", "A", "B", "--yes")
    assert (ended.exit_code, "2 refused: state_conflict" in ended.stdout) == (1, True)
    assert deployment.received[0].document["task_ids"] == ["A", "B"]


@pytest.mark.parametrize("arguments", [(), ("ID", "--all"), ("ID", "--type", "x"), ("--all", "--type", "x")])
def test_a_purge_requires_exactly_one_selection(
    duetime: Run, deployment: Deployment, arguments: tuple[str, ...]
) -> None:
    """Without a selection, or with two selections, nothing is sent."""
    ended = duetime("purge", *arguments, "--yes")
    assert (ended.exit_code, deployment.received) == (2, [])
    assert "give one of" in ended.output


def test_nothing_is_removed_without_confirmation(duetime: Run, deployment: Deployment) -> None:
    """The question names the owner, and nothing is sent unless the user confirms."""
    ended = duetime("purge", "--all", "--of-owner", "ada", typed="n\n")
    assert (ended.exit_code, deployment.received) == (1, [])
    assert "Everything of ada will be permanently removed" in ended.output
