"""Tests that an export writes all of a caller's data as JSON Lines, and that an interrupted export can continue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client.exports import InvalidCursor
from tests.client.deployment import Answer
from tests.client.test_worker import server as server_of_the_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from duetime_client import Client
    from tests.client.api_server import ApiServer
    from tests.client.deployment import Deployment

    Run = Callable[..., Result]

server = server_of_the_api
BEFORE_TASKS = [
    Answer(200, {"owner": "ada"}),
    Answer(200, {"calendars": [], "next_token": None}),
    Answer(200, {"schedules": [{"name": "nightly"}], "next_token": None}),
    Answer(200, {"name": "nightly", "task": {"type": "x", "payload": 1}}),
    Answer(200, {"definitions": [], "next_token": None}),
    Answer(200, {"types": [], "next_token": None}),
    Answer(200, {"switches": [], "circuits": []}),
]
FIRST = Answer(200, {"tasks": [{"id": "A", "payload": {"text": "ü"}}], "next_token": "more"})
LAST = Answer(200, {"tasks": [{"id": "B", "payload": None}], "next_token": None})


def kept(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file without cursors."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["kind"] != "cursor"]


def test_an_export_has_everything_with_payloads(duetime: Run, deployment: Deployment, tmp_path: Path) -> None:
    """Objects whose lists contain only summaries are read individually; the last line contains the number of lines."""
    deployment.scripted += [*BEFORE_TASKS, FIRST, LAST]
    file = tmp_path / "ada.jsonl"
    ended = duetime("export", str(file))
    assert ended.exit_code == 0, ended.output
    assert [(line["kind"], line["value"].get("id") or line["value"].get("name")) for line in kept(file)] == [
        ("settings", None),
        ("schedule", "nightly"),
        ("task", "A"),
        ("task", "B"),
        ("end", None),
    ]
    assert kept(file)[1]["value"]["task"]["payload"] == 1
    assert kept(file)[-1]["value"] == {"lines": 4}
    assert deployment.received[-1].query == {"expand": ["payload,result"], "order": ["asc"], "next_token": ["more"]}
    assert duetime("export", str(file)).exit_code == 2


def test_an_interrupted_export_continues_after_its_last_page(
    duetime: Run, deployment: Deployment, tmp_path: Path
) -> None:
    """Lines from an incomplete page are removed, so the file equals the file from an uninterrupted export."""
    deployment.scripted += [*BEFORE_TASKS, FIRST, LAST]
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    duetime("export", str(whole))
    text = whole.read_bytes()
    broken.write_bytes(text[: text.index(b'"id":"B"')])
    deployment.received.clear()
    deployment.scripted += [LAST]
    ended = duetime("export", str(broken), "--continue")
    assert ended.exit_code == 0, ended.output
    assert (broken.read_bytes(), len(deployment.received)) == (text, 1)
    assert duetime("export", str(broken), "--continue").exit_code == 0
    assert broken.read_bytes() == text


def test_a_cursor_that_is_not_from_an_export_is_rejected(client: Client, deployment: Deployment) -> None:
    """A cursor that is not from an export is refused, and nothing is sent."""
    with pytest.raises(InvalidCursor):
        list(client.exports.read({"part": "pages", "next_token": "", "lines": 0}))
    assert deployment.received == []


def test_every_kind_of_object_is_exported_as_the_api_returns_it(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each object is exported in the form in which the API returns the object alone."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    duetime("schedules", "create", "nightly", "report", "--cron", "30 1 * * *", "--payload", '{"month": 11}')
    duetime("types", "set", "report", "retry.max_attempts=3")
    duetime("switches", "set", "owner", "local", "--max-concurrent", "5")
    made = duetime("tasks", "create", "report", "--payload", '{"month": 12}', "--in", "1h", "--json")
    file = tmp_path / "mine.jsonl"
    ended = duetime("export", str(file))
    assert ended.exit_code == 0, ended.output
    lines = kept(file)
    kinds = {line["kind"]: line["value"] for line in lines}
    assert list(kinds) == ["settings", "schedule", "type", "switch", "task", "end"]
    assert kinds["schedule"]["task"]["payload"] == {"month": 11}
    assert (kinds["task"]["id"], kinds["task"]["payload"]) == (json.loads(made.stdout)["id"], {"month": 12})
    assert kinds["end"] == {"lines": len(lines) - 1}
