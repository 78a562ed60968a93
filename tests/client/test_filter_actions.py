"""Tests the client's requests for each part of an action by filter, and the command's question and totals."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client import Client, InvalidRequest
from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

WANTED = ("--type", "report", "--state", "scheduled")


def piece(
    changed: int, token: str | None = None, matched: int | None = None, confirm: str | None = None, **refused: int
) -> Answer:
    """Return the API's response to one part."""
    told = {"matched": changed + sum(refused.values()) if matched is None else matched, "affected": changed}
    tokens = {"next_token": token, "confirmation_token": confirm}
    return Answer(200, {"examined": 100, **told, "refused": refused, **tokens})


def bodies(deployment: Deployment, path: str) -> list[Any]:
    """Return the bodies of the POST requests."""
    return [request.document for request in deployment.received if request.path == f"/stage/v1/tasks/{path}"]


def test_a_bulk_cancel_continues_until_the_last_page(client: Client, deployment: Deployment) -> None:
    """Each request has the filter and the previous response's token; times are sent with offsets."""
    deployment.scripted += [piece(100, "one"), piece(40, "two"), piece(0)]
    due = datetime(2026, 12, 1, tzinfo=UTC)
    pieces = list(client.tasks.cancel_by_filter({"type": "report", "due_before": due}, per_second=5, force=True))
    body = {"filter": {"type": "report", "due_before": "2026-12-01T00:00:00+00:00"}, "per_second": 5, "force": True}
    assert bodies(deployment, "cancel") == [body, {**body, "next_token": "one"}, {**body, "next_token": "two"}]
    assert [each.affected for each in pieces] == [100, 40, 0]


def test_a_bulk_update_is_retried_and_can_be_resumed_with_a_token(client: Client, deployment: Deployment) -> None:
    """After a lost response, the part is requested again, as repeating it is harmless; a token resumes an update."""
    deployment.scripted += [Answer(None), piece(3)]
    (last,) = client.tasks.update_by_filter({}, {"priority": "low"}, next_token="there", all=True)  # noqa: S106 - a page token
    body = {"filter": {}, "all": True, "update": {"priority": "low"}, "next_token": "there"}
    assert bodies(deployment, "update") == [body, body]
    assert last.affected == 3


def operation(changed: int, state: str = "running", status: int = 200, **refused: int) -> Answer:
    """Return the API's response about a bulk operation."""
    told = {"id": "01OP", "kind": "cancel", "state": state, "created_at": "2026-11-21T12:00:00Z", "topology_id": None}
    matched = changed + sum(refused.values())
    return Answer(status, {**told, "examined": 10, "matched": matched, "affected": changed, "refused": refused})


def test_a_bulk_operation_is_followed_until_it_ends(client: Client, deployment: Deployment, waits: list[float]) -> None:
    """Each result reports the progress since the previous result; the first request has an idempotency key."""
    deployment.scripted += [operation(3, status=202), operation(5), operation(9, "succeeded", state_conflict=1)]
    pieces = list(client.tasks.cancel_by_filter({"type": "report"}))
    assert [(piece.affected, dict(piece.refused), piece.state) for piece in pieces] == [
        (3, {}, "running"),
        (2, {}, "running"),
        (4, {"state_conflict": 1}, "succeeded"),
    ]
    asked, *looks = deployment.received
    assert asked.headers["Idempotency-Key"]
    assert {look.path for look in looks} == {"/stage/v1/bulk-operations/01OP"}
    assert len(waits) == 1


def test_the_command_shows_and_cancels_bulk_operations(duetime: Run, deployment: Deployment) -> None:
    """Bulk operations can be listed, shown, watched and cancelled; a cancelled operation sets the exit code."""
    listed = Answer(200, {"operations": [operation(7).document]})
    deployment.scripted += [listed, operation(7, state_conflict=2)]
    assert "01OP" in duetime("bulk", "list").stdout
    assert "2 rejected: state_conflict" in duetime("bulk", "show", "01OP").stdout
    deployment.scripted += [
        operation(8),
        operation(9, "succeeded"),
        operation(9, "cancelled"),
        operation(9, "cancelled"),
    ]
    assert json.loads(duetime("bulk", "show", "01OP", "--watch", "--json").stdout)["affected"] == 9
    deployment.scripted += 2 * [operation(9, "cancelled")]
    stopped = duetime("bulk", "cancel", "01OP")
    assert (stopped.exit_code, "cancelled" in stopped.stdout) == (0, True)
    assert duetime("bulk", "show", "01OP").exit_code == 1
    assert deployment.received[-2].path == "/stage/v1/bulk-operations/01OP/cancel"


def test_a_command_exits_with_code_1_if_its_operation_is_cancelled(duetime: Run, deployment: Deployment) -> None:
    """The command prints the operation's id as soon as it is known, and exits with code 1 after a cancellation."""
    deployment.scripted += [operation(1, status=202), operation(2, "cancelled")]
    result = duetime("tasks", "cancel", *WANTED, "--yes")
    assert result.exit_code == 1
    assert "duetime bulk cancel 01OP" in result.stderr
    assert "2 cancelled" in result.stdout


def test_an_iterator_that_is_not_consumed_sends_nothing(client: Client, deployment: Deployment) -> None:
    """If the iterator is not consumed, nothing is sent; a rejection raises the usual error."""
    pieces = client.tasks.cancel_by_filter({})
    assert not deployment.received
    deployment.scripted.append(problem(422, "fields_invalid", "bad", {"field": "filter", "reason": "is empty"}))
    with pytest.raises(InvalidRequest):
        next(pieces)


