"""Describes the requests that the scheduler sends, which are callbacks and requests to HTTP targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.openapi.descriptions import Schema, reference
from duetime.contract.tasks.responses import Instant, TaskSummary
from duetime.domain.tasks.targets import Phase, Query
from duetime.domain.tasks.task import Cause


class TaskEvent(TypedDict):
    """The outcome of a task, posted to its callback URL in the Standard Webhooks format."""

    type: Annotated[
        str,
        Field(
            description="`task.` plus the task's final state: succeeded, failed, cancelled or rolled_back.",
            examples=["task.succeeded"],
        ),
    ]
    timestamp: Annotated[Instant, Field(description="When the task reached its final state.")]
    owner: Annotated[str, Field(description="The owner of the task, whose secret signs the request.")]
    audience: Annotated[str, Field(description="The URL of this request, without query and fragment.")]
    console_url: NotRequired[
        Annotated[
            str,
            Field(description="URL of the task's page in the console; absent if the deployment serves no console."),
        ]
    ]
    data: Annotated[TaskSummary, Field(description="The task as in lists, without payload or result.")]


class RunSchedule(TypedDict):
    """The schedule that created a task or its topology."""

    name: Annotated[str, Field(description="Name of the schedule.")]
    scheduled_at: Annotated[Instant, Field(description="The nominal time of this run.")]
    previous_at: Annotated[Instant | None, Field(description="The schedule's previous time; null if there is none.")]
    next_at: Annotated[Instant | None, Field(description="The schedule's next time; null if there is none.")]
    cause: Annotated[Cause, Field(description="Why the schedule created the task.")]


class RunTopology(TypedDict):
    """The topology that a task is a node of."""

    id: Annotated[str, Field(description="Id of the topology.")]
    run: Annotated[int, Field(description="Number of the topology's run; the first run is 1.")]
    node: Annotated[str, Field(description="Name of the node.")]


class TargetItem(TypedDict):
    """A task in a request for several tasks."""

    task_id: Annotated[str, Field(description="The task's id, which is the same for every attempt.")]
    type: Annotated[str, Field(description="The task's type.")]
    attempt: Annotated[int, Field(description="Number of the attempt; the first attempt is 1.")]
    fence: Annotated[int, Field(description="The fence of this attempt; a later attempt has a higher fence.")]
    deadline: Annotated[Instant, Field(description="When the attempt must have ended.")]
    due_at: Annotated[Instant, Field(description="When the task was due.")]
    created_at: Annotated[Instant, Field(description="When the task was created.")]
    lateness_ms: Annotated[
        int | None, Field(description="How long after the due time the first attempt started, in milliseconds.")
    ]
    schedule: NotRequired[
        Annotated[
            RunSchedule,
            Field(description="The schedule; absent if neither the task nor its topology is a run of a schedule."),
        ]
    ]
    topology: NotRequired[Annotated[RunTopology, Field(description="The topology; only for a node of a topology.")]]
    tags: NotRequired[Annotated[dict[str, str], Field(description="The task's tags; absent if there are none.")]]
    inputs: NotRequired[
        Annotated[
            dict[str, Any],
            Field(
                description="For a node of a topology, the results of the nodes in its `inputs`, by node name; for a "
                "group's completion task, the `group`. Absent for other tasks."
            ),
        ]
    ]
    traceparent: NotRequired[
        Annotated[
            str,
            Field(
                description="W3C trace context of the request that created the task, which is also in the header "
                "`traceparent`. Absent if that request had no trace context."
            ),
        ]
    ]
    payload: Annotated[Any, Field(description="The task's payload, with its placeholders replaced.")]


class TargetRequest(TargetItem):
    """The task in a request to an HTTP target."""

    owner: Annotated[str, Field(description="The owner of the task, whose secret signs the request.")]
    audience: Annotated[str, Field(description="The URL of this request, without query and fragment.")]


class TargetBatch(TypedDict):
    """The tasks in a request to an HTTP target with a `batch`."""

    owner: Annotated[str, Field(description="The owner of all tasks, whose secret signs the request.")]
    audience: Annotated[str, Field(description="The URL of this request, without query and fragment.")]
    deadline: Annotated[Instant, Field(description="The earliest deadline of the items.")]
    items: Annotated[Sequence[TargetItem], Field(description="The tasks.")]


class TargetOutcome(TypedDict):
    """The outcome of one task of a batch."""

    status: Annotated[
        int,
        Field(
            ge=200,
            le=599,
            description="HTTP status with the same meaning as in a response to this task alone. For example, 202 "
            "accepts the task.",
        ),
    ]
    result: NotRequired[Annotated[Any, Field(description="The task's result, for a success status.")]]
    error: NotRequired[Annotated[str, Field(description="The error message, for any other status.")]]
    retry_after_seconds: NotRequired[
        Annotated[float, Field(description="Shortest wait before the next attempt, like `Retry-After`; at most a day.")]
    ]


class TargetOutcomes(TypedDict):
    """The response to a request for several tasks."""

    results: Annotated[Sequence[TargetOutcome], Field(description="One outcome per item, in the order of the items.")]


MODELS: tuple[type, ...] = (TaskEvent, TargetRequest, TargetBatch, TargetOutcomes)


WEBHOOKS = "webhooks"
_SIGNATURE = (
    ("webhook-id", "Id of the message; unchanged when the request is sent again."),
    ("webhook-timestamp", "When the request was signed, in seconds since 1970."),
    ("webhook-signature", "Standard Webhooks signatures, separated by spaces; absent without a signing secret."),
)
_TASK = (
    ("Duetime-Task", "The task's id."),
    ("Duetime-Attempt", "Number of the attempt."),
    ("Duetime-Fence", "The fence of the attempt."),
    ("Duetime-Due-At", "When the task was due."),
    ("Duetime-Schedule", "Name of the schedule that created the task or its topology; absent if there is none."),
    ("Duetime-Scheduled-At", "The nominal time of the run; only for a run of a schedule."),
    ("Duetime-Topology", "Id of the topology that the task is a node of; absent for other tasks."),
    ("Duetime-Node", "Name of the node; only for a node."),
)
_WORK = (
    ("Duetime-Deadline", "When the attempt must have ended."),
    ("Idempotency-Key", "The task's id, which is the same for every attempt."),
)
_BATCH = (("Duetime-Batch", "Number of tasks in the request."), ("Duetime-Deadline", "Earliest deadline of the tasks."))
_RESULT: Schema = {"application/json": {"schema": {}, "examples": {"done": {"value": {"rows": 17}}}}}


def webhooks() -> dict[str, Schema]:
    """The requests by name."""
    return {
        "taskEnded": {"post": _task_ended()},
        "targetWork": {"put": _target_work()},
        "targetBatch": {"put": _target_batch()},
        "targetQuery": {"get": _target_query()},
    }


def _task_ended() -> Schema:
    return {
        "operationId": "taskEnded",
        "summary": "Receive the outcome of a task",
        "description": "Sent to a task's `callback_url` after the task ends. A separate task delivers the outcome at "
        "least once, and retries after temporary failures.",
        "tags": [WEBHOOKS],
        "security": [],
        "parameters": _headers(_SIGNATURE),
        "requestBody": _body(TaskEvent),
        "responses": {
            "200": {"description": "Received; any 2xx status is accepted."},
            "4XX": {"description": "Rejected. The outcome is not sent again, unless the status is 408, 425 or 429."},
            "5XX": {"description": "Failed. The request is retried for a day, but not before `Retry-After`."},
        },
    }


def _target_work() -> Schema:
    return {
        "operationId": "targetWork",
        "summary": "Run a phase of a task",
        "description": "Sent to the URL of a task's HTTP target, for `run` and for each phase that the target lists.",
        "tags": [WEBHOOKS],
        "security": [],
        "parameters": [_action(list(Phase), "The phase."), *_headers(_TASK + _WORK + _SIGNATURE)],
        "requestBody": _body(TargetRequest),
        "responses": {
            "200": {"description": "Succeeded; the body is the result, as JSON or text.", "content": _RESULT},
            "202": {"description": "Accepted, for `run` only; report the outcome later with `reportOutcome`."},
            "4XX": {"description": "The attempt has failed and is not retried, unless the status is 408, 425 or 429."},
            "5XX": {"description": "The attempt has failed and may be retried, but not before `Retry-After`."},
        },
    }


def _target_batch() -> Schema:
    done: Schema = {"results": [{"status": 200, "result": {"rows": 17}}, {"status": 503, "retry_after_seconds": 60}]}
    outcomes: Schema = {
        "application/json": {"schema": reference(TargetOutcomes), "examples": {"done": {"value": done}}}
    }
    return {
        "operationId": "targetBatch",
        "summary": "Run several tasks",
        "description": "Sent to the URL of an HTTP target with a `batch`, even for a single task.",
        "tags": [WEBHOOKS],
        "security": [],
        "parameters": [_action([Phase.RUN], "The phase."), *_headers(_BATCH + _SIGNATURE)],
        "requestBody": _body(TargetBatch),
        "responses": {
            "200": {
                "description": "One outcome for each task; without a body, all tasks succeed.",
                "content": outcomes,
            },
            "202": {"description": "All tasks are accepted; report their outcomes later with `reportOutcome`."},
            "4XX": {
                "description": "All attempts have failed, and are not retried, unless the status is 408, 425 or 429."
            },
            "5XX": {"description": "All attempts have failed, and may be retried after `Retry-After`."},
        },
    }


def _target_query() -> Schema:
    return {
        "operationId": "targetQuery",
        "summary": "Answer a query about a task",
        "description": "Sent to the URL of a task's HTTP target for `queryTask`, if the target lists the query.",
        "tags": [WEBHOOKS],
        "security": [],
        "parameters": [_action(list(Query), "The query."), *_headers(_TASK + _SIGNATURE)],
        "responses": {
            "200": {"description": "The answer, as JSON or text, which is returned to the caller.", "content": _RESULT},
            "4XX": {"description": "Returned to the caller unchanged."},
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
