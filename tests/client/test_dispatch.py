"""Tests the output of `duetime dispatch`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.client.deployment import Answer, Deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

STATUS: dict[str, Any] = {
    "last_tick_at": "2026-11-21T11:59:00Z",
    "dispatched_until": "2026-11-21T12:03:00Z",
    "queues": [
        {"priority": "high", "pulled_type": None, "waiting": 12, "delayed": 3, "in_flight": 1},
        {"priority": None, "pulled_type": "render", "waiting": 0, "delayed": 0, "in_flight": 0},
    ],
    "groups": [
        {
            "group": 0,
            "first_shard": 0,
            "last_shard": 15,
            "read_by": "tick-1",
            "epoch": 7,
            "dispatched_until": "2026-11-21T12:03:00Z",
        },
        {"group": 1, "first_shard": 16, "last_shard": 19, "read_by": None, "epoch": 0, "dispatched_until": None},
    ],
}


def test_an_operator_sees_the_trigger_and_the_queues(duetime: Run, deployment: Deployment) -> None:
    """The command prints the time since the last tick, and one row per queue and per shard group, or prints JSON."""
    deployment.scripted += [Answer(200, STATUS)] * 2
    lines = duetime("dispatch").stdout.splitlines()
    assert lines[0].startswith("the trigger last ran ")
    assert "1 min" in lines[0]
    assert [line.split() for line in lines[3:5]] == [["high", "12", "3", "1"], ["type", "render", "0", "0", "0"]]
    assert lines[6].split()[:4] == ["0-15", "tick-1", "7", "2026-11-21"]
    assert lines[7].split() == ["16-19", "nobody", "yet", "0"]
    assert json.loads(duetime("dispatch", "--json").stdout) == STATUS


def test_the_command_reports_that_the_trigger_has_not_run(duetime: Run, deployment: Deployment) -> None:
    """In a new stack, the command reports that the trigger has not run."""
    deployment.scripted.append(Answer(200, {**STATUS, "last_tick_at": None, "dispatched_until": None}))
    assert duetime("dispatch").stdout.splitlines()[0] == "the trigger has not run yet"
