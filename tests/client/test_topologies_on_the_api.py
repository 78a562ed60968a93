"""`duetime topologies` against the API itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.client.test_worker import server as server_of_the_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tests.client.api_server import ApiServer

    Run = Callable[..., Result]

server = server_of_the_api
NODES = {"fetch": {"type": "get"}, "sum": {"type": "add", "depends_on": ["fetch"], "inputs": ["fetch"]}}


@pytest.mark.slow
def test_a_graph_goes_from_its_file_to_its_cancellation(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run, shown, paused, resumed, cancelled, and run again; what cannot be done is said in one line."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"name": "nightly", "nodes": NODES}), encoding="utf-8")
    made = duetime("topologies", "run", str(path), "--json")
    task_id = json.loads(made.stdout)["id"]
    assert "2 blocked" in duetime("topologies", "show", task_id).stdout
    for action, state in (("pause", "paused"), ("resume", "scheduled"), ("cancel", "cancelled")):
        document = json.loads(duetime("topologies", action, task_id, "--json").stdout)
        assert document["state"] == state, action
    assert duetime("topologies", "show", task_id, "--watch").exit_code == 0
    refused = duetime("topologies", "resume", task_id)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)


def test_a_schedule_and_a_task_may_be_a_graph(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file as for `topologies run`: the graph is the payload, its labels are the task's unless options are."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    path = tmp_path / "graph.json"
    path.write_text(
        json.dumps({"name": "nightly", "type": "any", "priority": "low", "on_failure": "continue", "nodes": NODES}),
        encoding="utf-8",
    )
    options = ["--topology", str(path), "--priority", "high", "--json"]
    made = duetime("schedules", "create", "weekly", "graph", "--cron", "0 6 * * 1", *options)
    task = json.loads(made.stdout)["task"]
    assert (task["type"], task["target"], task["priority"], task["name"]) == (
        "graph",
        {"kind": "topology"},
        "high",
        "nightly",
    )
    assert task["payload"]["nodes"].keys() == NODES.keys()
    assert task["payload"]["on_failure"] == "continue"
    run = json.loads(duetime("tasks", "create", "graph", "--in", "1h", *options).stdout)
    assert "2 blocked" in duetime("topologies", "show", run["id"]).stdout
    path.write_text("{}")
    assert duetime("tasks", "create", "graph", *options).exit_code == 1
    assert duetime("tasks", "create", "graph", "--payload", "1", *options).exit_code == 2


def test_what_only_the_api_can_tell_names_file_and_field(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph whose shape is right may still hold a task that is not."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"nodes": {"a": {"type": "x", "priority": "urgent"}}}), encoding="utf-8")
    refused = duetime("topologies", "run", str(path))
    assert refused.exit_code == 1
    first, field = refused.stderr.splitlines()
    assert first == f"error: {path} is not a valid topology"
    assert field.startswith("  nodes.a.priority: ")
