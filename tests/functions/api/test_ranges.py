"""Tests that requests with an empty time range are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

EARLY, LATE = "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z"


@pytest.mark.parametrize("subject", ["due", "created", "finished"])
@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/topologies"])
def test_a_task_list_with_an_empty_time_range_is_rejected(api: Gateway, path: str, subject: str) -> None:
    """A task list with an empty time range is refused, and the error names the parameter for the range's end."""
    answer = api.send("GET", path, query=f"{subject}_after={LATE}&{subject}_before={EARLY}")
    assert answer.status == 400
    assert answer.faults == {f"{subject}_before": f"should be after {subject}_after"}


@pytest.mark.parametrize("path", ["/v1/schedules/nightly/runs", "/v1/schedules/nightly/occurrences"])
def test_a_list_of_runs_or_occurrences_with_an_empty_range_is_rejected(api: Gateway, path: str) -> None:
    """A list of a schedule's runs or occurrences with an empty time range is refused, and the error names the end."""
    answer = api.send("GET", path, query=f"scheduled_after={LATE}&scheduled_before={EARLY}")
    assert (answer.status, list(answer.faults)) == (400, ["scheduled_before"])


@pytest.mark.parametrize(
    ("path", "body", "subject", "field"),
    [
        ("/v1/tasks/cancel", {}, "due", "filter.due_before"),
        ("/v1/tasks/update", {"update": {"name": "n"}}, "created", "filter.created_before"),
        ("/v1/tasks/retry", {}, "finished", "filter.finished_before"),
    ],
)
def test_an_action_by_filter_with_an_empty_time_range_is_rejected(
    api: Gateway, path: str, body: dict[str, Any], subject: str, field: str
) -> None:
    """An action by filter with an empty time range is refused, even as a dry run, and the error names its end."""
    wanted = {"filter": {f"{subject}_after": LATE, f"{subject}_before": EARLY}, **body}
    for dry_run in (True, False):
        answer = api.send("POST", path, {**wanted, "dry_run": dry_run})
        assert (answer.status, answer.faults) == (422, {field: f"should be after {subject}_after"})


def test_schedules_backfills_and_calendars_with_an_empty_period_are_rejected(api: Gateway) -> None:
    """Schedules, backfills and calendars with an empty period are refused, and the error names the period's end."""
    schedule = {"name": "nightly", "cron": "30 1 * * *", "task": {"type": "a", "target": {"kind": "handler"}}}
    assert api.send("POST", "/v1/schedules", schedule).status == 201
    for method, path, body, field in (
        (
            "POST",
            "/v1/schedules/nightly/backfills",
            {"scheduled_after": LATE, "scheduled_before": EARLY},
            "scheduled_before",
        ),
        ("POST", "/v1/schedules", {**schedule, "name": "b", "start_at": LATE, "end_at": EARLY}, "end_at"),
        ("POST", "/v1/schedules/preview", {"cron": "30 1 * * *", "start_at": LATE, "end_at": EARLY}, "end_at"),
        ("PATCH", "/v1/schedules/nightly", {"start_at": LATE, "end_at": EARLY}, "end_at"),
        ("PUT", "/v1/calendars/uk", {"spans": [{"start": LATE, "end": EARLY}]}, "spans[0].end"),
    ):
        answer = api.send(method, path, body)
        assert (answer.status, list(answer.faults)) == (422, [field]), answer.text
