"""Bodies of requests and responses for leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.fields import Percent, ProgressMessage, TaskType, each_once, printable
from duetime.contract.tasks.operations import ReportedError
from duetime.contract.tasks.responses import Instant, TaskSummary
from duetime.domain.limits import (
    LEASE_SECONDS,
    MAX_CHECKPOINT_BYTES,
    MAX_LEASE_SECONDS,
    MAX_LEASES,
    MAX_LOGGED_TRACEBACK_LENGTH,
    MAX_PULL_WAIT_SECONDS,
    MAX_PULLED_TYPES,
    MAX_RESULT_BYTES,
    MAX_RETRY_WAIT_SECONDS,
    MAX_STEP_RESULT_BYTES,
    MAX_TRACEBACK_LENGTH,
    MAX_WORKER_NAME_LENGTH,
    MIN_LEASE_SECONDS,
)
from duetime.domain.operating_parameters import MAX_UNACKNOWLEDGED_LEASES
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import RequestedAction

MAX_STEP_MS = 2**31 - 1
"""Longest duration of a step that can be reported."""


class LeaseRequest(Body):
    """What a worker wants to lease."""

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
    max_tasks: Annotated[int, Field(ge=1, le=MAX_LEASES, description="Maximum number of tasks.")] = 1
    wait_seconds: Annotated[
        int, Field(ge=0, le=MAX_PULL_WAIT_SECONDS, description="How long to wait for a task if none is due.")
    ] = 0
    lease_seconds: Annotated[
        int,
        Field(
            ge=MIN_LEASE_SECONDS,
            le=MAX_LEASE_SECONDS,
            description="Length of the lease: without a heartbeat within it, another worker may get the task.",
        ),
    ] = LEASE_SECONDS
    acknowledge_within_seconds: Annotated[
        int | None,
        Field(
            ge=MIN_LEASE_SECONDS,
            le=MAX_LEASE_SECONDS,
            description="Length of the lease until its first heartbeat, at most `lease_seconds`, which it is by "
            "default. A lease that its worker never received, as it was lost while it waited, ends as soon as that.",
        ),
    ] = None
    worker: Annotated[
        str,
        Field(max_length=MAX_WORKER_NAME_LENGTH, description="The worker's name, for the attempt history."),
        AfterValidator(printable),
    ] = ""


class LeaseHeartbeat(Body):
    """A heartbeat, with the progress of the work and a checkpoint."""

    percent: Annotated[Percent | None, Field(description="Progress of the work in percent.")] = None
    message: ProgressMessage = ""
    checkpoint: Annotated[
        Any,
        Field(
            description=f"Any JSON of at most {MAX_CHECKPOINT_BYTES} bytes, for the next attempt if this one fails, is "
            "lost or is paused; without it, an earlier checkpoint is kept."
        ),
    ] = None


class StepDone(Body):
    """A step of the work is done."""

    result: Annotated[
        Any, Field(description=f"Any JSON of at most {MAX_STEP_RESULT_BYTES} bytes.", examples=[{"charge": "ch_17"}])
    ] = None
    duration_ms: Annotated[int, Field(ge=0, le=MAX_STEP_MS, description="How long the step took, in milliseconds.")] = 0


class StoredStep(TypedDict):
    """A step whose result is stored."""

    name: Annotated[str, Field(description="Name of the step.")]
    result: Annotated[
        Any,
        Field(description="The stored result; another attempt's, if that stored it first. The work continues with it."),
    ]


class StoredSteps(TypedDict):
    """The steps that earlier attempts, or this one, have done."""

    steps: Annotated[Sequence[StoredStep], Field(description="The steps.")]


class LeaseComplete(Body):
    """The work succeeded."""

    result: Annotated[
        Any, Field(description=f"Any JSON, at most {MAX_RESULT_BYTES} bytes.", examples=[{"rows": 17}])
    ] = None


class LeaseFail(Body):
    """The work failed."""

    error: Annotated[ReportedError, Field(description="Why the work failed.")]
    retriable: Annotated[bool, Field(description="Whether another attempt may be made.")] = True
    retry_in_seconds: Annotated[
        float | None,
        Field(
            gt=0,
            le=MAX_RETRY_WAIT_SECONDS,
            description="Wait before the next attempt, instead of the retry policy's. Cannot be given with "
            "`retriable` false.",
        ),
    ] = None
    traceback: Annotated[
        str,
        Field(
            max_length=MAX_LOGGED_TRACEBACK_LENGTH,
            description="Where it was raised, in any language. What looks like a secret is redacted; its last "
            f"{MAX_TRACEBACK_LENGTH} characters or fewer can be read with the attempt, if tracebacks are kept.",
        ),
    ] = ""


class LeasePause(Body):
    """The work was stopped because a pause was requested."""

    checkpoint: Annotated[
        Any,
        Field(
            description=f"Any JSON of at most {MAX_CHECKPOINT_BYTES} bytes, for the attempt that continues; without "
            f"it, an earlier checkpoint is kept."
        ),
    ] = None


class LeasedTask(TaskSummary):
    """A task that was leased."""

    payload: Any


class LeasedResponse(TypedDict):
    """A lease, with its task."""

    id: Annotated[str, Field(description="Id of the lease, for all reports about it.")]
    expires_at: Annotated[
        Instant, Field(description="When the lease ends unless it is renewed; another worker may get the task then.")
    ]
    checkpoint: Annotated[Any, Field(description="The latest checkpoint of an earlier attempt; null if there is none.")]
    inputs: Annotated[
        Any,
        Field(description="Results of the parent nodes that a node of a topology asks for; null for any other task."),
    ]
    unacknowledged_leases: Annotated[
        int,
        Field(
            description="Leases of the task right before this one whose workers sent no heartbeat and no report: no "
            f"attempts, if there are no more than {MAX_UNACKNOWLEDGED_LEASES}."
        ),
    ]
    task: LeasedTask


class AcquiredLeases(TypedDict):
    """The leases that were acquired; none if no task was due."""

    leases: Sequence[LeasedResponse]


class LeaseStatus(TypedDict):
    """The status of a lease and of its task."""

    task_id: str
    state: State
    requested_action: Annotated[
        RequestedAction | None, Field(description="What the attempt should do: pause or cancel; null for neither.")
    ]
    expires_at: Annotated[Instant | None, Field(description="When the lease ends; null once the attempt has ended.")]
