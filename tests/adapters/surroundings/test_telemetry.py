from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.adapters.runtime.telemetry import PowertoolsTelemetry

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

SHOWN = {"owner": frozenset({"acme"})}


def written(capsys: pytest.CaptureFixture[str], telemetry: PowertoolsTelemetry) -> list[dict[str, Any]]:
    """Return the lines that a flush writes."""
    telemetry.flush()
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def directive(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metrics that CloudWatch extracts from a line."""
    (found,) = line["_aws"]["CloudWatchMetrics"]
    assert isinstance(found, dict)
    return found


def test_metric_lines_follow_the_embedded_metric_format(capsys: pytest.CaptureFixture[str]) -> None:
    """Namespace, dimensions and units follow CloudWatch's embedded metric format."""
    telemetry = PowertoolsTelemetry("duetime-worker", "duetime", SHOWN)
    telemetry.count("tasks_succeeded", 3)
    telemetry.measure("lateness", 7)
    (line,) = written(capsys, telemetry)
    assert line["service"] == "duetime-worker"
    assert directive(line) == {
        "Namespace": "duetime",
        "Dimensions": [["service"]],
        "Metrics": [{"Name": "tasks_succeeded", "Unit": "Count"}, {"Name": "lateness", "Unit": "Milliseconds"}],
    }
    assert (line["tasks_succeeded"], line["lateness"]) == ([3], [7])


def test_a_metric_with_a_dimension_also_counts_in_the_total(capsys: pytest.CaptureFixture[str]) -> None:
    """A metric with a dimension is written once per value, and CloudWatch also adds it to the total."""
    telemetry = PowertoolsTelemetry("duetime-worker", "duetime", SHOWN)
    telemetry.measure("wait", 5, gate="lock")
    telemetry.measure("wait", 6, gate="lock")
    telemetry.measure("wait", 7, gate="retry")
    telemetry.count("tasks_succeeded")
    found = {line.get("gate", ""): line for line in written(capsys, telemetry)}
    assert found.keys() == {"", "lock", "retry"}
    assert (found["lock"]["wait"], found["retry"]["wait"]) == ([5, 6], [7])
    assert directive(found["lock"])["Dimensions"] == [["service"], ["service", "gate"]]
    assert "wait" not in found[""]


def test_functions_add_to_shared_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """A count that an alarm watches in total is written by all functions for the same service."""
    telemetry = PowertoolsTelemetry("duetime-api", "duetime", SHOWN)
    telemetry.count("tasks_failed", 2, owner="acme")
    telemetry.count("attempts_lost")
    telemetry.count("tasks_succeeded")
    lines = written(capsys, telemetry)
    assert {line["service"]: [*line] for line in lines if "owner" not in line} == {
        "duetime": ["_aws", "service", "attempts_lost"],
        "duetime-api": ["_aws", "service", "tasks_succeeded"],
    }
    (by_owner,) = [line for line in lines if "owner" in line]
    assert (by_owner["service"], by_owner["tasks_failed"]) == ("duetime", [2])


def test_only_owners_in_the_settings_have_separate_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """Only owners that are named in the settings have separate metrics; other owners count only in the total."""
    telemetry = PowertoolsTelemetry("duetime-worker", "duetime", SHOWN)
    for number in range(50):
        telemetry.count("tasks_failed", owner=f"stranger-{number}")
    telemetry.count("tasks_failed", owner="acme")
    found = {line.get("owner", ""): line for line in written(capsys, telemetry)}
    assert {owner: line["tasks_failed"] for owner, line in found.items()} == {"": [50], "acme": [1]}


def test_a_metric_with_many_values_is_written_on_several_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A metric with more than a hundred values, the limit of a line, is written on several lines."""
    telemetry = PowertoolsTelemetry("duetime-api", "duetime", SHOWN)
    for number in range(250):
        telemetry.measure("lateness", number)
    telemetry.count("tasks_succeeded", 2)
    lines = written(capsys, telemetry)
    assert [len(line["lateness"]) for line in lines] == [100, 100, 50]
    assert sorted(value for line in lines for value in line["lateness"]) == list(range(250))
    assert [line["tasks_succeeded"] for line in lines if "tasks_succeeded" in line] == [[2]]


def test_no_line_has_more_than_a_hundred_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """A line has at most a hundred metrics; additional metrics are written on more lines."""
    telemetry = PowertoolsTelemetry("duetime-api", "duetime", SHOWN)
    for number in range(150):
        telemetry.count(f"metric_{number}")
    lines = written(capsys, telemetry)
    assert [len(directive(line)["Metrics"]) for line in lines] == [100, 50]
