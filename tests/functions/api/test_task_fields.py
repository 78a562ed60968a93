"""Tests that each field that clients set is in all forms of a task, so that no field is dropped silently."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.contract.http import request_json
from duetime.contract.tasks.bodies import TaskCreate, TaskFields, TaskLabels
from duetime.contract.tasks.decoding import task_spec
from duetime.contract.tasks.responses import TaskOptionsResponse
from duetime.contract.topologies.decoding import read_graph
from duetime.domain.tasks.task_changes import TaskChanges
from duetime.domain.tasks.task_options import TASK_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.functions.api.gateway import Gateway

WHEN = {"due_at", "delay_seconds"}
DEBOUNCE = {"debounce": {"key": "customer-17", "seconds": 60, "max_seconds": 600}}
"""`debounce` cannot be combined with a due time or `unique`."""
LOCKS = {
    "locks": [
        {"key": "catalog", "mode": "shared", "max_holders": 3, "scope": "task", "wait_seconds": 9},
        {"key": "db-17", "mode": "exclusive", "max_holders": 2, "scope": "run", "wait_seconds": None},
    ]
}
"""`locks` cannot be combined with `lock`."""
OF_ANOTHER = {"parent_task_id", "group", "after", "trigger_rule"}
"""Fields that refer to other tasks or a group; see `test_child_tasks`, `test_groups` and `test_dependencies`."""
OTHER_FORMS = {*WHEN, "payload", "target"}
"""Fields that have a different name or a different form in the record and in responses."""
FULL: dict[str, Any] = {
    "type": "report",
    "payload": {"month": 11},
    "priority": "low",
    "target": {
        "kind": "http",
        "url": "https://example.org/report",
        "phases": ["prepare", "rollback"],
        "queries": ["status"],
        "headers": {"X-Team": "dba"},
        "query": {"day": "1"},
        "success": [200, 404],
        "response": {"keep": "none", "max_bytes": 9, "when_larger": "truncate"},
    },
    "retry": {
        "max_attempts": 2,
        "initial_seconds": 1.5,
        "multiplier": 3.0,
        "max_seconds": 9.0,
        "max_duration_seconds": 90,
    },
    "timeout_seconds": 31,
    "notify_within_seconds": 61,
    "rollback_on_failure": True,
    "lock": {"key": "db-17", "mode": "shared", "max_holders": 2, "scope": "run", "wait_seconds": 30},
    "rate": {"key": "crm", "limit": 50, "per_seconds": 2, "burst": 10},
    "callback_url": "https://example.org/ended",
    "notify_on": {"to": "https://example.org/alerts", "failed": True, "late_seconds": 600, "running_seconds": 900},
    "expires_seconds": 600,
    "fair_key": "customer-17",
    "fair_weight": 3,
    "unique": {"key": "customer-17", "until": "started", "on_conflict": "refuse"},
    "order": {"key": "customer-17", "on_failure": "stop"},
    "name": "monthly",
    "tags": {"team": "dba"},
    "allow_unknown_type": True,
}
KEPT = {name: value for name, value in FULL.items() if name != "allow_unknown_type"}
PART = {name: value for name, value in FULL.items() if name not in {"unique", "order"}}
"""The fields that a schedule's task, or a node, may have."""
LISTED = {name: value for name, value in KEPT.items() if name != "payload"}
CHANGES = {name: FULL[name] for name in TaskFields.model_fields if name in FULL}
LABELS = {name: FULL[name] for name in TaskLabels.model_fields if name in FULL}


