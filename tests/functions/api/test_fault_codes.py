"""Tests that fault codes are more precise than `invalid` where possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

SCHEDULE = {"name": "nightly", "cron": "0 2 * * *", "task": {"type": "report"}}
PERIOD = {"scheduled_after": "2026-11-01T00:00:00Z", "scheduled_before": "2026-11-02T00:00:00Z"}
REPORTS = {"filter": {"type": "report"}}
REFUSED: list[tuple[str, str, dict[str, Any], dict[str, str]]] = [
    ("POST", "/v1/tasks", {"type": "report", "due_at": "2036-12-01T00:00:00Z"}, {"due_at": "out_of_range"}),
    (
        "POST",
        "/v1/tasks",
        {"type": "report", "due_at": "2026-12-01T00:00:00Z", "delay_seconds": 5},
        {"due_at": "conflict", "delay_seconds": "conflict"},
    ),
    ("POST", "/v1/tasks/cancel", {"filter": {}}, {"filter": "required"}),
    ("POST", "/v1/tasks/cancel", {**REPORTS, "all": True}, {"all": "conflict"}),
    ("POST", "/v1/tasks/cancel", {"filter": {"state": "failed"}}, {"filter.state": "not_allowed"}),
    ("POST", "/v1/tasks/update", {**REPORTS, "update": {}}, {"update": "required"}),
    ("POST", "/v1/tasks/cancel", {**REPORTS, "confirmation_token": "x"}, {"confirmation_token": "conflict"}),
    ("POST", "/v1/schedules", {**SCHEDULE, "rate": "5 minutes"}, {"rate": "conflict"}),
    ("POST", "/v1/schedules", {**SCHEDULE, "cron": "61 * * * *"}, {"cron": "out_of_range"}),
    ("POST", "/v1/schedules", {**SCHEDULE, "cron": "every day"}, {"cron": "pattern"}),
    ("POST", "/v1/schedules", {**SCHEDULE, "timezone": "Europe/Lodnon"}, {"timezone": "pattern"}),
    ("POST", "/v1/schedules", {**SCHEDULE, "calendars": ["none"]}, {"calendars[0]": "not_allowed"}),
    (
        "POST",
        "/v1/schedules",
        {**SCHEDULE, "task": {"type": "report", "due_at": "2026-12-01T00:00:00Z"}},
        {"task.due_at": "not_allowed"},
    ),
    (
        "POST",
        "/v1/schedules/nightly/backfills",
        {**PERIOD, "scheduled_before": "2026-10-01T00:00:00Z"},
        {"scheduled_before": "conflict"},
    ),
    ("PUT", "/v1/calendars/uk", {"name": "us", "dates": {}}, {"name": "conflict"}),
    ("PUT", "/v1/calendars/uk", {"dates": {"2026-02-30": "x"}}, {"dates.2026-02-30": "out_of_range"}),
    (
        "POST",
        "/v1/topologies",
        {"nodes": {"a": {"type": "x", "depends_on": ["b"]}, "b": {"type": "x", "depends_on": ["a"]}}},
        {"nodes": "conflict"},
    ),
    (
        "POST",
        "/v1/topologies",
        {"nodes": {"a": {"type": "x", "depends_on": ["b"]}}},
        {"nodes.a.depends_on": "not_allowed"},
    ),
    ("POST", "/v1/tasks", {"type": "x", "target": {"kind": "topology"}, "payload": 5}, {"payload": "wrong_type"}),
]


@pytest.mark.parametrize(("method", "path", "body", "codes"), REFUSED)
def test_each_fault_of_a_refused_request_has_a_code(
    api: Gateway, method: str, path: str, body: dict[str, Any], codes: dict[str, str]
) -> None:
    """Each fault in a refused request has a code, so that programs need not parse the reason."""
    api.send("POST", "/v1/tasks", {"type": "report", "delay_seconds": 60})
    if "backfills" in path:
        assert api.send("POST", "/v1/schedules", SCHEDULE).status == 201
    answer = api.send(method, path, body)
    assert {fault["field"]: fault["code"] for fault in answer.problem["errors"]} == codes, answer.text
