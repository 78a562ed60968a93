"""The operations on tasks: by their users, and by whoever works on them."""

from __future__ import annotations

from dataclasses import replace

from duetime.contract.http.operation import IF_MATCH, IF_NONE_MATCH, KEY, Operation, Returns
from duetime.contract.tasks import bodies, patch_bodies, queries, report_bodies, responses
from duetime.domain import errors
from duetime.domain.limits import MAX_BATCH, MAX_JSON_DEPTH, MAX_QUERY_ANSWER_BYTES, QUERY_TIMEOUT
from duetime.domain.times import SECOND

TASK = Returns(responses.TaskResponse, "The task.", {"ETag": "The task's version."})
NEW_TASK = TASK.created("Path of the task.")
CHANGED = (errors.StateConflict, errors.VersionMismatch)
_CACHED = {
    **TASK.headers,
    "Cache-Control": "`no-store` until the task has ended, then how long its outcome may be kept.",
}

CREATE = Operation(
    "createTask",
    "POST /v1/tasks",
    "Create a task",
    NEW_TASK,
    description="Once it is answered, the task is durable. A due time in the past is accepted: it runs now. "
    "With `wait_seconds`, the answer comes with the outcome, or at the limit.",
    accepted=NEW_TASK.accepted("The task is durable, but has no outcome yet."),
    query=queries.CreationQuery,
    body=bodies.TaskCreate,
    headers=(KEY,),
    errors=(errors.KeyReused, errors.TaskDeleted),
)
CREATE_MANY = Operation(
    "createTasks",
    "POST /v1/tasks/batch",
    "Create many tasks",
    Returns(responses.BatchResponse, "What became of each task, in the order they were given."),
    description=f"Up to {MAX_BATCH} at once, each with its own result: one that is refused stops no other. "
    "The idempotency key holds for each task together with its place in the list.",
    body=bodies.TaskBatch,
    # More than any good batch has: a task in it that is nested too deeply is refused by itself.
    nesting=2 * MAX_JSON_DEPTH,
    headers=(KEY,),
)
LIST = Operation(
    "listTasks",
    "GET /v1/tasks",
    "List one's tasks",
    Returns(responses.PageResponse, "A page of the list."),
    description="In order of their due times. A page may be short, or empty, and still name a next one. Those that "
    "gave up are the list of `state=failed`.",
    query=queries.TaskListQuery,
)
READ = Operation(
    "getTask",
    "GET /v1/tasks/{task_id}",
    "Read a task",
    replace(TASK, headers=_CACHED),
    description="With `wait_seconds`, the answer comes with the outcome, or at the limit.",
    query=queries.TaskQuery,
    headers=(IF_NONE_MATCH,),
)
UPDATE = Operation(
    "updateTask",
    "PATCH /v1/tasks/{task_id}",
    "Update a task that has not started",
    TASK.but("The task after the update."),
    description="A merge patch (RFC 7396): `retry`, `lock`, `tags` and a `target` of the same kind are merged, null "
    "removes, and a `target` of another kind replaces the one before. `payload` is opaque: it is replaced as a whole.",
    body=patch_bodies.TaskPatch,
    headers=(IF_MATCH,),
    errors=CHANGED,
)
CANCEL = Operation(
    "cancelTask",
    "POST /v1/tasks/{task_id}/cancel",
    "Cancel a task that has not started, or ask a running one to stop",
    TASK.but("The cancelled task."),
    description="Cancelling it again changes nothing and answers the same. A task that runs is a conflict, unless "
    "`force` is true: then it is asked to stop, which it does when it can.",
    accepted=TASK.accepted("The running task is asked to stop."),
    body=report_bodies.TaskCancel,
    headers=(IF_MATCH,),
    errors=CHANGED,
)

DELETE = Operation(
    "deleteTask",
    "DELETE /v1/tasks/{task_id}",
    "Delete a task with its payload, its result and its attempts",
    Returns(None, "The task is deleted.", status=204),
    description="One that has not started is cancelled first. A task that runs, or whose end is not followed up "
    "yet, is a conflict: cancel it, and wait for its end. So is a topology, and a node of one: they expire together. "
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
    """What a user may have done with a task: no more is to be said of it than which."""
    return Operation(
        id_,
        f"POST /v1/tasks/{{task_id}}/{name}",
        summary,
        returns,
        description=description,
        accepted=accepted,
        body=report_bodies.NoFields,
        headers=(IF_MATCH,),
        errors=(*CHANGED, *also),
    )


PAUSE = _action(
    "pauseTask",
    "pause",
    "Hold a task, or ask a running one to pause",
    "Held, nothing runs and nothing is lost. A running attempt pauses when it can, and may leave a checkpoint for the "
    "one that goes on.",
    accepted=TASK.accepted("The running task is asked to pause."),
)
RESUME = _action(
    "resumeTask",
    "resume",
    "Let a paused task go on",
    "At its due time if that is still ahead, else now. A pause that was only asked for is taken back.",
)
RUN = _action("runTask", "run", "Have a task that has not started run now")
RETRY = _action(
    "retryTask",
    "retry",
    "Have a failed task tried again",
    "From its first attempt on, by its whole retry policy; its fence and its attempt history go on.",
    also=(errors.ContentExpired,),
)
ROLL_BACK = _action(
    "rollBackTask",
    "rollback",
    "Have an ended task undone by its target",
    "The target's `rollback` runs as a task does: under a lease, with retries and an outcome.",
    TASK.accepted("The task."),
    also=(errors.ContentExpired,),
)


NOTIFY = Operation(
    "notifyTask",
    "POST /v1/tasks/{task_id}/notify",
    "Tell how an attempt ended whose target had only accepted the work",
    TASK.but("The task after the end of the attempt."),
    description="Telling the same again changes nothing and answers the same. A failure is retried by the task's "
    "policy, unless it is not `retriable`.",
    body=report_bodies.Notification,
    errors=(errors.FenceMismatch, errors.NotifiedOtherwise),
)
HEARTBEAT = Operation(
    "heartbeatTask",
    "POST /v1/tasks/{task_id}/heartbeat",
    "Say that an attempt is alive",
    TASK,
    description="An attempt whose target had only accepted the work gets its whole deadline again. `asked` in the "
    "answer is what the attempt should heed.",
    body=report_bodies.Heartbeat,
    errors=(errors.FenceMismatch, errors.LockLost),
)
PROGRESS = Operation(
    "tellProgress",
    "POST /v1/tasks/{task_id}/progress",
    "Tell how far an attempt has come",
    TASK,
    description="It is a sign of life as well: see `heartbeatTask`.",
    body=report_bodies.ProgressReport,
    errors=(errors.FenceMismatch, errors.LockLost),
)
LIST_ATTEMPTS = Operation(
    "listAttempts",
    "GET /v1/tasks/{task_id}/attempts",
    "List the attempts of a task",
    Returns(responses.AttemptsResponse, "Who ran it and when, how it ended and what it cost."),
    description="Those that have ended, oldest first. One whose worker was lost is entered with the next claim.",
)
QUERY = Operation(
    "queryTask",
    "POST /v1/tasks/{task_id}/query",
    "Ask the endpoint of a task how it stands with it",
    Returns(responses.TargetReply, "What the endpoint answered."),
    description="Only of an HTTP target that lists the question in its `queries`. Whatever the endpoint answers is "
    f"passed on, up to {MAX_QUERY_ANSWER_BYTES} bytes of it; it has {QUERY_TIMEOUT // SECOND} seconds.",
    body=report_bodies.TaskQueryBody,
    errors=(errors.QueryNotOffered, errors.TargetUnreachable, errors.TargetSilent),
)
