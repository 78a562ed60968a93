"""Tests that a task update is a JSON merge patch (RFC 7396)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

BEFORE: dict[str, Any] = {
    "type": "report",
    "delay_seconds": 60,
    "payload": {"a": 1, "b": 2},
    "target": {"kind": "http", "url": "https://example.org/report", "phases": ["rollback"], "queries": ["status"]},
    "retry": {
        "max_attempts": 9,
        "initial_seconds": 1.5,
        "multiplier": 3.0,
        "max_seconds": 9.0,
        "max_duration_seconds": 90,
    },
    "lock": {"key": "db-17", "mode": "exclusive", "max_holders": 2, "scope": "run", "wait_seconds": 30},
    "callback_url": "https://example.org/ended",
    "name": "monthly",
    "priority": "low",
    "timeout_seconds": 31,
    "tags": {"team": "dba", "step": "load"},
}
DEFAULT_RETRY = {
    "max_attempts": 5,
    "initial_seconds": 1.0,
    "multiplier": 2.0,
    "max_seconds": 300.0,
    "max_duration_seconds": None,
}
DEFAULT_LOCK = {"key": "db-17", "mode": "exclusive", "max_holders": 1, "scope": "task", "wait_seconds": None}
OTHER_TARGET = {"kind": "http", "url": "https://example.org/other", "phases": ["rollback"], "queries": ["status"]}


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ({"retry": {"max_seconds": 60}}, {"retry": {**BEFORE["retry"], "max_seconds": 60.0}}),
        ({"retry": {"max_attempts": None}}, {"retry": {**BEFORE["retry"], "max_attempts": 5}}),
        ({"retry": None}, {"retry": DEFAULT_RETRY}),
        ({"lock": {"max_holders": 3}}, {"lock": {**BEFORE["lock"], "max_holders": 3}}),
        ({"lock": {"max_holders": None, "scope": None, "wait_seconds": None}}, {"lock": DEFAULT_LOCK}),
        ({"lock": {"wait_seconds": 60}}, {"lock": {**BEFORE["lock"], "wait_seconds": 60}}),
        ({"retry": {"max_duration_seconds": None}}, {"retry": {**BEFORE["retry"], "max_duration_seconds": None}}),
        ({"lock": None}, {"lock": None}),
        ({"tags": {"step": None, "day": "1"}}, {"tags": {"team": "dba", "day": "1"}}),
        ({"tags": {}}, {"tags": BEFORE["tags"]}),
        ({"tags": None}, {"tags": {}}),
        ({"target": {"url": "https://example.org/other"}}, {"target": OTHER_TARGET}),
        ({"target": {"kind": "http", "url": "https://example.org/other"}}, {"target": OTHER_TARGET}),
        ({"target": {"queries": None}}, {"target": {**BEFORE["target"], "queries": []}}),
        ({"target": {"kind": "handler"}}, {"target": {"kind": "handler"}}),
        ({"target": None}, {"target": {"kind": "handler"}}),
        ({"payload": {"b": 3}}, {"payload": {"b": 3}}),
        ({"payload": None}, {"payload": None}),
        ({"name": None, "callback_url": None}, {"name": None, "callback_url": None}),
        ({"priority": None, "timeout_seconds": None}, {"priority": "normal", "timeout_seconds": 60}),
        ({"name": "n", "due_at": None, "delay_seconds": None}, {"name": "n"}),
    ],
)
def test_an_update_merges_objects_and_replaces_other_values(
    api: Gateway, patch: dict[str, Any], after: dict[str, Any]
) -> None:
    """An update merges objects, removes fields that are null, and replaces other values and the complete payload."""
    task = api.create(BEFORE)
    updated = api.send("PATCH", f"/v1/tasks/{task['id']}", patch)
    assert updated.status == 200, updated.text
    changed = {"version": updated.body["version"]}
    assert updated.body == {**task, **after, **changed}


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"lock": {"key": None}}, "lock.key"),
        ({"target": {"url": None}}, "target.url"),
        ({"target": {"kind": "handler", "url": "https://example.org/"}}, "target.url"),
        ({"target": {"kind": "lambda"}}, "target.arn"),
        ({"target": {"kind": None}}, "target.kind"),
        ({"tags": {f"t{number}": "x" for number in range(10)}}, "tags"),
        ({"tags": {"a b": None}}, "tags.a b"),
        ({"retry": {"most": 1}}, "retry.most"),
        ({"target": {"phases": []}, "rollback_on_failure": True}, "rollback_on_failure"),
        ({"due_at": None}, "body"),
    ],
)
def test_a_merged_object_is_validated_like_a_new_object(api: Gateway, patch: dict[str, Any], field: str) -> None:
    """A merged object is validated like a new object. An error names the field, and the task does not change."""
    task = api.create(BEFORE)
    path = f"/v1/tasks/{task['id']}"
    refused = api.send("PATCH", path, patch)
    assert (refused.status, list(refused.faults)) == (422, [field]), refused.text
    assert api.send("GET", path).body == task


def test_a_lock_that_an_update_adds_must_have_a_key(api: Gateway) -> None:
    """A lock that an update adds must have a key, and its other fields have default values."""
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    assert api.send("PATCH", path, {"lock": {"max_holders": 2}}).faults == {"lock.key": "is required"}
    made = api.send("PATCH", path, {"lock": {"key": "db"}}).body["lock"]
    assert made == {**DEFAULT_LOCK, "key": "db"}


def test_an_update_by_filter_is_merged_into_each_task_separately(api: Gateway) -> None:
    """An update by filter is merged separately into each task."""
    first, second = (api.create({**BEFORE, "tags": {"team": "dba", "n": n}}) for n in ("1", "2"))
    body = {"filter": {"tags": {"team": "dba"}}, "update": {"tags": {"team": None}, "retry": {"max_attempts": 2}}}
    done = api.send("POST", "/v1/tasks/update", body)
    assert (done.status, done.body["affected"]) == (200, 2), done.text
    for task in (first, second):
        read = api.send("GET", f"/v1/tasks/{task['id']}").body
        assert read["tags"] == {"n": task["tags"]["n"]}
        assert read["retry"] == {**BEFORE["retry"], "max_attempts": 2}


def test_null_in_a_creation_means_the_default_or_no_value(api: Gateway) -> None:
    """In a creation, null means the default value, or no value."""
    names = ("tags", "retry", "due_at", "delay_seconds", "target", "lock", "callback_url", "name")
    task = api.create({"type": "report", **dict.fromkeys(names)})
    plain = api.create({"type": "report"})
    assert {name: task.get(name) for name in names if name != "due_at"} == {
        name: plain.get(name) for name in names if name != "due_at"
    }
    due = "2027-01-01T00:00:00.000Z"
    assert api.create({"type": "report", "due_at": due, "delay_seconds": None})["due_at"] == due


def test_an_update_with_a_complete_task_is_rejected_only_for_fixed_fields(api: Gateway) -> None:
    """If an update sends a complete task back, only read-only fields and fields fixed at creation are refused."""
    task = api.create(BEFORE)
    reasons: dict[str, str] = {}
    # A response names at most twenty faults.
    for part in ([*task][::2], [*task][1::2]):
        refused = api.send("PATCH", f"/v1/tasks/{task['id']}", {name: task[name] for name in part})
        assert refused.status == 422
        reasons |= refused.faults
    fixed = {name for name, reason in reasons.items() if reason.startswith("cannot be changed")}
    assert fixed == {"type", "unique", "debounce", "order", "parent_task_id", "group"}
    assert all(reason.startswith("is read-only") for name, reason in reasons.items() if name not in fixed)
    known = set(BEFORE) - {"type", "delay_seconds"}
    assert not known & set(reasons)
    writable = {name: value for name, value in task.items() if name in known}
    assert api.send("PATCH", f"/v1/tasks/{task['id']}", writable).status == 200
    late = api.send("PATCH", f"/v1/tasks/{task['id']}", {"allow_unknown_type": True})
    assert late.body["errors"][0]["code"] == "cannot_change"


def test_a_creation_with_read_only_fields_of_another_task_is_rejected(api: Gateway) -> None:
    """If a creation sends another task's read-only fields, the error says that they are read-only."""
    refused = api.send("POST", "/v1/tasks", {"type": "report", "state": "paused", "version": 3})
    assert [fault["code"] for fault in refused.body["errors"]] == ["read_only", "read_only"]
