"""Tests `duetime topologies` with the real API."""

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
def test_a_graph_from_a_file_is_run_shown_and_cancelled(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running, showing, pausing, resuming and cancelling work, and a rejected action prints one line."""
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


def test_a_schedule_or_task_can_run_a_graph_from_a_file(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph file becomes the payload; its name, type and priority apply to the task unless options replace them."""
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


def test_errors_of_a_graph_rejected_by_the_api_name_file_and_field(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A well-formed graph with an invalid task is refused by the API, and the error names the file and the field."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps({"nodes": {"a": {"type": "x", "priority": "urgent"}}}), encoding="utf-8")
    refused = duetime("topologies", "run", str(path))
    assert refused.exit_code == 1
    first, field = refused.stderr.splitlines()
    assert first == f"error: {path} is not a valid topology"
    assert field.startswith("  nodes.a.priority: ")


def test_a_definition_from_a_file_is_put_run_and_deleted(
    duetime: Run, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A definition can be put twice, compared, run with typed parameters, listed with its run, and deleted."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    path = tmp_path / "nightly.json"
    parameters = {"region": {}, "rows": {"type": "integer", "default": 1}}
    nodes = {"a": {"type": "get", "payload": ["<duetime.parameters.region>", "<duetime.parameters.rows>"]}}
    for seconds in (60, 90):
        path.write_text(json.dumps({"parameters": parameters, "nodes": nodes, "timeout_seconds": seconds}))
        assert duetime("topologies", "definitions", "put", "nightly", str(path)).exit_code == 0
    assert duetime("topologies", "definitions", "diff", "nightly", "1").stdout.splitlines() == [
        "- timeout_seconds: 60",
        "+ timeout_seconds: 90",
    ]
    options = ["-p", "region=7", "-p", "rows=7", "--version", "1", "--json"]
    made = json.loads(duetime("topologies", "definitions", "run", "nightly", *options).stdout)
    assert made["payload"]["nodes"]["a"]["payload"] == ["7", 7]
    assert made["id"] in duetime("topologies", "list", "--definition", "nightly").stdout
    assert "nightly  version 2  1 node" in duetime("topologies", "definitions", "show", "nightly").stdout
    versions = json.loads(duetime("topologies", "definitions", "versions", "nightly", "--json").stdout)
    assert [each["version"] for each in versions] == [2, 1]
    refused = duetime("topologies", "definitions", "run", "nightly", "-p", "rows=x")
    assert (refused.exit_code, "parameters.region" in refused.stderr) == (1, True)
    assert duetime("topologies", "definitions", "delete", "nightly").exit_code == 0
    assert "no definitions" in duetime("topologies", "definitions", "list").stdout
