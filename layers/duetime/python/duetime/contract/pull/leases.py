"""Leases over REST: the bodies, the answers and the operations of pull workers."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http import routes
from duetime.contract.http.operation import OWNED, OWNER, READ_BODY, Operation
from duetime.contract.tasks import attempt_bodies
from duetime.contract.tasks.attempt_bodies import NotifiedError  # noqa: TC001 - same
from duetime.contract.tasks.bodies import Body
from duetime.contract.tasks.fields import Percent, ProgressMessage, TaskType, each_once, printable
from duetime.contract.tasks.responses import Instant, TaskEntry
from duetime.domain import errors
from duetime.domain.limits import (
    LEASE_SECONDS,
    MAX_CHECKPOINT_BYTES,
    MAX_LEASE_SECONDS,
    MAX_LEASES,
    MAX_PULL_WAIT_SECONDS,
    MAX_PULLED_TYPES,
    MAX_RESULT_BYTES,
    MAX_WORKER_NAME_LENGTH,
    MIN_LEASE_SECONDS,
)
from duetime.domain.tasks.states import State  # noqa: TC001 - same
from duetime.domain.tasks.task import StopRequest  # noqa: TC001 - same


class LeaseRequest(Body):
    """What a worker can do, and how much of it now."""

    types: Annotated[
        list[TaskType],
        Field(
            min_length=1,
            max_length=MAX_PULLED_TYPES,
            description="Types of the tasks that the worker can do.",
            json_schema_extra={"uniqueItems": True},
        ),
        AfterValidator(each_once),
    ]
    max: Annotated[int, Field(ge=1, le=MAX_LEASES, description="Tasks at the most.")] = 1
    wait_seconds: Annotated[
        int, Field(ge=0, le=MAX_PULL_WAIT_SECONDS, description="How long to wait for a task if none is due.")
    ] = 0
    lease_seconds: Annotated[
        int,
        Field(
            ge=MIN_LEASE_SECONDS,
            le=MAX_LEASE_SECONDS,
            description="How long the worker may be silent before another gets its tasks; a heartbeat begins it anew.",
        ),
    ] = LEASE_SECONDS
    worker: Annotated[
        str,
        Field(max_length=MAX_WORKER_NAME_LENGTH, description="The worker's name, for the attempt history."),
        AfterValidator(printable),
    ] = ""


class LeaseHeartbeat(Body):
    """A sign of life, and how far the work has come."""

    percent: Annotated[Percent | None, Field(description="How far the work has come.")] = None
    message: ProgressMessage = ""


class Completion(Body):
    """The work is done."""

    result: Annotated[
        Any, Field(description=f"Any JSON, at most {MAX_RESULT_BYTES} bytes.", examples=[{"rows": 17}])
    ] = None


class LeaseFailure(Body):
    """The work failed."""

    error: Annotated[NotifiedError, Field(description="Why.")]
    retriable: Annotated[bool, Field(description="Whether another attempt might help.")] = True


class LeasePause(Body):
    """The work was left because its user asked for a pause."""

    checkpoint: Annotated[
        Any,
        Field(
            description=f"Any JSON of at most {MAX_CHECKPOINT_BYTES} bytes, for the attempt that goes on; without it, "
            "what an earlier one left."
        ),
    ] = None


class LeasedTask(TaskEntry):
    """A task that was leased."""

    payload: Any


class LeasedResponse(TypedDict):
    """A lease, and what it is about."""

    lease: Annotated[str, Field(description="The lease's id, for all that is said of it.")]
    ends_at: Annotated[Instant, Field(description="When another worker may get the task, unless a heartbeat comes.")]
    checkpoint: Annotated[Any, Field(description="What an attempt that was paused has left; null if there is nothing.")]
    inputs: Annotated[
        Any, Field(description="The results of its parents that a topology's node asks for; null for any other task.")
    ]
    task: LeasedTask


class LeasesResponse(TypedDict):
    """What was leased; nothing, if no task was due."""

    leases: Sequence[LeasedResponse]


class LeaseState(TypedDict):
    """What became of a lease, and of its task."""

    task_id: str
    state: State
    asked: Annotated[StopRequest | None, Field(description="What its user asks of the attempt, which should heed it.")]
    ends_at: Annotated[Instant | None, Field(description="When the lease ends; null once the attempt has ended.")]


_OF_A_LEASE = (*OWNED, *READ_BODY, errors.TypeNotPulled, errors.LeaseNotFound, errors.FenceMismatch)
_ENDING = (*_OF_A_LEASE, errors.NotifiedOtherwise)


def _told(id_: str, path: str, summary: str, **more: Any) -> Operation:  # noqa: ANN401 - fields of Operation
    """What a worker says of a lease."""
    fields: dict[str, Any] = {"body": attempt_bodies.NoFields, "refusals": _ENDING, **more}
    return Operation(
        id=id_,
        method="POST",
        path=path,
        summary=summary,
        tag="leases",
        answer=LeaseState,
        answer_description="The state of the task.",
        headers=(OWNER,),
        **fields,
    )


LEASE_OPERATIONS = (
    Operation(
        id="leaseTasks",
        method="POST",
        path=routes.LEASES,
        summary="Lease due tasks of pulled types",
        description="For workers anywhere. Tasks of all owners are handed out, none before its time, to callers that "
        "the deployment's settings name for the types. With `wait_seconds`, the answer comes with the first task, "
        "or at once if as many requests wait already as the settings let. An "
        "answer that is lost has leased its tasks all the same: they come back after the lease, at the cost of an "
        "attempt.",
        tag="leases",
        body=LeaseRequest,
        answer=LeasesResponse,
        answer_description="The leases.",
        headers=(OWNER,),
        refusals=(*OWNED, *READ_BODY, errors.TypeNotPulled),
    ),
    _told(
        "renewLease",
        routes.LEASE_HEARTBEAT,
        "Renew a lease",
        description="By its length, but never beyond the task's `timeout_seconds` after the attempt's start. `asked` "
        "in the answer is what the worker should heed.",
        body=LeaseHeartbeat,
        refusals=(*_OF_A_LEASE, errors.AttemptOverdue, errors.LockLost),
    ),
    _told(
        "completeLease",
        routes.LEASE_COMPLETE,
        "Tell that a leased task is done",
        description="Telling the same again changes nothing and answers the same. It is taken even after the end of "
        "the lease, as long as nobody else has the task.",
        body=Completion,
    ),
    _told(
        "failLease",
        routes.LEASE_FAIL,
        "Tell that a leased task has failed",
        description="It is retried by its policy, unless the failure is not `retriable`.",
        body=LeaseFailure,
    ),
    _told(
        "releaseLease",
        routes.LEASE_RELEASE,
        "Give a leased task back at once",
        description="It counts as no attempt, and any worker may lease it.",
    ),
    _told(
        "pauseLease",
        routes.LEASE_PAUSE,
        "Leave a task that its user wants paused",
        body=LeasePause,
        refusals=(*_ENDING, errors.StateConflict),
    ),
    _told(
        "cancelLease",
        routes.LEASE_CANCEL,
        "Leave a task that its user wants cancelled",
        refusals=(*_ENDING, errors.StateConflict),
    ),
)
