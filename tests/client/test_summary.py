"""Tests the client's requests for the summary, and the command with its output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from duetime_client import Client

    Run = Callable[..., Result]

SUMMARY = {
    "total": 7,
    "states": {"failed": 2, "succeeded": 5},
    "priorities": {"normal": 7},
    "types": [
        {"type": "report", "total": 5, "states": {"succeeded": 5}},
        {"type": "mail", "total": 2, "states": {"failed": 2}},
    ],
    "other_types": 0,
    "is_complete": True,
    "as_of": "2026-11-21T11:00:00Z",
}


def test_the_summary_has_the_counts_of_the_api(client: Client, deployment: Deployment) -> None:
    """Tasks are counted by state, priority and type, and the time of the count is returned."""
    deployment.scripted.append(Answer(200, SUMMARY))
    found = client.summary.get()
    assert (deployment.received[0].method, deployment.received[0].path) == ("GET", "/stage/v1/summary")
    assert (found.total, found.states["failed"], found.priorities["normal"]) == (7, 2, 7)
    assert [(each.type, each.total) for each in found.types] == [("report", 5), ("mail", 2)]
    assert found.as_of is not None


def test_the_command_shows_a_table_of_types_and_states(duetime: Run, deployment: Deployment) -> None:
    """The table has a row per type, a column per state, and totals; `--json` prints the response."""
    deployment.scripted += [Answer(200, SUMMARY)] * 2
    shown = duetime("summary").stdout
    lines = [line.split() for line in shown.splitlines()]
    assert lines[:4] == [
        ["type", "failed", "succeeded", "all"],
        ["report", "5", "5"],
        ["mail", "2", "2"],
        ["all", "types", "2", "5", "7"],
    ]
    assert lines[4][:3] == ["counted", "up", "to"]
    assert json.loads(duetime("summary", "--json").stdout) == SUMMARY


def test_the_command_mentions_types_missing_from_the_table(duetime: Run, deployment: Deployment) -> None:
    """The command mentions types that are not listed or not counted, and prints a message if there are no tasks."""
    deployment.scripted.append(Answer(200, {**SUMMARY, "other_types": 3, "is_complete": False}))
    shown = duetime("summary").stdout
    assert "3 more types: in the last row only" in shown
    assert "more types than the API counts" in shown
    empty = {"total": 0, "states": {}, "priorities": {}, "types": [], "other_types": 0, "is_complete": True}
    deployment.scripted.append(Answer(200, {**empty, "as_of": None}))
    assert "no tasks" in duetime("summary").stdout


def test_a_deployment_without_counts_is_reported(duetime: Run, deployment: Deployment) -> None:
    """If the deployment counts no tasks, the command reports the API's problem."""
    deployment.scripted.append(problem(409, "summary_off", "this deployment does not count tasks"))
    result = duetime("summary")
    assert result.exit_code != 0
    assert "does not count tasks" in result.stderr


def test_the_command_reports_which_tasks_are_not_counted_yet(duetime: Run, deployment: Deployment) -> None:
    """The command says that older tasks are not counted yet or, after a recount, when they were counted."""
    since = {**SUMMARY, "counted_since": "2026-11-20T10:00:00Z", "recounted_at": None, "is_complete": False}
    deployment.scripted += [Answer(200, since), Answer(200, {**since, "recounted_at": "2026-11-21T10:00:00Z"})]
    assert "are not counted yet" in duetime("summary").stdout
    assert "were counted" in duetime("summary").stdout
    deployment.scripted.append(Answer(200, {**since, "total": 0, "states": {}, "types": [], "as_of": None}))
    assert "are not counted yet" in duetime("summary").stdout, "a recount has started"


def test_operators_get_a_table_of_owners(duetime: Run, deployment: Deployment) -> None:
    """The table has a row per owner, from all pages; `--json` prints one array of the responses."""
    owners = [{"owner": name, "total": 2, "states": {"failed": 2}, "is_complete": True} for name in ("ann", "bob")]
    pages = [{"owners": [owners[0]], "next_token": "more"}, {"owners": [owners[1]], "next_token": None}]
    deployment.scripted += [Answer(200, page) for page in pages * 2]
    lines = [line.split() for line in duetime("summary", "--by-owner").stdout.splitlines()]
    assert lines == [["owner", "failed", "all"], ["ann", "2", "2"], ["bob", "2", "2"]]
    assert json.loads(duetime("summary", "--by-owner", "--json").stdout) == owners
    assert [each.path for each in deployment.received] == ["/stage/v1/summary/owners"] * 4
