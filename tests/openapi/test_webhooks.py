"""Tests that the scheduler's requests to users' URLs fit the document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openapi_schema_validator import OAS31Validator

from duetime.contract.openapi.document import document
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import MINUTE
from tests.scenarios.tasks import Tasks
from tests.simulation.endpoints import BATCH_URL, CALLBACK_URL, URL

if TYPE_CHECKING:
    from duetime.adapters.targets.http_messages import Call

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document()))
WEBHOOKS = {"POST": "taskEnded", "PUT": "targetWork", "GET": "targetQuery"}
TARGET = {"kind": "http", "url": URL, "phases": ["prepare", "clean", "rollback"], "queries": ["progress"]}
OF_THE_SENDER = {"Content-Type", "User-Agent"}
"""Headers that every HTTP request has."""


def check(call: Call) -> None:
    """Check a request's method, action, headers and body against the document."""
    name = "targetBatch" if call.url.startswith(BATCH_URL) else WEBHOOKS[call.method]
    (described,) = DOCUMENT["webhooks"][name].values()
    parameters = {one["name"]: one for one in described["parameters"]}
    if call.method != "POST":
        assert call.url.rpartition("action=")[2] in parameters["action"]["schema"]["enum"]
    assert set(call.headers) - OF_THE_SENDER <= set(parameters)
    body = described.get("requestBody")
    if body is None:
        assert not call.body
        return
    schema = body["content"]["application/json"]["schema"]
    model = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    sent = json.loads(call.body)
    OAS31Validator({**DOCUMENT, **schema}).validate(sent)
    assert set(sent) <= set(model["properties"])


def test_sent_requests_are_valid_by_the_webhooks() -> None:
    """The requests for each phase and for the query, and the callbacks after each outcome, fit the document."""
    calls: list[Call] = []
    with Tasks() as tasks:
        tasks.heard = calls.append
        more: dict[str, Any] = {"target": TARGET, "callback_url": CALLBACK_URL, "retry": {"max_attempts": 1}}
        done = tasks.create(kind="transfer", payload={"rows": 17}, **more)
        tasks.run(MINUTE)
        tasks.ask("POST", f"/v1/tasks/{done}/query", {"action": "progress"})
        tasks.do(done, "rollback")
        tasks.run(MINUTE)
        tasks.fail()
        tasks.create(kind="transfer", **more)
        tasks.run(MINUTE)
    seen = {call.url.rpartition("action=")[2] for call in calls if call.method != "POST"}
    assert seen == {"prepare", "run", "clean", "rollback", "progress"}
    events = {json.loads(call.body)["type"] for call in calls if call.method == "POST"}
    assert {"task.succeeded", "task.failed", "task.rolled_back"} <= events
    for call in calls:
        check(call)


def test_a_request_for_a_node_contains_its_inputs() -> None:
    """The document describes the field `inputs` in the request for a node."""
    calls: list[Call] = []
    with Graphs() as graphs:
        graphs.heard = calls.append
        node = {"type": "transfer", "target": {"kind": "http", "url": URL}}
        graphs.submit({"first": node, "second": {**node, "depends_on": ["first"], "inputs": ["first"]}})
        graphs.run_until_ended()
    assert [call for call in calls if b'"inputs"' in call.body]
    for call in calls:
        check(call)


def test_a_batch_request_is_valid_by_its_webhook() -> None:
    """Several tasks succeed with one request, which fits the document."""
    calls: list[Call] = []
    with Tasks() as tasks:
        tasks.heard = calls.append
        target = {"kind": "http", "url": BATCH_URL, "batch": {"max_size": 10, "max_wait_seconds": 1}}
        body = {"type": "transfer", "target": target, "tags": {"team": "dba"}}
        reply = tasks.ask("POST", "/v1/tasks/batch", {"tasks": 3 * [body]})
        tasks.run(MINUTE)
        assert {tasks.state(each["task"]["id"]) for each in reply.body["results"]} == {"succeeded"}
    assert max(len(json.loads(call.body)["items"]) for call in calls) > 1
    for call in calls:
        check(call)
