"""The API's forecast of the runs that an owner's schedules plan."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.services.schedules import preview
from tests.scenarios.scenario import PLAIN, Scenario

TIMINGS: dict[str, dict[str, Any]] = {
    "hourly": {"cron": "0 * * * *"},
    "also": {"cron": "0 */12 * * *"},
    "paused": {"cron": "0 * * * *"},
    "endless": {"permanent": {"gap_seconds": 60}},
}

YEARLY = {"cron": "30 1 1 1 *"}


def test_only_active_schedules_with_times_are_in_the_forecast() -> None:
    """The forecast excludes paused and permanent schedules, and each period names its schedules."""
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


def test_a_forecast_above_the_maximum_number_of_schedules_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the maximum number of schedules, only the first schedules by name count, and `is_complete` is false."""
    monkeypatch.setattr(preview, "MAX_FORECAST_SCHEDULES", 5)
    monkeypatch.setattr(preview, "_FORECAST_PAGE", 2)
    with Scenario() as account:
        for number in range(5):
            account.send("POST", "/v1/schedules", {"name": f"n{number}", **YEARLY, "task": {"type": PLAIN}})
        account.ask("POST", "/v1/schedules", {"name": "n5", **TIMINGS["hourly"], "task": {"type": PLAIN}})
        found = account.ask("GET", "/v1/forecast").body
        assert not found["is_complete"]
        assert not any(period["schedules"] for period in found["periods"])
        account.ask("DELETE", "/v1/schedules/n0")
        found = account.ask("GET", "/v1/forecast").body
    assert found["is_complete"]
    assert {each["name"] for period in found["periods"] for each in period["schedules"]} == {"n5"}


def test_a_forecast_returns_the_schedules_counted_within_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time for counting is used up, the forecast has only the schedules counted so far."""
    monkeypatch.setattr(preview, "_FORECAST_TIME", -1)
    with Scenario() as account:
        account.ask("POST", "/v1/schedules", {"name": "hourly", **TIMINGS["hourly"], "task": {"type": PLAIN}})
        found = account.ask("GET", "/v1/forecast").body
    assert not found["is_complete"]
    assert sum(period["runs"] for period in found["periods"]) == 0


@pytest.mark.parametrize("hours", ["0", "169", "x", "1.5"])
def test_a_forecast_of_less_than_one_or_over_168_hours_is_rejected(hours: str) -> None:
    """A number of hours outside 1 to 168 is refused, and the error names `hours`."""
    with Scenario() as account:
        refused = account.ask("GET", "/v1/forecast", query=f"hours={hours}")
        assert refused.status == 400
        assert refused.body["errors"][0]["field"] == "hours"
        assert account.ask("GET", "/v1/forecast", query="hours=168").body["period_seconds"] == 3 * 3600
