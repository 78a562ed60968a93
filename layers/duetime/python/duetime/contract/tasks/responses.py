"""The bodies of answers. A field that has no value yet is null; list entries carry no payload and no result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations for the OpenAPI document
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.problems import Problem  # noqa: TC001 - same
from duetime.domain.tasks.attempt_records import AttemptOutcome  # noqa: TC001 - same
from duetime.domain.tasks.parents import Cause  # noqa: TC001 - same
from duetime.domain.tasks.states import State  # noqa: TC001 - same
from duetime.domain.tasks.task import LockScope, Priority, StopRequest  # noqa: TC001 - same

Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
ErrorResponse = TypedDict("ErrorResponse", {"class": str, "message": str})
ErrorResponse.__doc__ = "Why the last attempt failed: the error's class and message."


class ProgressResponse(TypedDict):
    """How far the running attempt says it has come."""

    percent: int
    message: str


class RetryResponse(TypedDict):
    """How often and how patiently the task is tried."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float


class HandlerTargetResponse(TypedDict):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class HttpTargetResponse(TypedDict):
    """An HTTP endpoint."""

    kind: Literal["http"]
    url: str
    phases: Annotated[
        Sequence[Literal["prepare", "clean", "rollback"]], Field(description="What it offers besides `run`.")
    ]
    queries: Annotated[
        Sequence[Literal["status", "progress", "summary"]], Field(description="What it answers when it is asked.")
    ]


class PullTargetResponse(TypedDict):
    """Workers that lease the tasks of this type."""

    kind: Literal["pull"]


class TopologyTargetResponse(TypedDict):
    """The state machine that runs the graph in the payload."""

    kind: Literal["topology"]


class LambdaTargetResponse(TypedDict):
    """A Lambda function."""

    kind: Literal["lambda"]
    arn: str
    mode: Literal["sync", "async"]


class EventBridgeTargetResponse(TypedDict):
    """An event bus."""

    kind: Literal["eventbridge"]
    arn: str
    detail_type: Annotated[str | None, Field(description="Of the event; null for the type of the task.")]


class AwsTargetResponse(TypedDict):
    """An SQS queue, an SNS topic or a state machine."""

    kind: Literal["sqs", "sns", "step_functions"]
    arn: str


TargetResponse = (
    HandlerTargetResponse
    | HttpTargetResponse
    | PullTargetResponse
    | LambdaTargetResponse
    | EventBridgeTargetResponse
    | AwsTargetResponse
    | TopologyTargetResponse
)


class MemberResponse(TypedDict):
    """The node of a topology that a task is."""

    topology: Annotated[str, Field(description="Id of the topology's task.")]
    run: int
    node: str
    note: Annotated[str | None, Field(description="Why it was cancelled, if its topology did that.")]


class LeaseResponse(TypedDict):
    """Who may work on the task now, and until when."""

    holder: str
    ends_at: Instant


class LockSpecResponse(TypedDict):
    """A named resource that a task needs for itself, or shares with few, while it runs."""

    key: str
    limit: int
    scope: LockScope


class OccasionResponse(TypedDict):
    """The occurrence of a schedule that a task is."""

    name: Annotated[str, Field(description="Of the schedule.")]
    revision: Annotated[int, Field(description="Of the schedule, under which it was placed.")]
    at: Annotated[Instant, Field(description="The instant that it stands for.")]
    cause: Annotated[Cause, Field(description="Why it was placed.")]


class TaskOptionsResponse(TypedDict):
    """What was chosen of a task."""

    name: str | None
    tags: Mapping[str, str]
    priority: Priority
    retry: RetryResponse
    timeout_seconds: int
    deadline_seconds: int
    rollback: bool
    lock: LockSpecResponse | None
    callback_url: Annotated[str | None, Field(description="Where its outcome is told.")]


class _Identity(TypedDict):
    id: Annotated[str, Field(description="A ULID; ids sort by due time.")]
    state: State
    type: str


class TaskEntry(_Identity, TaskOptionsResponse):
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
    deferred: Annotated[bool, Field(description="The target has only accepted the work, and will notify.")]
    asked: Annotated[
        StopRequest | None, Field(description="What its user asks of the running attempt, which heeds it when it can.")
    ]
    waits_for: Annotated[
        str | None, Field(description="Why the last look at it began no attempt: a lock, or something switched off.")
    ]
    schedule: Annotated[
        OccasionResponse | None, Field(description="The schedule's occurrence that it is; null for a task by itself.")
    ]
    member: Annotated[
        MemberResponse | None, Field(description="The node of a topology that it is; null for a task that is none.")
    ]
    progress: ProgressResponse | None
    error: ErrorResponse | None
    lateness_ms: Annotated[int | None, Field(description="How long after its due time it started.")]
    version: Annotated[int, Field(description="Grows with every write; the ETag is made of it.")]


class TaskResponse(TaskEntry):
    """A task, whole."""

    payload: Any
    result: Annotated[Any, Field(description="What the target returned; null before that.")]
    content_expired: Annotated[
        Sequence[Literal["payload", "result"]],
        Field(description="What was kept outside the record and has been removed before it: it is null here."),
    ]


class TargetReply(TypedDict):
    """What an endpoint answered when it was asked about a task."""

    status: Annotated[int, Field(description="Of its HTTP answer, whatever it is.")]
    body: Annotated[Any, Field(description="Its JSON; other text as a string; null if there is none.")]


class PageResponse(TypedDict):
    """Some of the tasks of a list."""

    tasks: Sequence[TaskEntry]
    next_token: Annotated[
        str | None, Field(description="Asks for the next page; null on the last one. A page may be short, or empty.")
    ]


class AttemptResponse(TypedDict):
    """One attempt, as the attempt history has it. Of one whose worker was lost, nobody knows more than that it was."""

    attempt: Annotated[int, Field(description="Its number. A pause takes one back, and a reopened task counts anew.")]
    fence: Annotated[int, Field(description="Unlike the number, it never repeats.")]
    holder: Annotated[str | None, Field(description="Who ran it.")]
    planned_at: Annotated[Instant | None, Field(description="When it was to start.")]
    started_at: Annotated[Instant | None, Field(description="When the target was called.")]
    lateness_ms: Annotated[int | None, Field(description="How long after its planned start that was.")]
    duration_ms: Annotated[int | None, Field(description="How long it took.")]
    outcome: Annotated[AttemptOutcome, Field(description="How it ended.")]
    error: Annotated[
        ErrorResponse | None, Field(description="Why it failed; of all but the last failure the message may be cut.")
    ]
    cost_dollars: Annotated[
        float | None, Field(description="Estimated from assumed public prices: its writes, and its time in a worker.")
    ]


class AttemptsResponse(TypedDict):
    """The attempts of a task that have ended, oldest first."""

    attempts: Sequence[AttemptResponse]


class BatchAccepted(TypedDict):
    """A task of a batch that was created."""

    status: Literal[201]
    task: TaskEntry


class BatchRejected(TypedDict):
    """A task of a batch that was not created."""

    status: int
    problem: Problem


class BatchResponse(TypedDict):
    """What became of each task of a batch, in its order."""

    results: Sequence[BatchAccepted | BatchRejected]
