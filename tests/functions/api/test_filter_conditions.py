"""Tests that actions by filter support the same conditions as the task list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from duetime.contract.bulk.bodies import FailedTaskFilter, OpenTaskFilter
from duetime.contract.tasks.queries import TaskListQuery
from tests.functions.api.test_dead_letters import gave_up

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

SOON, LATE = "2026-11-21T02:33:07.250Z", "2026-11-21T02:43:07.250Z"
PAGES = {"expand", "order", "order_by", "limit", "next_token", "count"}
ALONE = {"ids", "include_nodes", "parent", "parent_task_id"}


def counted(api: Gateway, path: str, conditions: dict[str, Any]) -> int:
    """The number of tasks that an action with this filter would change."""
    more: dict[str, Any] = {"update": {"name": "n"}} if path.endswith("update") else {}
    answer = api.send("POST", path, {"filter": conditions, "dry_run": True, **more})
    assert answer.status == 200, answer.text
    number: int = answer.body["matched"]
    return number


def test_actions_by_filter_have_the_conditions_of_the_task_list() -> None:
    """An action by filter supports all conditions of the task list, except conditions that the action determines."""
    listed = set(TaskListQuery.model_fields) - PAGES - ALONE - {"tag"} | {"tags"}
    finished = {"finished_after", "finished_before"}
    assert set(OpenTaskFilter.model_fields) == listed - finished
    assert set(FailedTaskFilter.model_fields) == listed - {"state"}


@pytest.mark.parametrize("path", ["/v1/tasks/cancel", "/v1/tasks/update"])
def test_open_tasks_are_filtered_by_state_schedule_and_creation(api: Gateway, path: str) -> None:
    """Each condition narrows the filter, and a list of several states matches tasks in any of these states."""
    paused, _ = (api.create({"type": kind, "delay_seconds": 600})["id"] for kind in ("a", "b"))
    api.send("POST", f"/v1/tasks/{paused}/pause")
    schedule = {"name": "nightly", "cron": "30 1 * * *", "task": {"type": "a", "target": {"kind": "handler"}}}
    api.send("POST", "/v1/schedules", schedule)
    assert api.send("POST", "/v1/schedules/nightly/run").status == 201
    for conditions, number in (
        ({"state": "paused"}, 1),
        ({"state": ["paused"]}, 1),
        ({"state": ["paused", "scheduled"]}, 3),
        ({"schedule": "nightly"}, 1),
        ({"schedule": "weekly"}, 0),
        ({"error_type": "Broken"}, 0),
        ({"name_contains": "night"}, 0),
        ({"error_contains": "Broken"}, 0),
        ({"created_after": SOON}, 3),
        ({"created_before": SOON}, 0),
        ({"created_before": LATE, "state": ["paused"]}, 1),
    ):
        assert counted(api, path, conditions) == number, conditions


def test_failed_tasks_are_filtered_by_error_and_end_time(api: Gateway, clock: StandingClock) -> None:
    """A retry by filter affects the same failed tasks that the list shows for these conditions."""
    task = gave_up(api, clock)
    finished = api.send("GET", f"/v1/tasks/{task}").body
    for conditions, number in (
        ({"error_type": finished["error"]["type"]}, 1),
        ({"error_type": "Other"}, 0),
        ({"error_contains": finished["error"]["type"].upper()}, 1),
        ({"error_contains": finished["error"]["message"][-4:]}, 1),
        ({"error_contains": "{type}: {message}".format_map(finished["error"])}, 1),
        ({"error_contains": "Other"}, 0),
        ({"finished_after": finished["finished_at"]}, 1),
        ({"finished_before": finished["finished_at"]}, 0),
        ({"created_before": LATE}, 1),
        ({"schedule": "nightly"}, 0),
    ):
        assert counted(api, "/v1/tasks/retry", conditions) == number, conditions
        listed = api.send("GET", "/v1/tasks", query=urlencode({"state": "failed", **conditions})).body["tasks"]
        assert len(listed) == number


@pytest.mark.parametrize(
    ("conditions", "field"),
    [
        ({"state": []}, "filter.state"),
        ({"state": ["paused", "no"]}, "filter.state"),
        ({"state": ["paused", "failed"]}, "filter.state"),
        ({"state": None}, "filter.state"),
        ({"state": [["paused"]]}, "filter.state"),
        ({"finished_after": SOON}, "filter.finished_after"),
        ({"schedule": "a b"}, "filter.schedule"),
        ({"name_contains": ""}, "filter.name_contains"),
        ({"error_contains": "x" * 257}, "filter.error_contains"),
    ],
)
def test_an_error_for_an_invalid_condition_names_the_condition(
    api: Gateway, conditions: dict[str, Any], field: str
) -> None:
    """A condition with an invalid or missing value, or with an end time for open tasks, is refused by name."""
    refused = api.send("POST", "/v1/tasks/cancel", {"filter": conditions})
    assert (refused.status, list(refused.faults)) == (422, [field])
