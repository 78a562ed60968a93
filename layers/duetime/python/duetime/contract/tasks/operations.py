"""The operations on a task that exists already: by its user, and by whoever works on it."""

from __future__ import annotations

from typing import Any

from duetime.contract.http import routes
from duetime.contract.http.operation import ETAG, IF_MATCH, ONE_CHANGED, OWNED, OWNER, READ_BODY, Operation
from duetime.contract.tasks import attempt_bodies, queries, responses
from duetime.domain import errors
from duetime.domain.limits import MAX_QUERY_ANSWER_BYTES, QUERY_TIMEOUT
from duetime.domain.times import SECOND

_ONE_REPORTED = (*OWNED, *READ_BODY, errors.TaskNotFound, errors.FenceMismatch)
_ALIVE = (*_ONE_REPORTED, errors.LockLost)


def _action(
    id_: str,
    path: str,
    summary: str,
    *,
    status: int = 200,
    also: tuple[type[Exception], ...] = (),
    **more: Any,  # noqa: ANN401 - fields of Operation
) -> Operation:
    """What a user may have done with a task: no more is to be said of it than which."""
    return Operation(
        id=id_,
        method="POST",
        path=path,
        summary=summary,
        status=status,
        body=attempt_bodies.NoFields,
        answer=responses.TaskResponse,
        answer_description="The task.",
        answer_headers=ETAG,
        headers=(IF_MATCH, OWNER),
        refusals=(*OWNED, *READ_BODY, *ONE_CHANGED, *also),
        **more,
    )


_ASKED = (errors.TaskNotFound, errors.QueryNotOffered, errors.TargetUnreachable, errors.TargetSilent)


ACTIONS = (
    _action(
        "pauseTask",
        routes.PAUSE,
        "Hold a task, or ask a running one to pause",
        description="Held, nothing runs and nothing is lost. A running attempt pauses when it can, and may leave a "
        "checkpoint for the one that goes on.",
        accepted="The running task is asked to pause.",
    ),
    _action(
        "resumeTask",
        routes.RESUME,
        "Let a paused task go on",
        description="At its due time if that is still ahead, else now. A pause that was only asked for is taken back.",
    ),
    _action("runTask", routes.RUN, "Have a task that has not started run now"),
    _action(
        "retryTask",
        routes.RETRY,
        "Have a failed task tried again",
        description="From its first attempt on, by its whole retry policy; its fence and its attempt history go on.",
        also=(errors.ContentExpired,),
    ),
    _action(
        "rollBackTask",
        routes.ROLLBACK,
        "Have an ended task undone by its target",
        description="The target's `rollback` runs as a task does: under a lease, with retries and an outcome.",
        also=(errors.ContentExpired,),
        status=202,
    ),
    Operation(
        id="notifyTask",
        method="POST",
        path=routes.NOTIFY,
        summary="Tell how an attempt ended whose target had only accepted the work",
        description="Telling the same again changes nothing and answers the same. A failure is retried by the task's "
        "policy, unless it is not `retriable`.",
        body=attempt_bodies.Notification,
        answer=responses.TaskResponse,
        answer_description="The task after the end of the attempt.",
        answer_headers=ETAG,
        headers=(OWNER,),
        refusals=(*_ONE_REPORTED, errors.NotifiedOtherwise),
    ),
    Operation(
        id="heartbeatTask",
        method="POST",
        path=routes.HEARTBEAT,
        summary="Say that an attempt is alive",
        description="An attempt whose target had only accepted the work gets its whole deadline again. `asked` in the "
        "answer is what the attempt should heed.",
        body=attempt_bodies.Heartbeat,
        answer=responses.TaskResponse,
        answer_description="The task.",
        answer_headers=ETAG,
        headers=(OWNER,),
        refusals=_ALIVE,
    ),
    Operation(
        id="tellProgress",
        method="POST",
        path=routes.PROGRESS,
        summary="Tell how far an attempt has come",
        description="It is a sign of life as well: see `heartbeatTask`.",
        body=attempt_bodies.ProgressReport,
        answer=responses.TaskResponse,
        answer_description="The task.",
        answer_headers=ETAG,
        headers=(OWNER,),
        refusals=_ALIVE,
    ),
    Operation(
        id="listAttempts",
        method="GET",
        path=routes.ATTEMPTS,
        summary="List the attempts of a task",
        description="Those that have ended, oldest first. One whose worker was lost is entered with the next claim.",
        answer=responses.AttemptsResponse,
        answer_description="Who ran it and when, how it ended and what it cost.",
        headers=(OWNER,),
        refusals=(*OWNED, errors.TaskNotFound),
    ),
    Operation(
        id="askTarget",
        method="GET",
        path=routes.TARGET,
        summary="Ask the endpoint of a task how it stands with it",
        description="Only of an HTTP target that lists the question in its `queries`. Whatever the endpoint answers is "
        f"passed on, up to {MAX_QUERY_ANSWER_BYTES} bytes of it; it has {QUERY_TIMEOUT // SECOND} seconds.",
        query=queries.TargetQuery,
        answer=responses.TargetReply,
        answer_description="What the endpoint answered.",
        headers=(OWNER,),
        refusals=(*OWNED, *_ASKED),
    ),
)
