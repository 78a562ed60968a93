"""If the trigger is down for days or months, no accepted task is lost, and nobody has to act."""

from __future__ import annotations

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.ids import partition_of
from duetime.domain.times import DAY, minute_of
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, Scenario

DAYS = [4, 40, pytest.param(390, marks=pytest.mark.slow)]
"""Outages in days: one outlasts the messages in queues, one the ended tasks, and one lasts over a year."""


def _outage(scenario: Scenario, days: int) -> None:
    """Stop the trigger for some days, then remove all expired items."""
    scenario.faulty, scenario.ticking = True, False
    scenario.run(days * DAY)
    scenario.expire()
    scenario.ticking = True


def _timers_ahead(scenario: Scenario) -> int:
    """The number of schedule timers in future minutes."""
    now = partition_of(minute_of(scenario.now), 0)
    return sum(
        schema.SCHEDULE_MARK in item[schema.SORT_KEY]["S"] and item[schema.PARTITION_KEY]["S"] > now
        for item in scenario.items("2")
    )


@pytest.mark.slow
@pytest.mark.parametrize("days", DAYS)
def test_schedules_continue_after_an_outage_of_the_trigger(days: int) -> None:
    """After an outage, the schedule's timer still exists, and a missed run is caught up within an hour."""
    with Scenario() as scenario:
        schedule = {"name": "daily", "rate": "1 day", "catch_up_seconds": 30 * 86_400, "task": {"type": PLAIN}}
        assert scenario.ask("POST", "/v1/schedules", schedule).status == 201
        scenario.run(MINUTE)
        made = scenario.watching.tasks_made
        _outage(scenario, days)
        assert scenario.run_until(lambda: scenario.watching.tasks_made > made and _timers_ahead(scenario))


@pytest.mark.parametrize("days", DAYS)
def test_a_moved_task_runs_after_an_outage_of_the_trigger(days: int) -> None:
    """After an outage, a moved task's timer still exists, and the trigger starts the task."""
    with Scenario() as scenario:
        moved = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 36_000}).body["id"]
        assert scenario.ask("PATCH", f"/v1/tasks/{moved}", {"delay_seconds": 1_800}).status == 200
        scenario.run(MINUTE)
        _outage(scenario, days)
        assert scenario.run_until(lambda: scenario.record(moved).state == "succeeded", within=HOUR)
