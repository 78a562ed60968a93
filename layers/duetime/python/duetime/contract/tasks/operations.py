"""Operations on tasks, for their users and for workers."""

from __future__ import annotations

from dataclasses import replace

from duetime.contract.http.operation import FOR_A_LEASE, IF_MATCH, KEY, KEY_LIFE, LEASE, TRACEPARENT, Operation, Returns
from duetime.contract.tasks import (
    actions,
    bodies,
    history,
    queries,
    responses,
)
from duetime.domain import errors
from duetime.domain.limits import ACTIONS_INLINE, MAX_BATCH, MAX_JSON_DEPTH, MAX_QUERY_ANSWER_BYTES, QUERY_TIMEOUT
from duetime.domain.times import SECOND

TASK = Returns(responses.TaskResponse, "The task.", {"ETag": "The task's version."})
NEW_TASK = TASK.created("Path of the task.")
KEPT_TASK = NEW_TASK.found("The task that holds the unique key; none was created.")
CHANGED = (errors.StateConflict, errors.VersionMismatch)
_CACHED = {
    **TASK.headers,
    "Cache-Control": "`no-store` until the task has ended; then `no-cache`, so that a copy is revalidated by its ETag.",
    "Retry-After": "Seconds after which to read the task again; absent once it has an outcome.",
}

CREATE = Operation(
    "createTask",
    "POST /v1/tasks",
    "Create a task",
    NEW_TASK,
    description="The task is stored durably before the response is sent. A due time in the past means now. With "
    "`wait_seconds`, the response is sent once the task has ended, or after that time.",
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
    description=f"Up to {MAX_BATCH} tasks, each with its own result: a task that is refused does not stop the "
    "others. The idempotency key applies to each task together with its position in the list.",
    query=queries.EstimateQuery,
    body=bodies.TaskBatchCreate,
    # More levels than any valid batch: a task that is nested too deeply is rejected individually.
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
        {"Retry-After": "With `ids`: seconds after which to read them again, if one has no outcome yet."},
    ),
    description="Your tasks, ordered by due time. A page can be short or empty and still have a next page. Tasks "
    "that have failed for good are those with `state=failed`.",
    query=queries.TaskListQuery,
)
READ = Operation(
    "getTask",
    "GET /v1/tasks/{task_id}",
    "Get a task",
    replace(TASK, headers=_CACHED),
    description="With `wait_seconds`, the response is sent once the task has ended, or after that time.",
    query=queries.TaskQuery,
)
UPDATE = Operation(
    "updateTask",
    "PATCH /v1/tasks/{task_id}",
    "Update a task that has not started",
    TASK.but("The task after the update."),
    description="A merge patch (RFC 7396): `retry`, `lock`, `rate`, `tags` and a `target` of the same kind are merged, "
    "null removes, and a `target` of another kind replaces the one before. `payload` is opaque: it is replaced as a "
    "whole. The body is a patch of the task, so the reason is a parameter of the query.",
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
    description="Cancels a task that has not started. A running task is a conflict unless `force` is true: then it "
    "is asked to stop, and stops when it can. Repeating the request changes nothing and returns the same. With "
    "`include_children`, the tasks that it started are cancelled, too.",
    accepted=TASK.accepted("The running task has been asked to stop."),
    body=actions.TaskCancel,
    headers=(IF_MATCH,),
    errors=CHANGED,
)

