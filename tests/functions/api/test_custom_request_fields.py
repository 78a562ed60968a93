"""Tests of an HTTP target's request fields over REST: valid values, invalid values, and the values in responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_REQUEST_BYTES
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Gateway
from tests.grants import SENT_SECRET

if TYPE_CHECKING:
    from collections.abc import Callable

URL = "https://api.crm.example/rows"
FULL: dict[str, Any] = {
    "kind": "http",
    "url": URL,
    "phases": [],
    "queries": [],
    "method": "PUT",
    "headers": {"Accept": "application/json", "X-Run": "<duetime.task-id>"},
    "query": {"day": "<duetime.scheduled-at>"},
    "body": {"json": {"rows": [1, {"a": None}]}},
    "success": [200, 404],
    "auth": {"secret": "crm", "scheme": "header", "header": "X-Api-Key"},
    "response": {"keep": "all", "max_bytes": 1000, "when_larger": "truncate"},
}


@pytest.fixture
def api(environ: dict[str, str], compose: Callable[[], None]) -> Gateway:
    """A gateway to a deployment with one secret for one host."""
    environ[Variable.HTTP_SECRETS] = json.dumps({"crm": {"arn": SENT_SECRET, "hosts": ["api.crm.example"]}})
    compose()
    return Gateway()


def refused(api: Gateway, target: dict[str, Any]) -> list[str]:
    """Assert that a task with this target is refused, and return the faulty fields."""
    answer = api.send("POST", "/v1/tasks", {"type": "report", "target": {"kind": "http", "url": URL, **target}})
    assert answer.status == 422, answer.text
    return sorted(answer.faults)


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({"method": "TRACE"}, "target.method"),
        ({"method": "get"}, "target.method"),
        *(
            ({"headers": {name: "x"}}, f"target.headers.{name}")
            for name in ("Host", "content-length", "Transfer-Encoding", "Connection", "Proxy-Authorization", "TE")
        ),
        *(
            ({"headers": {name: "x"}}, f"target.headers.{name}")
            for name in (
                "Authorization",
                "cookie",
                "Webhook-Signature",
                "Duetime-Fence",
                "Idempotency-Key",
                "traceparent",
            )
        ),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "target.headers.X-A"),
        ({"headers": {"X-A": "a\nb"}}, "target.headers.X-A"),
        ({"headers": {"X-A": " a"}}, "target.headers.X-A"),
        ({"headers": {"X-A": "\u00e9"}}, "target.headers.X-A"),
        ({"headers": {"X-A": ""}}, "target.headers.X-A"),
        ({"headers": {"X-A": "<duetime.nothing>"}}, "target.headers.X-A"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "target.headers"),
        ({"headers": {f"X-{n}": "1" for n in range(21)}}, "target.headers"),
        ({"query": {"a": "<duetime.nothing>"}}, "target.query.a"),
        ({"query": {"a": 1}}, "target.query.a"),
        ({"body": {}}, "target.body"),
        ({"body": {"json": 1, "text": "a"}}, "target.body"),
        ({"body": {"text": None}}, "target.body"),
        ({"body": {"xml": "a"}}, "target.body.xml"),
        ({"body": {"json": {"a": "<duetime.nothing>"}}}, "target.body.json"),
        ({"body": {"json": {"<duetime.type>": 1}}}, "target.body.json"),
        ({"body": {"form": {"a": 1}}}, "target.body.form.a"),
        ({"body": {"base64": "?"}}, "target.body.base64"),
        ({"body": {"text": "a"}, "method": "GET"}, "target.body"),
        ({"body": {"json": "a" * MAX_REQUEST_BYTES}}, "target"),
        ({"success": []}, "target.success"),
        ({"success": [199]}, "target.success[0]"),
        ({"auth": {"secret": "crm"}}, "target.auth.scheme"),
        ({"auth": {"secret": "crm", "scheme": "header"}}, "target.auth.header"),
        ({"auth": {"secret": "crm", "scheme": "bearer", "header": "X-A"}}, "target.auth.header"),
        ({"auth": {"secret": "crm", "scheme": "header", "header": "Host"}}, "target.auth.header"),
        (
            {"auth": {"secret": "crm", "scheme": "header", "header": "X-A"}, "headers": {"x-a": "1"}},
            "target.headers",
        ),
        ({"auth": {"secret": "signing", "scheme": "bearer"}}, "target.auth.secret"),
        ({"auth": {"secret": SENT_SECRET, "scheme": "bearer"}}, "target.auth.secret"),
        ({"auth": {"secret": "crm", "scheme": "bearer"}, "url": "https://mine.example/"}, "target.auth.secret"),
        ({"auth": {"secret": "crm", "scheme": "bearer"}, "url": "http://api.crm.example/"}, "target.auth.secret"),
        (
            {"auth": {"secret": "crm", "scheme": "bearer"}, "url": "https://api.crm.example.mine.example/"},
            "target.auth.secret",
        ),
        ({"response": {"max_bytes": 0}}, "target.response.max_bytes"),
        ({"response": {"keep": "some"}}, "target.response.keep"),
        ({"method": "POST", "phases": ["clean"]}, "target.phases"),
        ({"batch": {}, "phases": ["clean"]}, "target.phases"),
        ({"batch": {}, "method": "POST"}, "target.method"),
        ({"batch": {}, "body": {"text": "a"}}, "target.body"),
        ({"batch": {}, "success": [200]}, "target.success"),
        ({"batch": {}, "response": {"keep": "none"}}, "target.response"),
        ({"batch": {"max_size": 0}}, "target.batch.max_size"),
        ({"batch": {"max_size": 1_001}}, "target.batch.max_size"),
        ({"batch": {"max_size": 1.5}}, "target.batch.max_size"),
        ({"batch": {"max_wait_seconds": 60.5}}, "target.batch.max_wait_seconds"),
        ({"batch": {"max_wait_seconds": True}}, "target.batch.max_wait_seconds"),
        ({"batch": {"key": "a"}}, "target.batch.key"),
        ({"batch": True}, "target.batch"),
        ({"body": {"text": "a"}, "queries": ["status"]}, "target.queries"),
    ],
)
def test_invalid_headers_bodies_and_secrets_are_rejected_at_creation(
    api: Gateway, target: dict[str, Any], field: str
) -> None:
    """Invalid headers, bodies and secrets are refused when the task is created, not when it runs."""
    assert refused(api, target) == [field]


def test_a_batch_target_shows_its_defaults(api: Gateway) -> None:
    """A batch target shows its defaults, and accepts headers, parameters and queries."""
    others = {"headers": {"X-Team": "dba"}, "query": {"day": "1"}, "queries": ["status"]}
    for given in ({}, {"max_size": 7, "max_wait_seconds": 2.5}):
        target = {"kind": "http", "url": "https://api.crm.example/a", **others, "batch": given}
        created = api.send("POST", "/v1/tasks", {"type": "report", "target": target})
        assert created.status == 201, created.body
        shown = {"max_size": 100, "max_wait_seconds": 1, **given}
        assert created.body["target"] == {**target, "phases": [], "batch": shown}
        assert api.send("GET", f"/v1/tasks/{created.body['id']}").body["target"]["batch"] == shown


def test_tasks_batches_schedules_and_nodes_show_the_target_as_written(api: Gateway) -> None:
    """Tasks, batches, schedules and nodes show the target as it was written, with the name of the secret."""
    task = {"type": "report", "target": FULL}
    one = api.send("POST", "/v1/tasks", {**task, "delay_seconds": 3600})
    assert (one.status, one.body["target"]) == (201, FULL)
    assert api.send("GET", f"/v1/tasks/{one.body['id']}").body["target"] == FULL
    batch = api.send("POST", "/v1/tasks/batch", {"tasks": [{**task, "delay_seconds": 3600}]})
    assert batch.body["results"][0]["task"]["target"] == FULL
    schedule = api.send("POST", "/v1/schedules", {"name": "nightly", "cron": "0 2 * * *", "task": task})
    assert (schedule.status, schedule.body["task"]["target"]) == (201, FULL)
    assert api.send("GET", "/v1/schedules/nightly").body["task"]["target"] == FULL
    whole = api.send("POST", "/v1/topologies", {"nodes": {"a": task}, "delay_seconds": 3600})
    assert whole.status == 201, whole.text
    assert json.loads(api.send("GET", f"/v1/tasks/{whole.body['id']}").text)["payload"]["nodes"]["a"]["target"] == FULL


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/schedules", {"name": "n", "cron": "0 2 * * *", "task": {"type": "report"}}, "task.target.auth.secret"),
        ("/v1/topologies", {"nodes": {"a": {"type": "report"}}}, "nodes.a.target.auth.secret"),
    ],
)
def test_an_error_for_an_unknown_secret_has_the_full_path(api: Gateway, path: str, body: Any, field: str) -> None:  # noqa: ANN401 - JSON
    """An unknown secret in a schedule's template or in a node is refused with the field's full path."""
    target = {"kind": "http", "url": URL, "auth": {"secret": "unknown", "scheme": "bearer"}}
    (body.get("task") or body["nodes"]["a"])["target"] = target
    answer = api.send("POST", path, body)
    assert (answer.status, list(answer.faults)) == (422, [field])


def test_a_merge_patch_changes_parts_of_a_request_separately(api: Gateway) -> None:
    """A merge patch changes parts of a request separately, and null restores a default."""
    task = api.create({"type": "report", "target": FULL, "delay_seconds": 3600})
    path = f"/v1/tasks/{task['id']}"
    patch = {"headers": {"X-Run": None, "X-New": "1"}, "success": None, "body": {"form": {"more": "1"}}}
    changed = api.send("PATCH", path, {"target": patch}, headers={"If-Match": "*"})
    assert changed.status == 200, changed.text
    target = changed.body["target"]
    assert target["headers"] == {"Accept": "application/json", "X-New": "1"}
    assert target["body"] == {"form": {"more": "1"}}
    assert "success" not in target
    assert target["auth"] == FULL["auth"]
    for refused_patch, field in (
        ({"headers": {"Host": "x"}}, "target.headers.Host"),
        ({"url": "https://mine.example/"}, "target.auth.secret"),
        ({"body": {"text": 1}}, "target.body.text"),
        ({"auth": {"secret": "other"}}, "target.auth.secret"),
    ):
        answer = api.send("PATCH", path, {"target": refused_patch}, headers={"If-Match": "*"})
        assert (answer.status, list(answer.faults)) == (422, [field])
