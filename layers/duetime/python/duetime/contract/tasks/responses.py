"""The bodies of answers. A field that has no value yet is null; list entries carry no payload and no result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.problems import Problem  # noqa: TC001 - same
from duetime.contract.tasks.target_responses import TargetResponse  # noqa: TC001 - same
from duetime.domain.tasks.attempt_records import AttemptOutcome  # noqa: TC001 - same
from duetime.domain.tasks.parents import Cause  # noqa: TC001 - same
from duetime.domain.tasks.states import State  # noqa: TC001 - same
from duetime.domain.tasks.task import LockScope, Priority, RequestedAction  # noqa: TC001 - same
from duetime.domain.tasks.wait_reasons import WaitReason  # noqa: TC001 - same

Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


class TaskErrorResponse(TypedDict):
    """Why the last attempt failed."""

    type: Annotated[str, Field(description="What kind of error it was.")]
    message: str


class TaskProgressResponse(TypedDict):
    """How far the running attempt says it has come."""

    percent: int
    message: str


class RetryResponse(TypedDict):
    """How often and how patiently the task is tried."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float


class TopologyReferenceResponse(TypedDict):
    """The node of a topology that a task is."""

    id: Annotated[str, Field(description="Id of the topology's task.")]
    run: int
    node: str
    reason: Annotated[str | None, Field(description="Why it was cancelled, if its topology did that.")]


class LeaseResponse(TypedDict):
    """Who may work on the task now, and until when."""

    worker: str
    expires_at: Instant


class WaitingForResponse(TypedDict):
    """What a task waits for besides its time."""

    reason: WaitReason
    text: Annotated[str, Field(description="The same in words: `lock db-17`.")]


class TaskLockResponse(TypedDict):
    """A named resource that a task needs for itself, or shares with few, while it runs."""

    key: str
    max_holders: int
    scope: LockScope


class ScheduleReferenceResponse(TypedDict):
    """The occurrence of a schedule that a task is."""

    name: Annotated[str, Field(description="Of the schedule.")]
    revision: Annotated[int, Field(description="Of the schedule, under which it was placed.")]
    scheduled_at: Annotated[Instant, Field(description="The instant that it stands for.")]
    cause: Annotated[Cause, Field(description="Why it was placed.")]


class TaskOptionsResponse(TypedDict):
    """What was chosen of a task."""

    name: str | None
    tags: Mapping[str, str]
    priority: Priority
    retry: RetryResponse
    timeout_seconds: int
    notify_within_seconds: int
    rollback_on_failure: bool
    lock: TaskLockResponse | None
    callback_url: Annotated[str | None, Field(description="Where its outcome is told.")]


class _Identity(TypedDict):
    id: Annotated[str, Field(description="A ULID; ids sort by due time.")]
    state: State
    type: str


class TaskSummary(_Identity, TaskOptionsResponse):
    """A task as lists show it."""

    target: TargetResponse
    due_at: Annotated[Instant, Field(description="When its user wants it to run.")]
    next_at: Annotated[Instant | None, Field(description="When it is looked at next; null once it has ended.")]
    created_at: Instant
    started_at: Annotated[Instant | None, Field(description="When the first attempt started.")]
    finished_at: Annotated[Instant | None, Field(description="When its outcome was stored and followed up.")]
    attempt: Annotated[int, Field(description="How many attempts have begun.")]
    fence: Annotated[int, Field(description="Grows with every claim; a target can refuse an older one.")]
    lease: Annotated[
        LeaseResponse | None, Field(description="Who works on it, and until when; null while nobody does.")
    ]
    awaiting_notification: Annotated[bool, Field(description="The target has only accepted the work, and will notify.")]
    requested_action: Annotated[
        RequestedAction | None,
        Field(description="What its user asks of the running attempt, which heeds it when it can."),
    ]
    waiting_for: Annotated[
        WaitingForResponse | None,
        Field(description="Why its last check began no attempt; null if it waits for nothing but its time."),
    ]
    schedule: Annotated[
        ScheduleReferenceResponse | None,
        Field(description="The schedule's occurrence that it is; null for a task by itself."),
    ]
    topology: Annotated[
        TopologyReferenceResponse | None,
        Field(description="The node of a topology that it is; null for a task that is none."),
    ]
    progress: TaskProgressResponse | None
    error: TaskErrorResponse | None
    lateness_ms: Annotated[int | None, Field(description="How long after its due time it started.")]
    version: Annotated[int, Field(description="Grows with every write; the ETag is made of it.")]


class TaskResponse(TaskSummary):
    """A task, whole."""

    payload: Any
    result: Annotated[Any, Field(description="What the target returned; null before that.")]
    content_expired: Annotated[
        Sequence[Literal["payload", "result"]],
        Field(description="What was kept outside the record and has been removed before it: it is null here."),
    ]


class TaskQueryResult(TypedDict):
    """What an endpoint answered when it was asked about a task."""

    status: Annotated[int, Field(description="Of its HTTP answer, whatever it is.")]
    body: Annotated[Any, Field(description="Its JSON; other text as a string; null if there is none.")]


class TaskPage(TypedDict):
    """Some of the tasks of a list."""

    tasks: Sequence[TaskSummary]
    next_token: Annotated[
        str | None, Field(description="Asks for the next page; null on the last one. A page may be short, or empty.")
    ]


class AttemptResponse(TypedDict):
    """One attempt, as the attempt history has it. Of one whose worker was lost, nobody knows more than that it was."""

    attempt: Annotated[int, Field(description="Its number. A pause takes one back, and a reopened task counts anew.")]
    fence: Annotated[int, Field(description="Unlike the number, it never repeats.")]
    worker: Annotated[str | None, Field(description="Who ran it.")]
    planned_at: Annotated[Instant | None, Field(description="When it was to start.")]
    started_at: Annotated[Instant | None, Field(description="When the target was called.")]
    lateness_ms: Annotated[int | None, Field(description="How long after its planned start that was.")]
    duration_ms: Annotated[int | None, Field(description="How long it took.")]
    outcome: Annotated[AttemptOutcome, Field(description="How it ended.")]
    error: Annotated[
        TaskErrorResponse | None,
        Field(description="Why it failed; of all but the last failure the message may be cut."),
    ]
    cost_dollars: Annotated[
        float | None, Field(description="Estimated from assumed public prices: its writes, and its time in a worker.")
    ]


class AttemptPage(TypedDict):
    """The attempts of a task that have ended, oldest first."""

    attempts: Sequence[AttemptResponse]


class TaskBatchAccepted(TypedDict):
    """A task of a batch that was created."""

    status: Literal[201]
    task: TaskSummary


class TaskBatchRejected(TypedDict):
    """A task of a batch that was not created."""

    status: int
    problem: Problem


class TaskBatchResult(TypedDict):
    """What became of each task of a batch, in its order."""

    results: Sequence[TaskBatchAccepted | TaskBatchRejected]
