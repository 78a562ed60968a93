"""The REST API's operations on tasks, for their users and for workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.contract.http.operation import FOR_A_LEASE, IF_MATCH, KEY, KEY_LIFE, LEASE, TRACEPARENT, Operation, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks import bodies, history, queries, responses
from duetime.contract.tasks.fields import ErrorMessage, ErrorType, Fence, Percent, ProgressMessage, Reason
from duetime.domain import errors
from duetime.domain.limits import (
    ACTIONS_INLINE,
    MAX_BATCH,
    MAX_JSON_DEPTH,
    MAX_QUERY_ANSWER_BYTES,
    MAX_RESULT_BYTES,
    QUERY_TIMEOUT,
)
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.targets import Query
from duetime.domain.tasks.task import Progress
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.attempt_results import Ending


_FAILED = {"properties": {"outcome": {"const": "failed"}}}
_WITH_ERROR = {"required": ["error"], "not": {"required": ["result"]}}
_WITHOUT_ERROR = {"not": {"anyOf": [{"required": ["error"]}, {"required": ["retriable"]}]}}


def _as_notification(schema: dict[str, Any]) -> None:
    """Allows an error only for a failure, and a result only for a success; omitted fields are absent, not null."""
    error = schema["properties"]["error"]
    schema["properties"]["error"] = {**error["anyOf"][0], "description": error["description"]}
    schema |= {"if": _FAILED, "then": _WITH_ERROR, "else": _WITHOUT_ERROR}


class EmptyRequest(Body):
    """A request without fields; the body can be left out."""


class TaskAction(Body):
    """An action on a task; the body can be left out."""

    reason: Reason = ""


class TaskCancel(TaskAction):
    """Cancels a task; the body can be left out."""

    force: Annotated[
        bool, Field(description="Whether a running task is also asked to stop, at its next opportunity.")
    ] = False
    include_children: Annotated[
        bool,
        Field(
            description="Whether to also cancel the tasks that the task started, directly or indirectly, even if the "
            "task has ended. One request cancels a few hundred tasks, so repeat the request while `has_more` is true."
        ),
    ] = False


def _as_signal(schema: dict[str, Any]) -> None:
    """Allows a payload only with an approval."""
    rejects = {"properties": {"approve": {"const": False}}, "required": ["approve"]}
    schema |= {"if": rejects, "then": {"not": {"required": ["payload"]}}}


class TaskSignal(Body):
    """Approves or rejects a task that waits for approval."""

    model_config = ConfigDict(json_schema_extra=_as_signal)

    approve: Annotated[bool, Field(description="Whether the task is approved; false rejects the task.")]
    payload: Annotated[
        Any,
        Field(
            description=f"For an approval, the result of the task: any JSON, at most {MAX_RESULT_BYTES} bytes.",
            examples=[{"limit": 500}],
        ),
    ] = None
    reason: Reason = ""


OPTIONAL_BODIES = (EmptyRequest, TaskAction)
"""Optional bodies, including subclasses."""


class TaskQueryBody(Body):
    """Queries the endpoint of a task."""

    action: Annotated[
        Literal["status", "progress", "summary"],
        Field(description="Query to send, which the target must list in `queries`."),
    ]


class ReportedError(Body):
    """Why an attempt failed."""

    type: ErrorType
    message: ErrorMessage = ""


class OutcomeReport(Body):
    """The outcome of an asynchronous attempt."""

    model_config = ConfigDict(json_schema_extra=_as_notification)

    fence: Fence
    outcome: Annotated[Literal["succeeded", "failed"], Field(description="How the attempt ended.")]
    result: Annotated[
        Any,
        Field(description=f"Result of a success: any JSON, at most {MAX_RESULT_BYTES} bytes.", examples=[{"rows": 17}]),
    ] = None
    error: Annotated[ReportedError | None, Field(description="Error of a failure.")] = None
    retriable: Annotated[bool, Field(description="For a failure, whether another attempt may be made.")] = True


class HeartbeatReport(Body):
    """A heartbeat of a running attempt."""

    fence: Fence


class ProgressReport(Body):
    """The progress of a running attempt, which counts as a heartbeat."""

    fence: Fence
    percent: Percent
    message: ProgressMessage = ""


_OF_A_FAILURE = ("error", "retriable")


@frozen
class Report:
    """A report by an attempt.

    Attributes:
        fence: fence of the attempt.
        progress: the reported progress; `None` for a heartbeat.
    """

    fence: int
    progress: Progress | None = None


@frozen
class Notice:
    """A report of an attempt's end.

    Attributes:
        fence: fence of the attempt.
    """

    fence: int
    ending: Ending


def reject_fields(document: Document) -> None:
    """Rejects all fields; the error names them.

    Raises:
        FieldsInvalid: there is a field, or the body is not an object.
    """
    read_body(EmptyRequest, document)


def action_reason(document: Document) -> str:
    """The reason for an action; empty if there is none.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(TaskAction, document).reason