def test_a_bulk_action_requires_confirmation(duetime: Run, deployment: Deployment) -> None:
    """The command counts the matching tasks, shows some of them, and does nothing without confirmation."""
    duetime("tasks", "create", "report", "--in", "1h")
    page = Answer(200, {"tasks": list(deployment.tasks.values()), "next_token": None})
    for typed, done in (("n\n", 1), ("", 2), ("y\n", 4)):
        deployment.scripted += [piece(0, matched=12), page, *([piece(12)] if typed == "y\n" else [])]
        result = duetime("tasks", "cancel", *WANTED, typed=typed)
        assert "12 tasks will be cancelled" in result.stderr
        assert "01TASK" in result.stdout
        assert (result.exit_code, len(bodies(deployment, "cancel"))) == (0 if typed == "y\n" else 1, done)
    assert [body.get("dry_run", False) for body in bodies(deployment, "cancel")] == [True, True, True, False]
    assert "12 cancelled, 100 scanned" in result.stdout


def test_the_action_applies_to_the_tasks_of_the_dry_run(duetime: Run, deployment: Deployment) -> None:
    """All pages of the dry run count the tasks that existed at the first page, and the action has that page's token."""
    deployment.scripted += [
        piece(0, "more", 100, "until-then"),
        piece(0, None, 7, "until-then"),
        Answer(200, {"tasks": []}),
        piece(107),
    ]
    result = duetime("tasks", "cancel", "--of-tag", "team=dba", typed="y\n")
    assert (result.exit_code, "107 tasks will be cancelled" in result.stderr) == (0, True)
    sent = [(each.get("dry_run"), each.get("confirmation_token")) for each in bodies(deployment, "cancel")]
    assert sent == [(True, None), (True, "until-then"), (None, "until-then")]


def test_the_yes_option_skips_the_confirmation(duetime: Run, deployment: Deployment) -> None:
    """With `--yes` the tasks are not counted first, `--json` sums all parts, and rejections set the exit code."""
    deployment.scripted += [piece(100, "more"), piece(7, state_conflict=2)]
    result = duetime("tasks", "cancel", *WANTED, "--of-tag", "team=dba", "--yes", "--json", "--per-second", "50")
    body = {
        "filter": {"state": "scheduled", "type": "report", "tags": {"team": "dba"}},
        "per_second": 50.0,
        "force": False,
    }
    assert bodies(deployment, "cancel") == [body, {**body, "next_token": "more"}]
    assert json.loads(result.stdout) == {
        "examined": 200,
        "matched": 109,
        "affected": 107,
        "refused": {"state_conflict": 2},
    }
    assert result.exit_code == 1


def test_a_dry_run_changes_nothing(duetime: Run, deployment: Deployment) -> None:
    """A dry run counts all matching tasks, shows them, and changes nothing."""
    deployment.scripted += [piece(0, "more", matched=9), piece(0, matched=3), Answer(200, {"tasks": []})]
    result = duetime("tasks", "update", "--all", "--dry-run", "--priority", "low")
    assert [body["dry_run"] for body in bodies(deployment, "update")] == [True, True]
    assert (result.exit_code, "12 matched, 200 scanned" in result.stdout) == (0, True)


def test_options_for_new_values_and_for_selection_are_separate(duetime: Run, deployment: Deployment) -> None:
    """`--name` and `--tag` set new values; `--of-name` and `--of-tag` select tasks."""
    deployment.scripted.append(piece(1))
    duetime(
        "tasks",
        "update",
        "--of-name",
        "old",
        "--of-tag",
        "a=b",
        "--name",
        "new",
        "--tag",
        "c=d",
        "--due-at",
        "2026-12-01T09:00Z",
        "-y",
    )
    (body,) = bodies(deployment, "update")
    assert body["filter"] == {"name": "old", "tags": {"a": "b"}}
    assert body["update"] == {"due_at": "2026-12-01T18:00:00+09:00", "name": "new", "tags": {"c": "d"}}


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("tasks cancel", "cancel"),
        ("tasks update --priority low", "update"),
        ("dead-letters retry", "retry"),
        ("dead-letters delete", "delete"),
    ],
)
def test_actions_by_filter_accept_text_conditions(duetime: Run, deployment: Deployment, words: str, path: str) -> None:
    """Each action by filter accepts the same text conditions as a list."""
    deployment.scripted.append(piece(1))
    result = duetime(*words.split(), "--name-contains", "close", "--error-contains", "timed out", "--yes")
    (body,) = bodies(deployment, path)
    state = {"state": "failed"} if path == "delete" else {}
    assert body["filter"] == {"name_contains": "close", "error_contains": "timed out", **state}
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("cancel",), "give an ID"),
        (("cancel", "ID", "--type", "report"), "not both"),
        (("cancel", "ID", "--yes"), "need a filter"),
        (("cancel", "ID", "--dry-run"), "need a filter"),
        (("cancel", "--type", "report", "--per-second", "0"), "0.1"),
        (("cancel", "--of-tag", "team"), "key=value"),
        (("update", "--type", "report"), "nothing to update"),
        (("update", "--type", "report", "--name", "x", "--if-match", "3"), "goes with an ID"),
        (("update", "--name", "x"), "give an ID"),
    ],
)
def test_the_error_for_an_incomplete_command_line_names_the_missing_option(
    duetime: Run, deployment: Deployment, arguments: tuple[str, ...], reason: str
) -> None:
    """An incomplete command line sends nothing, and the error names the missing option."""
    result = duetime("tasks", *arguments)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.replace("\u2502", " ").split())
    assert not deployment.received
