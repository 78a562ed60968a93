"""Tests that types and targets that are reserved for some owners cannot be used by other owners in any way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime.environment_variables import Variable
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.session import FakeSession

FUNCTIONS = "arn:aws:lambda:eu-west-1:123456789012:function:"
BILLING, ALERTS = f"{FUNCTIONS}billing-pay", "arn:aws:sns:eu-west-1:123456789012:billing-alerts"
CLUSTER, JOB_QUEUE = "arn:aws:ecs:eu-west-1:123456789012:cluster/c", "arn:aws:batch:eu-west-1:123456789012:job-queue/q"
TYPE, PULLED = "billing.invoice", "render"
LATER: dict[str, Any] = {"delay_seconds": 600}
CALL: dict[str, Any] = {"type": "any", "target": {"kind": "lambda", "arn": BILLING}}
NOTICE: dict[str, Any] = {"type": "any", "notify_on": {"failed": True, "to": ALERTS}}
NIGHTLY = {"cron": "0 3 * * *", "timezone": "Europe/London"}


@pytest.fixture
def environ(environ: dict[str, str], session: FakeSession) -> dict[str, str]:
    """The function's environment, where some types, pulled types and targets are reserved for Bill."""
    queue = session.client("sqs").create_queue(QueueName=f"render-{uuid4().hex[:8]}")["QueueUrl"]
    return {
        **environ,
        Variable.AWS_TARGETS: f"{FUNCTIONS}* {ALERTS}",
        Variable.HTTP_SECRETS: json.dumps({"crm": {"arn": "arn", "hosts": ["crm.example"], "owners": ["bil*"]}}),
        Variable.PULLED_QUEUES: json.dumps({PULLED: queue}),
        Variable.PULLERS: json.dumps({PULLED: ["bil*"]}),
        Variable.TYPE_OWNERS: json.dumps({"billing.*": ["bil*"], PULLED: ["bill"]}),
        Variable.TARGET_OWNERS: json.dumps({"arn:aws:*:billing-*": ["bil*"]}),
    }


@pytest.fixture
def ann(compose: Callable[[], None]) -> Gateway:
    """The requests of an owner without access to the reserved types and targets."""
    compose()
    return Gateway(headers={"x-duetime-owner": "ann"})


@pytest.fixture
def bill(ann: Gateway) -> Gateway:
    """The requests of the owner for whom the types and targets are reserved."""
    del ann
    return Gateway(headers={"x-duetime-owner": "bill"})


def topology(task: dict[str, Any]) -> dict[str, Any]:
    """A topology with this task as its second node."""
    return {"nodes": {"first": {"type": "any"}, "second": {**task, "depends_on": ["first"]}}}


