"""Requests with a forbidden URL are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.scenario import PLAIN, Scenario

METADATA = "http://169.254.169.254/latest/meta-data/"


def calling(url: str) -> dict[str, Any]:
    """A task that calls a URL."""
    return {"type": PLAIN, "target": {"kind": "http", "url": url}}


def faults(reply: Any) -> list[str]:  # noqa: ANN401 - see `scenario.py`
    """The invalid fields named in a 422."""
    assert (reply.status, reply.body["code"]) == (422, "fields_invalid")
    return [fault["field"] for fault in reply.body["errors"]]


@pytest.mark.parametrize("url", [METADATA, "https://10.0.0.1/", "https://localhost/", "http://2130706433/"])
def test_a_task_with_a_forbidden_target_or_callback_is_rejected(url: str) -> None:
    """A task with a forbidden target or callback is refused, alone or in a batch, and no task is created."""
    with Scenario() as scenario:
        assert faults(scenario.ask("POST", "/v1/tasks", calling(url))) == ["target.url"]
        assert faults(scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "callback_url": url})) == ["callback_url"]
        batch = scenario.ask("POST", "/v1/tasks/batch", {"tasks": [{"type": PLAIN}, calling(url)]})
        assert [each["status"] for each in batch.body["results"]] == [201, 422]
        assert batch.body["results"][1]["problem"]["errors"][0]["field"] == "tasks[1].target.url"
        assert len(scenario.ask("GET", "/v1/tasks").body["tasks"]) == 1


def test_a_change_to_a_forbidden_target_or_callback_is_rejected() -> None:
    """A change to a forbidden target or callback is refused in the same way as in a creation."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 600}).body["id"]
        path = f"/v1/tasks/{task}"
        assert faults(scenario.ask("PATCH", path, {"target": {"kind": "http", "url": METADATA}})) == ["target.url"]
        assert faults(scenario.ask("PATCH", path, {"callback_url": METADATA})) == ["callback_url"]
        assert scenario.record(task).version == 1


def test_a_schedule_or_node_with_a_forbidden_target_is_rejected() -> None:
    """Task templates in schedules and nodes are checked in the same way as tasks."""
    with Scenario() as scenario:
        schedule = {"name": "hourly", "cron": "0 * * * *", "task": calling(METADATA)}
        assert faults(scenario.ask("POST", "/v1/schedules", schedule)) == ["task.target.url"]
        assert scenario.ask("GET", "/v1/schedules/hourly").status == 404
        graph = {"nodes": {"first": calling(METADATA)}}
        assert faults(scenario.ask("POST", "/v1/topologies", graph)) == ["nodes.first.target.url"]


def test_a_host_name_is_accepted_without_being_resolved() -> None:
    """A host name is accepted, because it is resolved only at the call."""
    with Scenario() as scenario:
        later = {**calling("https://hooks.example.org/run"), "delay_seconds": 3600}
        assert scenario.ask("POST", "/v1/tasks", later).status == 201