def cancellation(document: Document) -> TaskCancel:
    """Decodes a cancellation.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(TaskCancel, document)


def query(document: Document) -> Query:
    """Decodes a request that queries a task's endpoint.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return Query(read_body(TaskQueryBody, document).action)


def heartbeat(document: Document) -> Report:
    """Decodes a heartbeat.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return Report(read_body(HeartbeatReport, document).fence)


def progress(document: Document) -> Report:
    """Decodes a report of progress.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(ProgressReport, document)
    return Report(body.fence, Progress(body.percent, body.message))


def notice(document: Document) -> Notice:
    """Decodes a report of an attempt's end.

    Raises:
        FieldsInvalid: some fields are invalid, or are not allowed for the outcome.
    """
    body = read_body(OutcomeReport, document)
    return Notice(body.fence, _success(body) if body.outcome == "succeeded" else _failure(body))


@frozen
class Signal:
    """A person's decision.

    Attributes:
        payload: JSON text in UTF-8.
    """

    approve: bool
    payload: bytes
    reason: str


def signal(document: Document) -> Signal:
    """Decodes a decision.

    Raises:
        FieldsInvalid: some fields are invalid, or are not allowed for the decision.
    """
    body = read_body(TaskSignal, document)
    if not body.approve and "payload" in body.model_fields_set:
        raise FieldsInvalid([Fault("payload", "is allowed with an approval only; give a reason", FaultCode.CONFLICT)])
    return Signal(body.approve, _result("payload", body.payload), body.reason)


def _result(field: str, value: object) -> bytes:
    result = compact(value)
    if len(result) > MAX_RESULT_BYTES:
        raise FieldsInvalid([Fault(field, f"is larger than {MAX_RESULT_BYTES} bytes", FaultCode.TOO_LONG)])
    return result


def _success(body: OutcomeReport) -> Ending:
    if strange := [name for name in _OF_A_FAILURE if name in body.model_fields_set]:
        raise FieldsInvalid(
            Fault(name, "is allowed with the outcome 'failed' only", FaultCode.CONFLICT) for name in strange
        )
    return Succeeded(_result("result", body.result))


def _failure(body: OutcomeReport) -> Ending:
    if "result" in body.model_fields_set:
        raise FieldsInvalid([Fault("result", "is allowed with the outcome 'succeeded' only", FaultCode.CONFLICT)])
    if body.error is None:
        raise FieldsInvalid([Fault("error", "is required with the outcome 'failed'", FaultCode.REQUIRED)])
    return failure(body.error.type, body.error.message, retriable=body.retriable)


TASK = Returns(responses.TaskResponse, "The task.", {"ETag": "The task's version."})
NEW_TASK = TASK.created("Path of the task.")
KEPT_TASK = NEW_TASK.found("The existing task that holds the unique key; no task was created.")
CHANGED = (errors.StateConflict, errors.VersionMismatch)
_CACHED = {
    **TASK.headers,
    "Cache-Control": "`no-store` until the task has ended; then `no-cache`, so that caches revalidate with the ETag.",
    "Retry-After": "Seconds after which to read the task again; absent once the task has an outcome.",
}

