"""Tests that `duetime tasks create --file` creates many tasks, each with a separate result."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client.manifests.task_lines import lines_of_csv, lines_of_json, with_defaults
from tests.client.deployment import Answer, Deployment, problem
from tests.client.test_worker import server as server_of_the_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tests.client.api_server import ApiServer

    Run = Callable[..., Result]

server = server_of_the_api


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """Return a function that writes a file of JSON Lines, one per value; text is written unchanged."""

    def write(*values: object, name: str = "tasks.jsonl") -> str:
        path = tmp_path / name
        lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return write


def test_a_rejected_line_of_a_file_is_reported_with_its_field(
    duetime: Run, server: ApiServer, written: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused line does not stop other lines; with the same key, the corrected file creates only missing tasks."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    good = [{"type": "mail", "name": str(number), "delay_seconds": 3600} for number in range(3)]
    bad: list[Any] = [{"type": "mail", "dealy_seconds": 5}, {"type": "mail", "payload": 1, "priority": "hihg"}]
    file = written(good[0], "", bad[0], "{", "[]", bad[1], good[1])
    first = duetime("tasks", "create", "--file", file, "--idempotency-key", "K")
    assert (first.exit_code, first.stdout) == (1, "")
    told = first.stderr.splitlines()
    assert [line.partition(": ")[0] for line in told[:4]] == ["line 3", "line 4", "line 5", "line 6"]
    assert told[0].startswith("line 3: dealy_seconds: ")
    assert told[1].startswith("line 4: is not JSON: ")
    assert told[2] == "line 5: should be an object with the fields of a task"
    assert told[3].startswith("line 6: priority: ")
    assert told[4:] == [
        "2 tasks created, 4 refused",
        "To create only the other tasks, run the command again with --idempotency-key K",
    ]
    written(good[0], "", good[2], good[2], good[2], good[2], good[1])
    second = json.loads(duetime("tasks", "create", "--file", file, "--idempotency-key", "K", "--json").stdout)
    assert (len(second["created"]), second["refused"], second["not_tried"]) == (6, [], [])
    listed = json.loads(duetime("tasks", "list", "--all", "--json").stdout)
    assert sorted(task["name"] for task in listed) == ["0", "1", "2", "2", "2", "2"]


def test_a_line_edited_after_its_task_was_created_is_rejected(
    duetime: Run, server: ApiServer, written: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that was edited between two runs is reported and does not create a second task."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    duetime("tasks", "create", "mail", "--file", written({"name": "a"}), "--idempotency-key", "K")
    result = duetime("tasks", "create", "mail", "--file", written({"name": "b"}), "--idempotency-key", "K", "--json")
    (refused,) = json.loads(result.stdout)["refused"]
    assert (result.exit_code, refused["line"]) == (1, 1)
    assert len(json.loads(duetime("tasks", "list", "--json").stdout)) == 1


def test_options_are_defaults_of_the_lines(duetime: Run, deployment: Deployment, written: Callable[..., str]) -> None:
    """A line's values, including the due time, take precedence over the options, and tags are merged."""
    file = written({"tags": {"a": "1"}}, {"type": "own", "due_at": "2026-12-01T09:00:00Z", "priority": "low"})
    result = duetime("tasks", "create", "report", "-f", file, "--tag", "b=2", "--in", "5m", "--priority", "high")
    assert result.exit_code == 0
    assert deployment.received[0].document["tasks"] == [
        {"type": "report", "priority": "high", "delay_seconds": 300, "tags": {"a": "1", "b": "2"}},
        {"type": "own", "priority": "low", "due_at": "2026-12-01T09:00:00Z", "tags": {"b": "2"}},
    ]


def test_many_tasks_of_a_file_are_sent_in_batches_of_a_hundred(
    duetime: Run, deployment: Deployment, written: Callable[..., str]
) -> None:
    """Each batch has a separate idempotency key, which is derived from the position of the batch's first line."""
    file = written(*({"type": "mail", "name": str(number)} for number in range(950)))
    made = json.loads(duetime("tasks", "create", "--file", file, "--idempotency-key", "K", "--json").stdout)
    assert len(made["created"]) == 950
    keys = sorted(str(request.headers["Idempotency-Key"]) for request in deployment.received)
    assert keys == sorted(f"K.{first}-0" for first in range(0, 950, 100))
    names = [deployment.tasks[task_id]["name"] for task_id in made["created"]]
    assert sorted(names, key=int) == [str(number) for number in range(950)]


