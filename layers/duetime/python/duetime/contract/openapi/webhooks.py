"""The requests that the scheduler makes: to callback URLs, and to HTTP targets."""

from __future__ import annotations

from typing import Any

from duetime.contract.openapi.schemas import reference
from duetime.contract.openapi.webhook_bodies import TargetRequest, TaskEvent
from duetime.domain.tasks.targets import Phase, Query

Schema = dict[str, Any]
TAG = "webhooks"
_SIGNATURE = (
    ("webhook-id", "The same for every repeat of this request."),
    ("webhook-timestamp", "When it was signed, in seconds since 1970."),
    ("webhook-signature", "Signatures by Standard Webhooks, separated by spaces; absent without a signing secret."),
)
_TASK = (
    ("Duetime-Task", "The task's id."),
    ("Duetime-Attempt", "Which attempt this is."),
    ("Duetime-Fence", "The fence of the attempt."),
)
_WORK = (
    ("Duetime-Deadline", "When the attempt must have ended."),
    ("Idempotency-Key", "The task's id: the same for every attempt."),
)
_RESULT: Schema = {"application/json": {"schema": {}, "examples": {"done": {"value": {"rows": 17}}}}}


def webhooks() -> dict[str, Schema]:
    """Each request by its name."""
    return {
        "taskEnded": {"post": _task_ended()},
        "targetWork": {"put": _target_work()},
        "targetQuery": {"get": _target_query()},
    }


def _task_ended() -> Schema:
    return {
        "operationId": "taskEnded",
        "summary": "Receive the outcome of a task",
        "description": "Sent to the `callback_url` of a task once it has ended, at least once and a few times at most.",
        "tags": [TAG],
        "security": [],
        "parameters": _headers(_SIGNATURE),
        "requestBody": _body(TaskEvent),
        "responses": {
            "200": {"description": "Received; any status of success will do."},
            "4XX": {"description": "Refused: it is not sent again, unless the status is 408, 425 or 429."},
            "5XX": {"description": "Failed: it is sent again a few times."},
        },
    }


def _target_work() -> Schema:
    return {
        "operationId": "targetWork",
        "summary": "Work on a task",
        "description": "Sent to the URL of a task's HTTP target, which names the phases that it takes besides `run`.",
        "tags": [TAG],
        "security": [],
        "parameters": [_action(list(Phase), "What is to be done."), *_headers(_TASK + _WORK + _SIGNATURE)],
        "requestBody": _body(TargetRequest),
        "responses": {
            "200": {"description": "Done; the body is the result, JSON or text.", "content": _RESULT},
            "202": {"description": "Of `run`: accepted; the outcome comes by `reportOutcome`."},
            "4XX": {"description": "The attempt has failed for good, unless the status is 408, 425 or 429."},
            "5XX": {"description": "The attempt has failed; another may be made, after `Retry-After` at the earliest."},
        },
    }


def _target_query() -> Schema:
    return {
        "operationId": "targetQuery",
        "summary": "Answer a question about a task",
        "description": "Sent to the URL of a task's HTTP target, if it names the query among those that it answers.",
        "tags": [TAG],
        "security": [],
        "parameters": [_action(list(Query), "What is asked."), *_headers(_TASK + _SIGNATURE)],
        "responses": {
            "200": {"description": "The answer, JSON or text; it is handed on.", "content": _RESULT},
            "4XX": {"description": "Handed on as it is."},
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
