"""The runs that an owner's schedules plan, as the API tells them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.scenario import PLAIN, Scenario

TIMINGS: dict[str, dict[str, Any]] = {
    "hourly": {"cron": "0 * * * *"},
    "also": {"cron": "0 */12 * * *"},
    "paused": {"cron": "0 * * * *"},
    "endless": {"permanent": {"gap_seconds": 60}},
}

YEARLY = {"cron": "30 1 1 1 *"}


def test_only_active_schedules_with_times_are_in_the_forecast() -> None:
    """A paused one plans nothing, a permanent one no times; of the others each period names its schedules."""
    with Scenario() as account:
        for name, timing in TIMINGS.items():
            made = account.ask("POST", "/v1/schedules", {"name": name, **timing, "task": {"type": PLAIN}})
            assert made.status == 201, made.body
        account.ask("POST", "/v1/schedules/paused/pause")
        found = account.ask("GET", "/v1/forecast").body
    assert found["is_complete"]
    assert len(found["periods"]) * found["period_seconds"] // 3600 == 24
    assert {each["name"] for period in found["periods"] for each in period["schedules"]} == {"hourly", "also"}
    assert sum(period["runs"] for period in found["periods"]) == 24 + 2
    assert [each["schedules"] for each in found["collisions"]] == [["also", "hourly"]] * 2


@pytest.mark.slow
def test_a_forecast_of_a_part_of_the_schedules_says_so() -> None:
    """All of a hundred are counted; of one more, the first hundred by name are."""
    with Scenario() as account:
        for number in range(100):
            account.send("POST", "/v1/schedules", {"name": f"n{number:03}", **YEARLY, "task": {"type": PLAIN}})
        account.ask("POST", "/v1/schedules", {"name": "n100", **TIMINGS["hourly"], "task": {"type": PLAIN}})
        assert not account.ask("GET", "/v1/forecast").body["is_complete"]
        account.ask("DELETE", "/v1/schedules/n000")
        found = account.ask("GET", "/v1/forecast").body
    assert found["is_complete"]
    assert {each["name"] for period in found["periods"] for each in period["schedules"]} == {"n100"}
