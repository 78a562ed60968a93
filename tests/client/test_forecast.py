"""Tests the output of `duetime schedules forecast`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]


def period(start_at: str, runs: int, **schedules: int) -> dict[str, Any]:
    """Return one period in a forecast response."""
    planned = [{"name": name, "runs": number} for name, number in schedules.items()]
    return {"start_at": start_at, "runs": runs, "schedules": planned}


FORECAST: dict[str, Any] = {
    "period_seconds": 1800,
    "periods": [
        period("2026-11-21T12:00:00Z", 0),
        period("2026-11-21T12:30:00Z", 4, hourly=1, daily=1),
        period("2026-11-21T13:00:00Z", 1, hourly=1),
    ],
    "collisions": [{"at": "2026-11-21T12:45:00Z", "schedules": ["daily", "hourly"]}],
    "is_complete": True,
}

ROWS = ("4  hourly 1, daily 1, others 2", "1  hourly 1")


def test_a_forecast_lists_periods_with_runs_in_local_time(duetime: Run, deployment: Deployment) -> None:
    """Periods are printed in local time, with the runs of unlisted schedules; `--json` prints the response."""
    deployment.scripted += [Answer(200, FORECAST)] * 2
    lines = duetime("schedules", "forecast").stdout.splitlines()
    assert "21:30:00" in lines[1]
    assert [line.rstrip().endswith(end) for line, end in zip(lines[1:3], ROWS, strict=True)] == [True, True]
    assert lines[3] == "5 runs planned"
    assert "21:45:00" in lines[4]
    assert lines[4].endswith("together: daily, hourly")
    assert len(lines) == 5
    assert json.loads(duetime("schedules", "forecast", "--json").stdout) == FORECAST


def test_the_length_of_a_forecast_is_sent(duetime: Run, deployment: Deployment) -> None:
    """A forecast of one week is requested as 168 hours."""
    deployment.scripted.append(Answer(200, FORECAST))
    duetime("schedules", "forecast", "--hours", "168")
    assert deployment.received[-1].query == {"hours": ["168"]}


def test_a_partial_forecast_is_reported_as_incomplete(duetime: Run, deployment: Deployment) -> None:
    """The command says that a partial forecast is incomplete."""
    deployment.scripted.append(Answer(200, {**FORECAST, "is_complete": False}))
    assert "only the first by name are included" in duetime("schedules", "forecast").stdout


def test_without_planned_runs_no_table_is_printed(duetime: Run, deployment: Deployment) -> None:
    """Without any planned runs, no empty table is printed."""
    deployment.scripted.append(Answer(200, {**FORECAST, "periods": [], "collisions": []}))
    assert duetime("schedules", "forecast").stdout == "0 runs planned\n"