DELETE = Operation(
    "deleteTask",
    "DELETE /v1/tasks/{task_id}",
    "Delete a task with its payload, its result and its attempts",
    Returns(None, "The task is deleted.", status=204),
    description="One that has not started is cancelled first. A task that runs, or whose end is not followed up "
    "yet, is a conflict: cancel it, and wait for its end. A topology is deleted with all of its nodes, as by "
    "`deleteTopology`; a node by itself is a conflict. "
    "Nothing makes a deleted task again, not even its creation repeated with its idempotency key.",
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
    """Declares an action of a user on a task, without fields except the reason."""
    return Operation(
        id_,
        f"POST /v1/tasks/{{task_id}}/{name}",
        summary,
        returns,
        description=description,
        accepted=accepted,
        body=actions.TaskAction,
        headers=(IF_MATCH,),
        errors=(*CHANGED, *also),
    )


PAUSE = _action(
    "pauseTask",
    "pause",
    "Pause a task",
    "A paused task does not start until it is resumed. A running attempt is asked to pause: it does so when it can, "
    "and may leave a checkpoint for the attempt that continues.",
    accepted=TASK.accepted("The running task has been asked to pause."),
)
RESUME = _action(
    "resumeTask",
    "resume",
    "Resume a paused task",
    "It runs at its due time if that is still to come, otherwise now. A request to pause that the running attempt "
    "has not followed yet is withdrawn.",
)
RUN = _action("runTask", "run", "Run a task now", "Starts a task that has not started yet, whatever its due time.")
RETRY = _action(
    "retryTask",
    "retry",
    "Retry a failed task",
    "Starts again with the first attempt and the full retry policy. The fence and the attempt history continue.",
    also=(errors.ContentExpired, errors.UniqueKeyHeld),
)
ROLL_BACK = _action(
    "rollbackTask",
    "rollback",
    "Roll back an ended task",
    "Calls the target's `rollback`, which runs as a task does: under a lease, with retries and an outcome.",
    TASK.accepted("The task."),
    also=(errors.ContentExpired, errors.UniqueKeyHeld),
)


SIGNAL = Operation(
    "signalTask",
    "POST /v1/tasks/{task_id}/signal",
    "Approve or reject a task",
    TASK,
    description="For a task with the target `approval` that waits for it: it succeeds with the payload as its result, "
    "or fails with the error `Rejected`. Who decided, and why, is one of its events. Repeating the same decision "
    "changes nothing and returns the same.",
    body=actions.TaskSignal,
    headers=(IF_MATCH,),
    errors=CHANGED,
)
NOTIFY = Operation(
    "reportOutcome",
    "POST /v1/tasks/{task_id}/notify",
    "Report the outcome of an asynchronous attempt",
    TASK.but("The task, after the attempt has ended."),
    description="For an attempt whose target has accepted the work and finishes it later. A failure is retried by "
    "the task's retry policy, unless `retriable` is false. Repeating the same report changes nothing and returns "
    "the same.",
    body=actions.OutcomeReport,
    errors=(errors.FenceMismatch, errors.NotifiedOtherwise),
)
HEARTBEAT = Operation(
    "reportHeartbeat",
    "POST /v1/tasks/{task_id}/heartbeat",
    "Send a heartbeat of a running attempt",
    TASK,
    description="Starts the time limit of an asynchronous attempt again. `requested_action` of the response is what "
    "the attempt should do: pause or cancel.",
    body=actions.HeartbeatReport,
    errors=(errors.FenceMismatch, errors.LockLost),
)
PROGRESS = Operation(
    "reportProgress",
    "POST /v1/tasks/{task_id}/progress",
    "Report the progress of a running attempt",
    TASK,
    description="Counts as a heartbeat: see `reportHeartbeat`.",
    body=actions.ProgressReport,
    errors=(errors.FenceMismatch, errors.LockLost),
)
LIST_ATTEMPTS = Operation(
    "listTaskAttempts",
    "GET /v1/tasks/{task_id}/attempts",
    "List the attempts of a task",
    Returns(responses.AttemptList, "The attempts: who ran each and when, how it ended and what it cost."),
    description="Attempts that have ended, oldest first. An attempt whose worker was lost is added when the next "
    "attempt starts.",
)
LIST_STEPS = Operation(
    "listTaskSteps",
    "GET /v1/tasks/{task_id}/steps",
    "List the steps of a task",
    Returns(responses.StepList, "The steps that are done, in the order in which they ended."),
    description="The steps of a Python handler or pull worker (`context.step`) whose results are stored: the next "
    "attempt does not repeat them. An attempt that has lost its lease may still add the step that it was in.",
)
LIST_EVENTS = Operation(
    "listTaskEvents",
    "GET /v1/tasks/{task_id}/events",
    "List the events of a task",
    Returns(history.TaskEventList, "The events, oldest first."),
    description="The life of a task: its creation, what users and the system did to it, by whom and why, the start and "
    f"the end of its attempts, and its end. The latest {ACTIONS_INLINE} actions are kept; `dropped` counts the older "
    "ones. Actions that were taken before this history was introduced are not listed.",
)
QUERY = Operation(
    "queryTask",
    "POST /v1/tasks/{task_id}/query",
    "Query the endpoint of a task",
    Returns(responses.TaskQueryResult, "The response of the endpoint."),
    description="For HTTP targets that list the action in their `queries`. The endpoint has "
    f"{QUERY_TIMEOUT // SECOND} seconds to respond; its response is passed on, up to {MAX_QUERY_ANSWER_BYTES} bytes.",
    body=actions.TaskQueryBody,
    is_question=True,
    errors=(errors.QueryNotOffered, errors.TargetUnreachable, errors.TargetSilent),
)
