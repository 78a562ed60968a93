"""Leases over REST: the bodies of requests and of responses."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.tasks.bodies import Body
from duetime.contract.tasks.fields import Percent, ProgressMessage, TaskType, each_once, printable
from duetime.contract.tasks.report_bodies import ReportedError  # noqa: TC001 - same
from duetime.contract.tasks.responses import Instant, TaskSummary
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
from duetime.domain.tasks.task import RequestedAction  # noqa: TC001 - same


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
    max_tasks: Annotated[int, Field(ge=1, le=MAX_LEASES, description="Tasks at the most.")] = 1
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


class LeaseComplete(Body):
    """The work is done."""

    result: Annotated[
        Any, Field(description=f"Any JSON, at most {MAX_RESULT_BYTES} bytes.", examples=[{"rows": 17}])
    ] = None


class LeaseFail(Body):
    """The work failed."""

    error: Annotated[ReportedError, Field(description="Why.")]
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


class LeasedTask(TaskSummary):
    """A task that was leased."""

    payload: Any


class LeasedResponse(TypedDict):
    """A lease, and what it is about."""

    id: Annotated[str, Field(description="The lease's id, for all that is said of it.")]
    expires_at: Annotated[Instant, Field(description="When another worker may get the task, unless a heartbeat comes.")]
    checkpoint: Annotated[Any, Field(description="What an attempt that was paused has left; null if there is nothing.")]
    inputs: Annotated[
        Any, Field(description="The results of its parents that a topology's node asks for; null for any other task.")
    ]
    task: LeasedTask


class AcquiredLeases(TypedDict):
    """What was leased; nothing, if no task was due."""

    leases: Sequence[LeasedResponse]


class LeaseStatus(TypedDict):
    """What became of a lease, and of its task."""

    task_id: str
    state: State
    requested_action: Annotated[
        RequestedAction | None, Field(description="What its user asks of the attempt, which should heed it.")
    ]
    expires_at: Annotated[Instant | None, Field(description="When the lease ends; null once the attempt has ended.")]
