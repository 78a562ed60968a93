"""Tests `duetime tasks wait` and `duetime tasks watch`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.deployment import Deployment

    Run = Callable[..., Result]


@pytest.fixture
def ids(duetime: Run, deployment: Deployment) -> list[str]:
    """Create two tasks and return their ids."""
    for _ in range(2):
        duetime("tasks", "create", "report")
    deployment.received.clear()
    return list(deployment.tasks)


def test_wait_returns_when_all_tasks_have_ended(
    duetime: Run, deployment: Deployment, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each poll is one request for all tasks that have not ended, and tasks are printed in the arguments' order."""
    states = iter([("running", "succeeded"), ("running", "succeeded"), ("succeeded", "succeeded")])
    page = deployment.page

    def changing(query: dict[str, list[str]]) -> dict[str, object]:
        for task_id, state in zip(ids, next(states), strict=True):
            deployment.tasks[task_id]["state"] = state
        return page(query)

    monkeypatch.setattr(deployment, "page", changing)
    result = duetime("tasks", "wait", ids[1], ids[0].lower(), "--json")
    assert result.exit_code == 0
    assert [task["id"] for task in json.loads(result.stdout)] == [ids[1], ids[0]]
    *polls, first, second = deployment.received
    # The API rejects ids together with other parameters.
    assert [request.query for request in polls] == [
        {"ids": [f"{ids[1]},{ids[0]}"]},
        {"ids": [ids[0]]},
        {"ids": [ids[0]]},
    ]
    # Lists do not contain results.
    assert [each.path.rpartition("/")[2] for each in (first, second)] == [ids[1], ids[0]]


def test_tasks_due_much_later_are_polled_rarely(
    duetime: Run, deployment: Deployment, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that are due later are polled as often as by `tasks.wait`, every few seconds until the first is due."""
    for wait in ("1h", "3s"):
        duetime("tasks", "create", "report", "--in", wait)
    page = deployment.page

    def ended_after_two_polls(query: dict[str, list[str]]) -> dict[str, object]:
        if len(waits) == 2:
            for task in deployment.tasks.values():
                task["state"] = "succeeded"
        return page(query)

    monkeypatch.setattr(deployment, "page", ended_after_two_polls)
    assert duetime("tasks", "wait", *deployment.tasks).exit_code == 0
    assert waits == [3.2, 3.2]


@pytest.mark.parametrize("state", ["failed", "cancelled", "rolled_back"])
def test_a_wait_with_an_unsuccessful_task_exits_with_code_1(
    duetime: Run, deployment: Deployment, ids: list[str], state: str
) -> None:
    """If one task did not succeed, all tasks are still printed and the exit code is 1."""
    deployment.tasks[ids[0]]["state"] = "succeeded"
    deployment.tasks[ids[1]]["state"] = state
    result = duetime("tasks", "wait", "-", typed="\n".join(ids))
    assert result.exit_code == 1
    assert [text for text in (*ids, "succeeded", state) if text not in result.stdout] == []


def test_a_wait_that_times_out_exits_with_code_4(
    duetime: Run, ids: list[str], waits: list[float], deployment: Deployment
) -> None:
    """When the wait times out, the tasks are printed in their current states and the exit code is 4."""
    result = duetime("tasks", "wait", *ids, "--timeout", "0")
    assert (result.exit_code, waits, len(deployment.received)) == (4, [], 1)
    assert "scheduled" in result.stdout


def test_a_missing_task_ends_the_wait_with_an_error(duetime: Run, ids: list[str]) -> None:
    """A missing task ends the wait with an error, because the wait would never end otherwise."""
    result = duetime("tasks", "wait", ids[0], "01NOSUCHTASK")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no task 01NOSUCHTASK" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["-"], ["x", "--timeout", "soon"]])
def test_an_invalid_wait_sends_nothing(duetime: Run, deployment: Deployment, arguments: list[str]) -> None:
    """Without a task, or with an invalid duration, nothing is sent."""
    assert (duetime("tasks", "wait", *arguments, typed="").exit_code, deployment.received) == (2, [])


def test_watch_rejects_filters_with_an_id(duetime: Run) -> None:
    """The filters for `watch` select from many tasks and are therefore refused together with an id."""
    result = duetime("tasks", "watch", "01TASK", "--state", "failed")
    assert result.exit_code == 2
    assert "--state" in result.stderr