def test_a_batch_that_is_too_large_is_halved(duetime: Run, deployment: Deployment, written: Callable[..., str]) -> None:
    """A batch that is too large is halved; a single task that is too large is refused."""
    too_large = problem(413, "body_too_large", "more than 5 MB")
    deployment.scripted.extend([too_large, too_large, too_large])
    file = written(*({"type": "mail", "name": str(number)} for number in range(4)))
    made = json.loads(duetime("tasks", "create", "--file", file, "--json").stdout)
    assert (len(made["created"]), [each["line"] for each in made["refused"]]) == (3, [1])


def test_if_the_api_does_not_respond_the_remaining_lines_are_skipped(
    duetime: Run, deployment: Deployment, written: Callable[..., str]
) -> None:
    """If the API does not respond, the exit code is 3 and the command prints the key for another run."""
    deployment.scripted.extend([Answer(None)] * 100)
    file = written(*({"type": "mail", "name": str(number)} for number in range(900)))
    result = duetime("tasks", "create", "--file", file)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "0 tasks created" in result.stderr
    refused, left = (int(re.search(rf"(\d+) {what}", result.stderr)[1]) for what in ("refused", "not tried"))  # type: ignore[index]
    # Several requests are in progress when the first one fails.
    assert (refused + left, left >= 500) == (900, True)
    assert "--idempotency-key file-" in result.stderr
    assert len(result.stderr.splitlines()) < 30


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--file", "/nowhere/at/all"], "--file"),
        (["--file", "-", "--wait"], "--wait"),
        ([], "TYPE"),
    ],
)
def test_a_wrong_combination_of_arguments_is_rejected(
    duetime: Run, deployment: Deployment, arguments: list[str], told: str
) -> None:
    """A wrong combination of arguments is refused before anything is sent."""
    result = duetime("tasks", "create", *arguments)
    assert (result.exit_code, deployment.received) == (2, [])
    assert told in result.stderr


def test_an_empty_file_creates_nothing(duetime: Run, deployment: Deployment) -> None:
    """An empty file, or empty standard input, creates no tasks."""
    result = duetime("tasks", "create", "--file", "-", typed="\n\n")
    assert (result.exit_code, result.stderr, deployment.received) == (0, "0 tasks created\n", [])


def test_json_lines_end_only_at_line_feeds(duetime: Run, deployment: Deployment) -> None:
    """Line separators that only Python knows are kept as text, and a byte order mark is removed."""
    result = duetime("tasks", "create", "--file", "-", typed='\ufeff{"type": "mail", "payload": "a\u2028b"}\r\n')
    assert result.exit_code == 0
    assert deployment.received[0].document["tasks"] == [{"type": "mail", "payload": "a\u2028b"}]


def test_csv_has_a_column_for_each_field() -> None:
    """Dots name nested fields, cells are read as JSON if possible, and errors name the last line of a record."""
    text = (
        "type,name,due_at,tags.team,payload.customer.id,payload.note,timeout_seconds\r\n"
        'mail,007,2026-12-01T09:00:00Z,1,17,"two\r\nlines",60\r\n'
        "mail,,,,,NaN,\r\n"
        "mail,a,b,c,d,e,f,g\r\n"
    )
    first, second, third = lines_of_csv(text)
    assert (first.line, first.fields) == (
        3,
        {
            "type": "mail",
            "name": "007",
            "due_at": "2026-12-01T09:00:00Z",
            "tags": {"team": "1"},
            "payload": {"customer": {"id": 17}, "note": "two\r\nlines"},
            "timeout_seconds": 60,
        },
    )
    assert second.fields == {"type": "mail", "payload": {"note": "NaN"}}
    assert (third.line, third.fault) == (5, "has 8 cells, and the header 7")


@pytest.mark.parametrize("text", ["", "\n", "type\n"])
def test_csv_without_rows_has_no_tasks(text: str) -> None:
    """A CSV file with only a header creates no tasks."""
    assert list(lines_of_csv(text)) == []


def test_invalid_csv_is_reported_with_its_line() -> None:
    """A quote that is not closed, and a column below a column with a value, are reported with their lines."""
    assert [line.fault for line in lines_of_csv('type\nmail\n"mail')][1:] == ["is not CSV: unexpected end of data"]
    (line,) = lines_of_csv("payload,payload.a\n1,2\n")
    assert line.fault == "payload.a: payload has a value of its own"


def test_a_task_without_type_is_not_sent() -> None:
    """The error for a task without a type names both ways to set the type."""
    (line,) = lines_of_json('{"name": "a"}')
    assert with_defaults(line, {}).fault == "type: is required: write it, or give TYPE"