def _among(told: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a response that are named in `wanted`."""
    return {name: told.get(name) for name in wanted}


def test_the_example_has_every_field_of_a_creation() -> None:
    """The example has every field of a creation request except the due time, and no default values."""
    assert set(FULL) == set(TaskCreate.model_fields) - WHEN - set(DEBOUNCE) - set(LOCKS) - OF_ANOTHER
    defaults = TaskCreate(type="other").model_dump(mode="json")
    assert [name for name, value in FULL.items() if value == defaults[name]] == []


def test_the_forms_of_a_task_have_the_same_options() -> None:
    """Requests, responses, and the domain's tasks and task changes have the same options."""
    assert set(TASK_OPTIONS) == set(TaskFields.model_fields) - OTHER_FORMS
    assert set(TASK_OPTIONS) == set(TaskOptionsResponse.__annotations__)
    assert set(TASK_OPTIONS) <= set(TaskChanges.__annotations__)


def test_a_task_is_shown_and_listed_as_it_was_created(api: Gateway) -> None:
    """A task is shown and listed with the values of all fields as they were at its creation."""
    created = api.create(FULL)
    assert _among(created, KEPT) == KEPT
    assert _among(api.send("GET", f"/v1/tasks/{created['id']}").body, KEPT) == KEPT
    (listed,) = api.send("GET", "/v1/tasks").body["tasks"]
    assert _among(listed, LISTED) == LISTED


def test_a_debounced_task_is_shown_as_it_was_created(api: Gateway) -> None:
    """A debounced task shows `debounce` as it was created."""
    created = api.create({"type": "report", **DEBOUNCE})
    assert _among(api.send("GET", f"/v1/tasks/{created['id']}").body, DEBOUNCE) == DEBOUNCE
    assert created["unique"] is None


def test_several_locks_are_shown_and_listed_as_they_were_given(api: Gateway) -> None:
    """Every form of a task shows each of its `locks` as it was given, ordered by key."""
    created = api.create({"type": "report", "delay_seconds": 60, **LOCKS})
    path = f"/v1/tasks/{created['id']}"
    assert _among(created, LOCKS) == _among(api.send("GET", path).body, LOCKS) == LOCKS
    (listed,) = api.send("GET", "/v1/tasks").body["tasks"]
    assert _among(listed, LOCKS) == LOCKS
    assert api.send("PATCH", path, {"locks": LOCKS["locks"][::-1]}).status == 200
    assert _among(api.send("GET", path).body, LOCKS) == LOCKS
    schedule = {"name": "nightly", "cron": "30 1 * * *", "task": {"type": "report", **LOCKS}}
    assert api.send("POST", "/v1/schedules", schedule).status == 201
    assert _among(api.send("POST", "/v1/schedules/nightly/run").body, LOCKS) == LOCKS


def test_every_field_can_be_changed(api: Gateway) -> None:
    """An update can change every field of a task."""
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    assert api.send("PATCH", path, CHANGES).status == 200
    assert _among(api.send("GET", path).body, CHANGES) == CHANGES


def test_a_schedule_shows_and_runs_the_task_that_it_was_given(api: Gateway) -> None:
    """A schedule's task and its runs keep every field."""
    schedule = {"name": "nightly", "cron": "30 1 * * *", "task": PART}
    kept = {name: value for name, value in PART.items() if name in KEPT}
    assert api.send("POST", "/v1/schedules", schedule).status == 201
    assert _among(api.send("GET", "/v1/schedules/nightly").body["task"], kept) == kept
    assert _among(api.send("POST", "/v1/schedules/nightly/run").body, kept) == kept


def test_a_topology_keeps_its_labels_and_the_fields_of_its_nodes(api: Gateway) -> None:
    """A topology's task has the labels in the request, and each node has the fields that the request gives it."""
    created = api.send("POST", "/v1/topologies", {**LABELS, "nodes": {"a": PART}})
    assert _among(created.body, LABELS) == LABELS
    (node,) = read_graph(json.dumps(created.body["payload"]).encode()).nodes
    assert node.spec == task_spec(request_json.read(json.dumps(PART)))


def test_a_null_name_is_accepted_in_creations_and_updates(api: Gateway) -> None:
    """A null name is accepted in creations, and removes the name in updates."""
    task = api.create({"type": "report", "name": None, "lock": None, "callback_url": None, "delay_seconds": 60})
    assert (task["name"], task["lock"], task["callback_url"]) == (None, None, None)
    path = f"/v1/tasks/{task['id']}"
    assert api.send("PATCH", path, {"name": "monthly"}).body["name"] == "monthly"
    removed = api.send("PATCH", path, {"name": None, "lock": None})
    assert (removed.status, removed.body["name"]) == (200, None)
