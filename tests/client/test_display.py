"""Tests the output of `duetime tasks` for interactive users."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.deployment import Deployment

    Run = Callable[..., Result]

ANSI = re.compile(r"\x1b\[[0-9;]*m")
TASK: dict[str, Any] = {
    "id": "01KAHXQ6C0000000000000000A",
    "state": "running",
    "type": "report",
    "priority": "normal",
    "created_at": "2026-11-21T11:00:00Z",
    "due_at": "2026-11-21T12:05:00Z",
    "version": 1,
}


def sheet(duetime: Run, deployment: Deployment, **fields: object) -> dict[str, str]:
    """Return the lines that `get` prints for a task, by their labels."""
    deployment.tasks["x"] = {**TASK, **fields}
    shown = duetime("tasks", "get", "x").stdout.splitlines()
    return {label: text.strip() for label, _, text in (line.partition("  ") for line in shown)}


def test_times_are_local_and_show_the_distance_from_now(duetime: Run, deployment: Deployment) -> None:
    """A user in Tokyo sees times in Tokyo's time zone, with the time until or since then."""
    lines = sheet(duetime, deployment)
    assert lines["due"] == "2026-11-21 21:05:00 JST (in 5 min)"
    assert lines["created"] == "2026-11-21 20:00:00 JST (1 h ago)"


@pytest.mark.parametrize("due_at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_instants_at_the_ends_of_the_calendar_are_printed(duetime: Run, deployment: Deployment, due_at: str) -> None:
    """An instant that the calendar cannot show in the user's time zone is still printed."""
    assert sheet(duetime, deployment, due_at=due_at)["due"].startswith(due_at[:10])


def test_the_view_of_a_task_shows_payload_and_result(duetime: Run, deployment: Deployment) -> None:
    """Payload and result are each printed on one line."""
    lines = sheet(
        duetime,
        deployment,
        name="monthly",
        tags={"team": "dba"},
        payload={"a": 1},
        target={"kind": "http", "url": "https://example.org"},
        attempt=2,
        retry={"max_attempts": 5},
        progress={"percent": 40, "message": "rows"},
        lateness_ms=12,
        result=[1],
        error={"type": "Timeout", "message": "too slow"},
        finished_at="2026-11-21T11:59:58Z",
    )
    assert {label: lines[label] for label in lines if label not in {"id", "type", "due", "created", "priority"}} == {
        "state": "running",
        "name": "monthly",
        "tags": "team=dba",
        "payload": '{"a": 1}',
        "target": '{"kind": "http", "url": "https://example.org"}',
        "attempt": "2 of 5",
        "progress": "40% rows",
        "late": "12 ms",
        "result": "[1]",
        "error": "Timeout: too slow",
        "finished": "2026-11-21 20:59:58 JST (2 s ago)",
    }


def test_the_view_of_a_new_task_has_no_empty_lines(duetime: Run, deployment: Deployment) -> None:
    """A new task's view contains no empty lines."""
    assert set(sheet(duetime, deployment)) == {"id", "state", "type", "priority", "due", "created"}


def test_a_table_has_a_row_for_each_task(duetime: Run, deployment: Deployment) -> None:
    """Ids are never cut, and columns without any values are left out."""
    deployment.tasks |= {"x": TASK, "y": {**TASK, "id": "01KAHXQ6C0000000000000000B", "lateness_ms": 3}}
    header, first, second = duetime("tasks", "list").stdout.splitlines()
    assert header.split() == ["id", "state", "due", "late", "type"]
    assert first.split() == ["01KAHXQ6C0000000000000000A", "running", "21:05:00", "(in", "5", "min)", "report"]
    assert second.split()[0] == "01KAHXQ6C0000000000000000B"
    assert second.split()[-3:] == ["3", "ms", "report"]


def test_a_narrow_screen_shortens_only_names(
    duetime: Run, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a screen of 80 columns, a task is one line with its complete id, state and time."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    task = {**TASK, "type": "ci-kubernetes-e2e", "name": "a name of some words", "state": "rolling_back"}
    deployment.tasks |= {"x": {**task, "lateness_ms": 3}}
    shown = [ANSI.sub("", line) for line in duetime("tasks", "list").stdout.splitlines()]
    assert len(shown) == 2
    assert shown[1].startswith("01KAHXQ6C0000000000000000A  rolling_back  21:05:00 (in 5 min)")
    assert "…" in shown[1]


def test_a_table_cut_by_its_limit_says_that_there_are_more_tasks(duetime: Run, deployment: Deployment) -> None:
    """If a list is cut by its limit, the output says that there are more tasks."""
    deployment.tasks |= {str(number): TASK for number in range(3)}
    assert "2 shown, there are more" in duetime("tasks", "list", "--limit", "2").stdout
    assert "there are more" not in duetime("tasks", "list", "--limit", "3").stdout


def test_an_empty_table_is_reported_with_a_message(duetime: Run) -> None:
    """An empty list is reported in words."""
    assert duetime("tasks", "list").stdout == "no tasks\n"


@pytest.mark.parametrize("name", ["\x1b]0;owned\x07", "\x1b[2J", "a\rb", "[red]x[/red]", "\u202e", "\ud800"])
def test_control_characters_in_a_task_name_are_escaped(duetime: Run, deployment: Deployment, name: str) -> None:
    """Control characters and markup in user-supplied text are escaped."""
    shown = sheet(duetime, deployment, name=name)["name"]
    assert shown == "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in name)
    assert shown.isprintable()


@pytest.mark.usefixtures("duetime")
def test_characters_missing_from_the_terminals_encoding_are_escaped(deployment: Deployment) -> None:
    """A character that the terminal's encoding lacks is escaped in text and unchanged in JSON."""
    deployment.tasks["x"] = {**TASK, "name": "né"}
    shown = CliRunner(charset="ascii").invoke(app, ["tasks", "get", "x"])
    document = CliRunner(charset="ascii").invoke(app, ["tasks", "get", "x", "--json"])
    assert (shown.exit_code, document.exit_code) == (0, 0)
    assert "n\\xe9" in shown.stdout
    assert json.loads(document.stdout)["name"] == "né"


def test_a_long_payload_is_cut_with_a_hint_at_the_option(duetime: Run, deployment: Deployment) -> None:
    """A long payload is cut, and the view names the option that shows the complete payload."""
    deployment.tasks["x"] = {**TASK, "payload": "y" * 1_000}
    shown = duetime("tasks", "get", "x").stdout
    assert "… (--json shows all)" in shown
    assert shown.count("y") < 1_000