CREATE = Operation(
    "createTask",
    "POST /v1/tasks",
    "Create a task",
    NEW_TASK,
    description="The task is stored durably before the response is sent. A due time in the past means now. With "
    "`wait_seconds`, the response is sent when the task ends, or after that time.",
    accepted=NEW_TASK.accepted("The task is stored, and has not ended yet."),
    kept=KEPT_TASK,
    query=queries.CreationQuery,
    body=bodies.TaskCreate,
    headers=(KEY, KEY_LIFE, TRACEPARENT, LEASE),
    errors=(errors.KeyReused, errors.TaskDeleted, errors.UniqueKeyHeld, *FOR_A_LEASE),
)
CREATE_MANY = Operation(
    "createTaskBatch",
    "POST /v1/tasks/batch",
    "Create a batch of tasks",
    Returns(responses.TaskBatchResult, "The result of each task, in the order of the request."),
    description=f"Up to {MAX_BATCH} tasks, each with its own result: a rejected task does not affect the "
    "others. The idempotency key applies to each task together with its position in the list.",
    query=queries.EstimateQuery,
    body=bodies.TaskBatchCreate,
    # This limit allows more levels than any valid batch has, so that a task that is nested too deeply is rejected
    # individually.
    nesting=2 * MAX_JSON_DEPTH,
    headers=(KEY, KEY_LIFE, TRACEPARENT, LEASE),
    errors=FOR_A_LEASE,
)
LIST = Operation(
    "listTasks",
    "GET /v1/tasks",
    "List tasks",
    Returns(
        responses.TaskPage,
        "A page of tasks.",
        {"Retry-After": "With `ids`: seconds after which to read the tasks again, if any task has no outcome yet."},
    ),
    description="Your tasks, ordered by due time. A page can be short or empty and still have a next page. "
    "`state=failed` lists tasks that failed for good.",
    query=queries.TaskListQuery,
)
READ = Operation(
    "getTask",
    "GET /v1/tasks/{task_id}",
    "Get a task",
    replace(TASK, headers=_CACHED),
    description="With `wait_seconds`, the response is sent when the task ends, or after that time.",
    query=queries.TaskQuery,
)
UPDATE = Operation(
    "updateTask",
    "PATCH /v1/tasks/{task_id}",
    "Update a task that has not started",
    TASK.but("The task after the update."),
    description="The body is a merge patch (RFC 7396): `retry`, `lock`, `rate`, `tags` and a `target` of the same "
    "kind are merged, null removes a field, and a `target` of another kind replaces the old target. `payload` is "
    "opaque and replaced completely. The body contains only task fields, so the reason is a query parameter.",
    query=queries.UpdateQuery,
    body=bodies.TaskPatch,
    headers=(IF_MATCH,),
    errors=CHANGED,
)
CANCEL = Operation(
    "cancelTask",
    "POST /v1/tasks/{task_id}/cancel",
    "Cancel a task",
    TASK.but("The cancelled task."),
    description="Cancels a task that has not started. Cancelling a running task is a conflict unless "
    "`force` is true, in which case the task is asked to stop at its next opportunity. Repeating the request changes "
    "nothing and returns the same response. With `include_children`, the tasks that this task started are "
    "cancelled, too.",
    accepted=TASK.accepted("The running task has been asked to stop."),
    body=TaskCancel,
    headers=(IF_MATCH,),
    errors=CHANGED,
)

DELETE = Operation(
    "deleteTask",
    "DELETE /v1/tasks/{task_id}",
    "Delete a task with its payload, its result and its attempts",
    Returns(None, "The task is deleted.", status=204),
    description="A task that has not started is cancelled first. Deleting a running task, or a task whose "
    "follow-up work is not done, is a conflict; cancel the task and wait for its end first. A topology is deleted with "
    "all of its nodes, as by `deleteTopology`; deleting a single node is a conflict. A deleted task is "
    "never created again, not even by repeating its creation with its idempotency key.",
    headers=(IF_MATCH,),
    errors=CHANGED,
)


def _action(
    id_: str,
    name: str,
    summary: str,
    description: str = "",
    returns: Returns = TASK,
    accepted: Returns | None = None,
    also: tuple[type[Exception], ...] = (),
) -> Operation:
    """Declares a user action on a task, whose only field is the reason."""
    return Operation(
        id_,
        f"POST /v1/tasks/{{task_id}}/{name}",
        summary,
        returns,
        description=description,
        accepted=accepted,
        body=TaskAction,
        headers=(IF_MATCH,),
        errors=(*CHANGED, *also),
    )