RESERVED: list[tuple[dict[str, Any], str]] = [
    ({"type": TYPE}, "type"),
    ({"type": PULLED}, "type"),
    ({"type": TYPE, "target": {"kind": "http", "url": "https://example.org/"}}, "type"),
    (CALL, "target.arn"),
    (NOTICE, "notify_on.to"),
]
WAYS: dict[str, tuple[str, str, Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "task": ("POST", "/v1/tasks", lambda task: {**task, **LATER}, ""),
    "topology": ("POST", "/v1/topologies", topology, "nodes.second."),
    "topology of a topology": (
        "POST",
        "/v1/topologies",
        lambda task: {"nodes": {"a": {"target": {"kind": "topology"}, "payload": topology(task), "type": "any"}}},
        "nodes.a.payload.nodes.second.",
    ),
    "map": (
        "POST",
        "/v1/topologies",
        lambda task: {
            "nodes": {"l": {"type": "any"}, "a": {**task, "depends_on": ["l"], "map": {"over": "parents.l.result"}}}
        },
        "nodes.a.",
    ),
    "definition": ("PUT", "/v1/topologies/definitions/daily", topology, "nodes.second."),
    "schedule": ("POST", "/v1/schedules", lambda task: {"name": "nightly", **NIGHTLY, "task": dict(task)}, "task."),
}


@pytest.mark.parametrize(("task", "field"), RESERVED, ids=[f"{field} of {task['type']}" for task, field in RESERVED])
@pytest.mark.parametrize("way", WAYS)
def test_a_reserved_type_or_target_is_rejected_for_other_owners(
    ann: Gateway, bill: Gateway, way: str, task: dict[str, Any], field: str
) -> None:
    """However a task is created, a reserved type or target is refused by field name.

    The owner with the reservation can use the type or target.
    """
    method, path, body, place = WAYS[way]
    refused = ann.send(method, path, body(task))
    assert refused.status == 422, refused.text
    (error,) = refused.body["errors"]
    assert (error["field"], error["code"]) == (f"{place}{field}", "not_allowed")
    assert "reserved for other owners" in error["reason"]
    assert bill.send(method, path, body(task)).status in {200, 201}


@pytest.mark.parametrize(
    ("kind", "arn", "version"),
    [
        ("lambda", f"{FUNCTIONS}pay", ":live"),
        ("lambda", f"{FUNCTIONS}pay", ":$LATEST"),
        ("step_functions", "arn:aws:states:eu-west-1:123456789012:stateMachine:pay", ":live"),
        ("ecs", "arn:aws:ecs:eu-west-1:123456789012:task-definition/pay", ":3"),
        ("batch", "arn:aws:batch:eu-west-1:123456789012:job-definition/pay", ":3"),
    ],
)
def test_a_reservation_covers_versions_aliases_and_revisions(
    ann: Gateway,
    bill: Gateway,
    environ: dict[str, str],
    compose: Callable[[], None],
    kind: str,
    arn: str,
    version: str,
) -> None:
    """If a resource is reserved by its ARN, other owners cannot call a version, an alias or a revision of it either."""
    environ[Variable.AWS_TARGETS] = "arn:aws:*:*:*:*"
    environ[Variable.TARGET_OWNERS] = json.dumps({arn: ["bill"], "*": ["*"]})
    compose()
    place = {"ecs": {"cluster": CLUSTER, "container": "c"}, "batch": {"queue": JOB_QUEUE}}.get(kind, {})
    task = {"type": "any", **LATER, "target": {"kind": kind, "arn": f"{arn}{version}", **place}}
    refused = ann.send("POST", "/v1/tasks", task)
    assert (refused.status, refused.body["errors"][0]["field"]) == (422, "target.arn"), refused.text
    assert bill.send("POST", "/v1/tasks", task).status == 201


def test_only_the_task_of_a_reserved_type_is_rejected_in_a_batch(ann: Gateway) -> None:
    """A task of a reserved type is refused, and the other tasks of its batch are created."""
    found = ann.send("POST", "/v1/tasks/batch", {"tasks": [{"type": "any", **LATER}, {"type": TYPE, **LATER}]})
    assert [one["status"] for one in found.body["results"]] == [201, 422]


@pytest.mark.parametrize(("change", "field"), [({"target": CALL["target"]}, "target.arn"), (NOTICE, "notify_on.to")])
def test_a_change_to_a_reserved_target_is_rejected(ann: Gateway, change: dict[str, Any], field: str) -> None:
    """Changing a task or schedule to a reserved target is refused by field name."""
    change = {name: value for name, value in change.items() if name != "type"}
    task_id = ann.create({"type": "any", **LATER})["id"]
    assert ann.send("POST", "/v1/schedules", {"name": "n", **NIGHTLY, "task": {"type": "any"}}).status == 201
    for path, body, place in (
        (f"/v1/tasks/{task_id}", change, ""),
        ("/v1/schedules/n", {"task": {"type": "any", **change}}, "task."),
    ):
        refused = ann.send("PATCH", path, body)
        assert (refused.status, refused.body["errors"][0]["field"]) == (422, f"{place}{field}"), refused.text


def test_a_change_of_a_graph_to_a_reserved_type_is_rejected(ann: Gateway) -> None:
    """Changing a topology's graph so that it uses a reserved type is refused."""
    task_id = ann.create({"type": "any", "target": {"kind": "topology"}, "payload": topology({"type": "any"}), **LATER})
    refused = ann.send("PATCH", f"/v1/tasks/{task_id['id']}", {"payload": topology({"type": TYPE})})
    assert (refused.status, refused.body["errors"][0]["field"]) == (422, "payload.nodes.second.type"), refused.text


def test_a_task_whose_type_became_reserved_can_still_be_rescheduled(
    ann: Gateway, environ: dict[str, str], compose: Callable[[], None]
) -> None:
    """If a task's type becomes reserved, its owner can still reschedule the task, but cannot create another task."""
    task_id = ann.create({"type": "old", **LATER})["id"]
    environ[Variable.TYPE_OWNERS] = json.dumps({"old": ["bill"]})
    compose()
    assert ann.send("PATCH", f"/v1/tasks/{task_id}", {"delay_seconds": 900}).status == 200
    assert ann.send("POST", "/v1/tasks", {"type": "old"}).status == 422


def test_another_owners_secret_is_rejected_like_an_unknown_secret(ann: Gateway, bill: Gateway) -> None:
    """Another owner's secret is refused with the same error as an unknown secret, so that its name is not revealed."""
    auth = {"scheme": "bearer", "secret": "crm"}
    task: dict[str, Any] = {
        "type": "any",
        **LATER,
        "target": {"kind": "http", "url": "https://crm.example/", "auth": auth},
    }
    refused = ann.send("POST", "/v1/tasks", task)
    assert (refused.status, refused.body["errors"][0]["field"]) == (422, "target.auth.secret")
    unknown = {**task, "target": {**task["target"], "auth": {**auth, "secret": "unknown"}}}
    errors = ann.send("POST", "/v1/tasks", unknown).text.replace("unknown", "crm")
    assert refused.body["errors"] == json.loads(errors)["errors"]
    assert bill.send("POST", "/v1/tasks", task).status == 201


def test_a_worker_that_may_not_lease_a_type_gets_403(ann: Gateway, bill: Gateway) -> None:
    """A worker that may not lease a type gets 403."""
    assert bill.send("POST", "/v1/leases", {"types": [PULLED]}).status == 200
    refused = ann.send("POST", "/v1/leases", {"types": [PULLED]})
    assert (refused.status, refused.body["code"]) == (403, "type_not_pulled")
    assert PULLED in refused.text


def test_reserved_types_are_not_listed_for_others(ann: Gateway, bill: Gateway) -> None:
    """A reserved type can neither be listed nor read nor changed by other owners."""
    assert PULLED in [each["type"] for each in bill.send("GET", "/v1/types").body["types"]]
    assert ann.send("GET", "/v1/types").body["types"] == []
    assert [each.send("GET", f"/v1/types/{PULLED}").status for each in (ann, bill)] == [404, 200]
    assert ann.send("PUT", f"/v1/types/{TYPE}/defaults", {"priority": "high"}).status == 422
