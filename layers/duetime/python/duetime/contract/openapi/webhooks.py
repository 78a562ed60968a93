"""Requests that the scheduler sends: to callback URLs, and to HTTP targets."""

from __future__ import annotations

from typing import Any

from duetime.contract.openapi.schemas import reference
from duetime.contract.openapi.webhook_bodies import TargetRequest, TaskEvent
from duetime.domain.tasks.targets import Phase, Query

Schema = dict[str, Any]
TAG = "webhooks"
_SIGNATURE = (
    ("webhook-id", "The same when this request is sent again."),
    ("webhook-timestamp", "When it was signed, in seconds since 1970."),
    ("webhook-signature", "Signatures as in Standard Webhooks, separated by spaces; absent without a signing secret."),
)
_TASK = (
    ("Duetime-Task", "The task's id."),
    ("Duetime-Attempt", "Which attempt this is."),
    ("Duetime-Fence", "The fence of the attempt."),
    ("Duetime-Due-At", "When the task was due."),
    ("Duetime-Schedule", "Name of the schedule that the task, or its topology, is a run of; only then."),
    ("Duetime-Scheduled-At", "The time that this run stands for; only of a schedule's run."),
    ("Duetime-Topology", "Id of the topology that the task is a node of; only then."),
    ("Duetime-Node", "Name of the node; only of a node."),
)
_WORK = (
    ("Duetime-Deadline", "When the attempt must have ended."),
    ("Idempotency-Key", "The task's id: the same for every attempt."),
)
_RESULT: Schema = {"application/json": {"schema": {}, "examples": {"done": {"value": {"rows": 17}}}}}


def webhooks() -> dict[str, Schema]:
    """The requests by name."""
    return {
        "taskEnded": {"post": _task_ended()},
        "targetWork": {"put": _target_work()},
        "targetQuery": {"get": _target_query()},
    }


def _task_ended() -> Schema:
    return {
        "operationId": "taskEnded",
        "summary": "Receive the outcome of a task",
        "description": "Sent to the `callback_url` of a task when it has ended, by a task of its own: at least once, "
        "and again if it fails.",
        "tags": [TAG],
        "security": [],
        "parameters": _headers(_SIGNATURE),
        "requestBody": _body(TaskEvent),
        "responses": {
            "200": {"description": "Received; any 2xx status is accepted."},
            "4XX": {"description": "Refused: not sent again, unless the status is 408, 425 or 429."},
            "5XX": {"description": "Failed: sent again for a day, after `Retry-After` at the earliest."},
        },
    }


def _target_work() -> Schema:
    return {
        "operationId": "targetWork",
        "summary": "Run a phase of a task",
        "description": "Sent to the URL of a task's HTTP target, for `run` and for each phase that the target lists.",
        "tags": [TAG],
        "security": [],
        "parameters": [_action(list(Phase), "The phase."), *_headers(_TASK + _WORK + _SIGNATURE)],
        "requestBody": _body(TargetRequest),
        "responses": {
            "200": {"description": "Done; the body is the result, as JSON or text.", "content": _RESULT},
            "202": {"description": "For `run`: accepted; the outcome is reported later by `reportOutcome`."},
            "4XX": {"description": "The attempt has failed and is not retried, unless the status is 408, 425 or 429."},
            "5XX": {"description": "The attempt has failed and may be retried, after `Retry-After` at the earliest."},
        },
    }


def _target_query() -> Schema:
    return {
        "operationId": "targetQuery",
        "summary": "Answer a query about a task",
        "description": "Sent to the URL of a task's HTTP target for `queryTask`, if the target lists the query.",
        "tags": [TAG],
        "security": [],
        "parameters": [_action(list(Query), "The query."), *_headers(_TASK + _SIGNATURE)],
        "responses": {
            "200": {"description": "The answer, as JSON or text; it is passed on.", "content": _RESULT},
            "4XX": {"description": "Passed on as it is."},
        },
    }


def _action(values: list[Phase] | list[Query], text: str) -> Schema:
    return {
        "name": "action",
        "in": "query",
        "required": True,
        "description": text,
        "schema": {"type": "string", "enum": [value.value for value in values]},
    }


def _headers(named: tuple[tuple[str, str], ...]) -> list[Schema]:
    return [{"name": name, "in": "header", "description": text, "schema": {"type": "string"}} for name, text in named]


def _body(model: type) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": reference(model)}}}