PAUSE = _action(
    "pauseTask",
    "pause",
    "Pause a task",
    "A paused task does not start until a user resumes the task. A running attempt is asked to pause at its next "
    "opportunity, and may leave a checkpoint for the next attempt.",
    accepted=TASK.accepted("The running task has been asked to pause."),
)
RESUME = _action(
    "resumeTask",
    "resume",
    "Resume a paused task",
    "The task runs at its due time, or now if the due time has passed. A pause request that the running attempt has "
    "not followed yet is withdrawn.",
)
RUN = _action("runTask", "run", "Run a task now", "Starts a task that has not started yet, regardless of its due time.")
RETRY = _action(
    "retryTask",
    "retry",
    "Retry a failed task",
    "The task starts again with the first attempt and the full retry policy. The fence and the attempt history "
    "continue.",
    also=(errors.ContentExpired, errors.UniqueKeyHeld),
)
ROLL_BACK = _action(
    "rollbackTask",
    "rollback",
    "Roll back an ended task",
    "Calls the target's `rollback`, which runs like a task: with a lease, retries and an outcome.",
    TASK.accepted("The task."),
    also=(errors.ContentExpired, errors.UniqueKeyHeld),
)


SIGNAL = Operation(
    "signalTask",
    "POST /v1/tasks/{task_id}/signal",
    "Approve or reject a task",
    TASK,
    description="For a waiting task with the target `approval`: the task succeeds with the payload as its result, or "
    "fails with the error `Rejected`. The task's events record who decided and why. Repeating the same decision "
    "changes nothing and returns the same response.",
    body=TaskSignal,
    headers=(IF_MATCH,),
    errors=CHANGED,
)
NOTIFY = Operation(
    "reportOutcome",
    "POST /v1/tasks/{task_id}/notify",
    "Report the outcome of an asynchronous attempt",
    TASK.but("The task, after the attempt has ended."),
    description="For an attempt whose target has accepted the work and finishes later. A failure is retried according "
    "to the task's retry policy, unless `retriable` is false. Repeating the same report changes nothing and returns "
    "the same response.",
    body=OutcomeReport,
    errors=(errors.FenceMismatch, errors.NotifiedOtherwise),
)
HEARTBEAT = Operation(
    "reportHeartbeat",
    "POST /v1/tasks/{task_id}/heartbeat",
    "Send a heartbeat of a running attempt",
    TASK,
    description="Restarts the time limit of an asynchronous attempt. `requested_action` in the response says what the "
    "attempt should do: pause or cancel.",
    body=HeartbeatReport,
    errors=(errors.FenceMismatch, errors.LockLost),
)
PROGRESS = Operation(
    "reportProgress",
    "POST /v1/tasks/{task_id}/progress",
    "Report the progress of a running attempt",
    TASK,
    description="The report counts as a heartbeat; see `reportHeartbeat`.",
    body=ProgressReport,
    errors=(errors.FenceMismatch, errors.LockLost),
)
LIST_ATTEMPTS = Operation(
    "listTaskAttempts",
    "GET /v1/tasks/{task_id}/attempts",
    "List the attempts of a task",
    Returns(responses.AttemptList, "The attempts, each with its worker, times, outcome and cost."),
    description="Attempts that have ended, oldest first. An attempt whose worker was lost is added when the next "
    "attempt starts.",
)
LIST_STEPS = Operation(
    "listTaskSteps",
    "GET /v1/tasks/{task_id}/steps",
    "List the steps of a task",
    Returns(responses.StepList, "The completed steps, in the order of completion."),
    description="The steps of a Python handler or pull worker (`context.step`) whose results are stored, so that the "
    "next attempt skips them. An attempt that has lost its lease may still add its current step.",
)
LIST_EVENTS = Operation(
    "listTaskEvents",
    "GET /v1/tasks/{task_id}/events",
    "List the events of a task",
    Returns(history.TaskEventList, "The events, oldest first."),
    description="The task's creation, the actions by users and by the system with actor and reason, the start and end "
    f"of each attempt, and the task's end. The latest {ACTIONS_INLINE} actions are kept; `dropped` counts older "
    "actions. Actions that were taken before this history was introduced are not listed.",
)
QUERY = Operation(
    "queryTask",
    "POST /v1/tasks/{task_id}/query",
    "Query the endpoint of a task",
    Returns(responses.TaskQueryResult, "The response of the endpoint."),
    description="For HTTP targets that list the action in their `queries`. The endpoint has "
    f"{QUERY_TIMEOUT // SECOND} seconds to respond; up to {MAX_QUERY_ANSWER_BYTES} bytes of its response are returned.",
    body=TaskQueryBody,
    is_question=True,
    errors=(errors.QueryNotOffered, errors.TargetUnreachable, errors.TargetSilent),
)
