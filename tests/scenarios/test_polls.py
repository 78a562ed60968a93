"""Clients that read tasks repeatedly until they end."""

from __future__ import annotations

from duetime.domain.times import MINUTE
from tests.scenarios.scenario import PLAIN, Scenario


def test_reading_tasks_by_ids_is_consistent() -> None:
    """Reading tasks by `ids` is consistent: a client sees the task it just cancelled as cancelled."""
    with Scenario() as scenario:
        scenario.dynamodb.lag = lambda: MINUTE
        task_id = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 60}).body["id"]
        scenario.ask("POST", f"/v1/tasks/{task_id}/cancel")
        found = scenario.ask("GET", "/v1/tasks", query=f"ids={task_id}").body["tasks"]
        assert [task["state"] for task in found] == ["cancelled"]
