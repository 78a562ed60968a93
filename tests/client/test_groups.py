"""Tests the client's requests for groups, and the `groups` commands with their output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

SUMMARY = {
    "id": "import-17",
    "state": "closed",
    "created_at": "2026-11-21T11:00:00Z",
    "closed_at": "2026-11-21T11:30:00Z",
    "completed_at": None,
    "on_complete": {"task_id": "01TASK", "rule": "all_success"},
}
GROUP = {**SUMMARY, "total": 3, "ended": 2, "counts": {"failed": 1, "running": 1, "succeeded": 1}, "progress": 66}
RESULT = {"examined": 3, "matched": 1, "affected": 1, "refused": {}, "next_token": None}


def test_a_group_is_shown_with_its_members_by_state(deployment: Deployment, duetime: Run) -> None:
    """A group is printed with the task that runs after it, and `wait` is sent as a query parameter."""
    deployment.scripted += [Answer(200, GROUP), Answer(200, {"groups": [SUMMARY], "next_token": None})]
    shown = duetime("groups", "show", "import-17", "--wait", "25").stdout
    assert deployment.received[0].query == {"wait_seconds": ["25"]}
    assert all(text in shown for text in ("import-17", "closed", "01TASK", "2 of 3 (66%)", "running"))
    listed = duetime("groups", "list").stdout
    assert "import-17" in listed
    assert "members" not in listed


def test_a_group_is_closed_with_a_task_or_a_callback(deployment: Deployment, duetime: Run) -> None:
    """`--run` and `--callback-url` exclude each other; if neither is given, nothing runs after the group."""
    deployment.scripted += [Answer(200, GROUP)] * 3
    duetime("groups", "close", "a", "--run", "report", "--payload", '{"n": 1}', "--rule", "all_success")
    duetime("groups", "close", "a", "--callback-url", "https://example.org")
    duetime("groups", "close", "a")
    assert [(each.method, each.document) for each in deployment.received] == [
        ("PUT", {"on_complete": {"task": {"type": "report", "payload": {"n": 1}}, "rule": "all_success"}}),
        ("PUT", {"on_complete": {"callback_url": "https://example.org", "rule": "all_done"}}),
        ("PUT", {}),
    ]
    for wrong in (("--payload", "1"), ("--run", "a", "--payload", "{"), ("--run", "a", "--callback-url", "b")):
        assert duetime("groups", "close", "a", *wrong).exit_code == 2
    assert len(deployment.received) == 3


def test_members_of_a_group_are_cancelled_and_retried(deployment: Deployment, duetime: Run) -> None:
    """The commands print how many members they cancelled or retried."""
    deployment.scripted += [Answer(200, RESULT)] * 2
    assert duetime("groups", "cancel", "a", "--force").stdout == "1 cancelled, 3 scanned\n"
    assert duetime("groups", "retry", "a", "--reason", "fixed").stdout == "1 retried, 3 scanned\n"
    assert [(each.path, each.document) for each in deployment.received] == [
        ("/stage/v1/groups/a/cancel", {"force": True, "reason": "", "per_second": None}),
        ("/stage/v1/groups/a/retry", {"reason": "fixed", "per_second": None}),
    ]


def test_a_task_is_added_to_a_group_and_listed(deployment: Deployment, duetime: Run) -> None:
    """The option that puts a task into a group has the field's name."""
    duetime("tasks", "create", "import", "--group", "import-17")
    duetime("tasks", "list", "--group", "import-17")
    assert deployment.received[0].document["group"] == {"id": "import-17"}
    assert deployment.received[-1].query["group"] == ["import-17"]
