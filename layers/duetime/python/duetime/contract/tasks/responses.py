"""Responses about tasks. Fields without a value are null; entries of lists have no payload and no result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from duetime.contract.http.problems import Problem
from duetime.domain.limits import MAX_LOCK_HOLDERS
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause, RequestedAction
from duetime.domain.tasks.task_options import AfterFailure, LockMode, LockScope, OnConflict, Priority, Until
from duetime.domain.tasks.wait_reasons import WaitReason
from duetime.domain.topologies.trigger_rules import TriggerRule

LambdaMode = Literal["sync", "async", "durable"]


class HandlerTargetResponse(TypedDict):
    """The Python handler that is registered for the task's type."""

    kind: Literal["handler"]


class RequestBodyResponse(TypedDict, total=False):
    """The body of a request, in one of four forms."""

    json: Annotated[Any, Field(description="Any JSON.")]
    form: Annotated[dict[str, str], Field(description="Fields of a form.")]
    text: Annotated[str, Field(description="Text in UTF-8.")]
    base64: Annotated[str, Field(description="Bytes, base64.")]


class RequestAuthResponse(TypedDict):
    """Authentication of a request."""

    secret: Annotated[str, Field(description="Name of the secret in the deployment's settings.")]
    scheme: Annotated[
        Literal["bearer", "basic", "header", "oauth_client"], Field(description="How the secret is sent.")
    ]
    header: Annotated[str | None, Field(description="Name of the header, for the scheme `header`.")]


class ResponseOptionsResponse(TypedDict):
    """The part of the response that becomes the task's result."""

    keep: Annotated[Literal["body", "all", "none"], Field(description="Which parts of the response.")]
    max_bytes: Annotated[int, Field(description="Size of the body, in bytes.")]
    when_larger: Annotated[Literal["fail", "truncate"], Field(description="What happens to a larger body.")]


class CallBatchResponse(TypedDict):
    """How tasks share calls of an endpoint."""

    max_size: Annotated[int, Field(description="Maximum number of tasks in one call.")]
    max_wait_seconds: Annotated[float, Field(description="How long the first task may wait for others.")]


class HttpTargetResponse(TypedDict):
    """An HTTP endpoint. Fields of the request are present if they were set."""

    kind: Literal["http"]
    url: str
    phases: Annotated[
        Sequence[Literal["prepare", "clean", "rollback"]],
        Field(description="Phases that the endpoint supports besides `run`."),
    ]
    queries: Annotated[
        Sequence[Literal["status", "progress", "summary"]], Field(description="Queries that the endpoint answers.")
    ]
    method: Annotated[NotRequired[str], Field(description="Method of the request.")]
    headers: Annotated[NotRequired[dict[str, str]], Field(description="Headers of the request.")]
    query: Annotated[NotRequired[dict[str, str]], Field(description="Parameters added to the URL's query.")]
    body: Annotated[NotRequired[RequestBodyResponse], Field(description="Body of the request.")]
    success: Annotated[NotRequired[Sequence[int]], Field(description="Statuses that mean success.")]
    auth: Annotated[NotRequired[RequestAuthResponse], Field(description="Authentication of the request.")]
    response: Annotated[NotRequired[ResponseOptionsResponse], Field(description="Parts of the response that are kept.")]
    batch: Annotated[NotRequired[CallBatchResponse], Field(description="How its tasks share calls.")]


class CallbackTargetResponse(TypedDict):
    """The callback URL of another task, whose id is the name of this one."""

    kind: Literal["callback"]
    url: Annotated[str, Field(description="Where the outcome is posted.")]


class PullTargetResponse(TypedDict):
    """Pull workers, which lease the tasks of this type."""

    kind: Literal["pull"]


class DefinitionRunResponse(TypedDict):
    """The run of a topology definition."""

    name: str
    version: Annotated[
        int | None, Field(description="Its version; null in a schedule that runs the latest one each time.")
    ]
    parameters: Annotated[dict[str, Any], Field(description="The values of its parameters.")]


class TopologyTargetResponse(TypedDict):
    """A topology, whose graph is the payload."""

    kind: Literal["topology"]
    definition: Annotated[
        NotRequired[DefinitionRunResponse], Field(description="The definition that it is a run of, if it is one.")
    ]


class ApprovalTargetResponse(TypedDict):
    """A person who approves or rejects the task."""

    kind: Literal["approval"]
    timeout_seconds: Annotated[int, Field(description="How long it waits after its due time.")]
    on_timeout: Annotated[Literal["fail", "reject", "approve"], Field(description="What happens after that.")]


class EventTargetResponse(TypedDict):
    """An event that the task waits for."""

    kind: Literal["wait_for_event"]
    event: Annotated[str, Field(description="Name of the event.")]
    key: Annotated[str, Field(description="Distinguishes events with the same name; empty for none.")]
    timeout_seconds: Annotated[int, Field(description="How long it waits after its due time.")]
    lookback_seconds: Annotated[
        int, Field(description="How long before the creation of the task the signal may have been sent.")
    ]
    when: Annotated[str | None, Field(description="Condition on the signal; null for any.")]


class LambdaTargetResponse(TypedDict):
    """A Lambda function."""

    kind: Literal["lambda"]
    arn: str
    mode: LambdaMode


class EventBridgeTargetResponse(TypedDict):
    """An event bus."""

    kind: Literal["eventbridge"]
    arn: str
    detail_type: Annotated[str | None, Field(description="Detail type of the event; null for the type of the task.")]


class AwsTargetResponse(TypedDict):
    """An SQS queue or an SNS topic."""

    kind: Literal["sqs", "sns"]
    arn: str


class StepFunctionsTargetResponse(TypedDict):
    """A state machine."""

    kind: Literal["step_functions"]
    arn: str
    wait: Annotated[bool, Field(description="Whether the execution's end is the outcome; if not, its start is.")]


class EcsTargetResponse(TypedDict):
    """An ECS task definition."""

    kind: Literal["ecs"]
    arn: str
    cluster: str
    container: str
    parameters: Annotated[dict[str, Any], Field(description="Further fields of the request `RunTask`.")]


class BatchTargetResponse(TypedDict):
    """A Batch job definition."""

    kind: Literal["batch"]
    arn: str
    queue: str
    parameters: Annotated[dict[str, Any], Field(description="Further fields of the request `SubmitJob`.")]


class JobTargetResponse(TypedDict):
    """A CodeBuild project or a Glue job."""

    kind: Literal["codebuild", "glue"]
    arn: str
    parameters: Annotated[
        dict[str, Any], Field(description="Further fields of the request `StartBuild` or `StartJobRun`.")
    ]


TargetResponse = (
    HandlerTargetResponse
    | HttpTargetResponse
    | CallbackTargetResponse
    | PullTargetResponse
    | LambdaTargetResponse
    | EventBridgeTargetResponse
    | AwsTargetResponse
    | StepFunctionsTargetResponse
    | EcsTargetResponse
    | BatchTargetResponse
    | JobTargetResponse
    | TopologyTargetResponse
    | ApprovalTargetResponse
    | EventTargetResponse
)


class RetryResponse(TypedDict):
    """The retry policy of a task."""

    max_attempts: int
    initial_seconds: float
    multiplier: float
    max_seconds: float
    max_duration_seconds: Annotated[
        int | None,
        Field(description="How long after the start of the first attempt another one can start; null for no limit."),
    ]


class TaskLockResponse(TypedDict):
    """A lock that a task holds while it runs."""

    key: str
    mode: LockMode
    max_holders: Annotated[
        int | None, Field(description=f"Maximum number of holders; null for a shared lock: {MAX_LOCK_HOLDERS}.")
    ]
    scope: LockScope
    wait_seconds: Annotated[int | None, Field(description="How long an attempt can wait for it; null for no limit.")]


class TaskRateResponse(TypedDict):
    """How often attempts of tasks with the same key can start."""

    key: str
    limit: int
    per_seconds: int
    burst: int


class AfterOccurrenceResponse(TypedDict):
    """An occurrence of a schedule that a task waits for."""

    schedule: Annotated[str, Field(description="Name of the schedule.")]
    occurrence: Annotated[Instant, Field(description="The time that it is scheduled for.")]
    task_id: Annotated[str | None, Field(description="Its task; null while none is known.")]


class TaskDependenciesResponse(TypedDict, total=False):
    """The dependencies of a task."""

    after: Annotated[
        Sequence[str | AfterOccurrenceResponse],
        Field(description="The tasks that must end, or had to end, before it starts; only for a task with any."),
    ]
    trigger_rule: Annotated[TriggerRule, Field(description="How they must have ended for it to run.")]


class UniqueResponse(TypedDict):
    """The unique key of a task, and the handling of further creations with it."""

    key: str
    until: Until
    on_conflict: OnConflict


class DebounceResponse(TypedDict):
    """Further creations with the key delay a task."""

    key: str
    seconds: int
    max_seconds: Annotated[int | None, Field(description="Counted from its creation; null for no limit.")]


class OrderKeyResponse(TypedDict):
    """The tasks of an owner with the same key run one after another, in the order of their creation."""

    key: str
    on_failure: AfterFailure


class NotifyOnResponse(TypedDict):
    """Notices about a final failure, a late start or a long run."""

    to: Annotated[str, Field(description="Where notices are sent: a URL, or an ARN.")]
    failed: bool
    late_seconds: Annotated[
        int | None, Field(description="After how many seconds a late start is reported; null for never.")
    ]
    running_seconds: Annotated[
        int | None, Field(description="After how many seconds a long run is reported; null for never.")
    ]


class TaskOptionsResponse(TypedDict):
    """The options of a task."""

    name: str | None
    tags: Mapping[str, str]
    priority: Priority
    retry: RetryResponse
    timeout_seconds: int
    notify_within_seconds: int
    rollback_on_failure: bool
    lock: Annotated[
        TaskLockResponse | None, Field(description="The lock that it needs while it runs; null for none, or several.")
    ]
    locks: Annotated[
        NotRequired[Sequence[TaskLockResponse]],
        Field(description="The locks that it needs while it runs, if it needs several; otherwise absent."),
    ]
    rate: TaskRateResponse | None
    callback_url: Annotated[str | None, Field(description="URL that the outcome is posted to; null for none.")]
    notify_on: NotifyOnResponse | None
    expires_seconds: Annotated[
        int | None, Field(description="How long after its due time its first attempt can start; null for no limit.")
    ]
    fair_key: Annotated[
        NotRequired[str], Field(description="Its key for sharing workers fairly with other keys; absent without one.")
    ]
    fair_weight: Annotated[NotRequired[int], Field(description="The weight of that key; absent if it is 1.")]


Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


class CostLineResponse(TypedDict):
    """A line of an estimate."""

    part: Annotated[str, Field(description="The billed item.")]
    quantity: Annotated[float, Field(description="Quantity that is used.")]
    unit: Annotated[str, Field(description="Unit of the quantity.")]
    dollars: Annotated[float, Field(description="Its cost, in US dollars.")]


class CostEstimateResponse(TypedDict):
    """The cost of tasks if each succeeds at its first attempt, at assumed public prices."""

    dollars: Annotated[float, Field(description="The sum of the lines, in US dollars.")]
    tasks: Annotated[int, Field(description="How many tasks are counted, callbacks and nodes of topologies included.")]
    days: Annotated[int | None, Field(description="For a schedule, the number of counted days; otherwise null.")]
    lines: Annotated[Sequence[CostLineResponse], Field(description="The costs, item by item.")]
    left_out: Annotated[Sequence[str], Field(description="Parts of the request that cannot be estimated.")]
    region: Annotated[
        str, Field(description="The region of the prices: `us-east-1` if the price table lacks the deployment's.")
    ]
    prices_as_of: Annotated[str, Field(description="The date of the prices.")]


Estimate = Annotated[
    CostEstimateResponse, Field(description="What it will cost: in responses to a creation with `estimate`.")
]


class TaskErrorResponse(TypedDict):
    """Why the last attempt failed."""

    type: Annotated[str, Field(description="Type of the error.")]
    message: str


class TaskProgressResponse(TypedDict):
    """The progress that the running attempt has reported."""

    percent: int
    message: str


class GroupReferenceResponse(TypedDict):
    """The group that a task is a member of."""

    id: str


class TopologyReferenceResponse(TypedDict):
    """The topology that a task is a node of."""

    id: Annotated[str, Field(description="Id of the topology.")]
    run: int
    node: str
    reason: Annotated[str | None, Field(description="Why the topology cancelled the task; null if it did not.")]


class JobResponse(TypedDict):
    """The job that AWS runs for a task."""

    arn: str
    console_url: Annotated[str, Field(description="Its page in the AWS console, which leads to its logs.")]


class LeaseResponse(TypedDict):
    """The lease of the worker that runs the task."""

    worker: str
    expires_at: Instant


class WaitingForResponse(TypedDict):
    """The reason for a task's wait, apart from its due time."""

    reason: WaitReason
    text: Annotated[str, Field(description="A description for people, such as `lock db-17`.")]


class ScheduleReferenceResponse(TypedDict):
    """The schedule that a task is a run of."""

    name: Annotated[str, Field(description="Name of the schedule.")]
    revision: Annotated[int, Field(description="Revision of the schedule that created the task.")]
    scheduled_at: Annotated[
        Instant, Field(description="The time that it was scheduled for, before jitter and calendars.")
    ]
    previous_at: Annotated[
        Instant | None, Field(description="The schedule's time before that one; null if there is none.")
    ]
    next_at: Annotated[Instant | None, Field(description="The schedule's time after that one; null if there is none.")]
    cause: Annotated[Cause, Field(description="Why the schedule created the task.")]


class _Identity(TypedDict):
    id: Annotated[str, Field(description="A ULID; ids sort by due time.")]
    state: State
    type: str


class TaskSummary(_Identity, TaskOptionsResponse, TaskDependenciesResponse):
    """A task as lists show it."""

    target: TargetResponse
    unique: Annotated[UniqueResponse | None, Field(description="Its unique key; null for none, or with `debounce`.")]
    debounce: Annotated[DebounceResponse | None, Field(description="How further creations delay it; null for never.")]
    order: Annotated[
        OrderKeyResponse | None, Field(description="Key whose earlier tasks must end before it starts; null for none.")
    ]
    due_at: Annotated[Instant, Field(description="When it is due.")]
    expires_at: Annotated[
        Instant | None,
        Field(description="The latest time at which its first attempt can start; null for no limit, or if not known."),
    ]
    next_at: Annotated[Instant | None, Field(description="When the scheduler checks it next; null once it has ended.")]
    created_at: Instant
    started_at: Annotated[Instant | None, Field(description="When the first attempt started; null before that.")]
    finished_at: Annotated[
        Instant | None, Field(description="When its outcome was stored and followed up; null before that.")
    ]
    attempt: Annotated[int, Field(description="Number of attempts that have started.")]
    fence: Annotated[int, Field(description="Grows with every attempt, so that a target can refuse an outdated one.")]
    lease: Annotated[
        LeaseResponse | None, Field(description="The lease of the worker that runs it; null while none does.")
    ]
    awaiting_notification: Annotated[
        bool, Field(description="Whether the target has accepted the work and will report the outcome later.")
    ]
    job: Annotated[
        JobResponse | None, Field(description="The job that AWS runs for it, or ran last; null if its target has none.")
    ]
    requested_action: Annotated[
        RequestedAction | None,
        Field(description="Action that is requested of the running attempt; null for none."),
    ]
    waiting_for: Annotated[
        WaitingForResponse | None,
        Field(description="Why its last check started no attempt; null if it only waits for its time."),
    ]
    schedule: Annotated[
        ScheduleReferenceResponse | None,
        Field(description="The schedule that it, or the topology that it is a node of, is a run of; null for none."),
    ]
    topology: Annotated[
        TopologyReferenceResponse | None,
        Field(description="The topology that it is a node of; null for a task that is none."),
    ]
    parent_task_id: Annotated[str | None, Field(description="The task that started it; null if none did.")]
    progress: TaskProgressResponse | None
    error: TaskErrorResponse | None
    lateness_ms: Annotated[
        int | None,
        Field(
            description="How long after its due time the first attempt started, in milliseconds; null before that. "
            "Counted from its creation, its update or its resumption if its due time was before that."
        ),
    ]
    cost_dollars: Annotated[
        float,
        Field(
            description="Estimated cost so far in US dollars, by assumed public prices: the writes of its creation and "
            "of its latest five attempts, and their time in a worker."
        ),
    ]
    traceparent: Annotated[
        str | None,
        Field(description="The trace in which it was created, by W3C Trace Context; null if the request named none."),
    ]
    version: Annotated[int, Field(description="Grows with every write; the ETag contains it.")]


class CancelledChildrenResponse(TypedDict):
    """The results of a cancellation for the tasks that a task started."""

    cancelled: Annotated[int, Field(description="How many it has cancelled.")]
    stopping: Annotated[int, Field(description="How many running ones are asked to stop.")]
    running: Annotated[int, Field(description="How many running ones it has left alone, as `force` is not set.")]
    has_more: Annotated[bool, Field(description="Whether the request must be repeated to cancel the rest.")]


class TaskResponse(TaskSummary):
    """A task, with its group, its payload and its result."""

    group: Annotated[
        GroupReferenceResponse | None, Field(description="The group that it is a member of; null for none.")
    ]
    completes_group: Annotated[
        str | None, Field(description="Id of the group after whose members it runs; null if it waits for none.")
    ]
    kept_until: Annotated[
        Instant | None,
        Field(description="Until when it can be read; null before its end, and for a node that its topology needs."),
    ]
    payload: Any
    result: Annotated[Any, Field(description="What the target returned: any JSON; null before that.")]
    content_expired: Annotated[
        Sequence[Literal["payload", "result"]],
        Field(description="Which of `payload` and `result` were large, have expired, and are null for this reason."),
    ]
    estimate: NotRequired[Estimate]
    children: Annotated[
        NotRequired[CancelledChildrenResponse],
        Field(description="What was done with its children: in responses to a cancellation that includes them."),
    ]


class TaskQueryResult(TypedDict):
    """The response of a task's endpoint to a query."""

    status: Annotated[int, Field(description="HTTP status of the response.")]
    body: Annotated[
        Any, Field(description="Body of the response: its JSON, or other text as a string; null if there is none.")
    ]


class ListedTask(TaskSummary):
    """A task in a list; content is included if the list was requested with `expand`."""

    payload: NotRequired[Annotated[Any, Field(description="Its payload, with `expand=payload`.")]]
    result: NotRequired[
        Annotated[Any, Field(description="What the target returned, with `expand=result`; null before that.")]
    ]
    content_expired: NotRequired[
        Annotated[
            Sequence[Literal["payload", "result"]],
            Field(description="With `expand`: which contents were large, have expired, and are null for this reason."),
        ]
    ]


class TaskCount(TypedDict):
    """The number of tasks that match the filters of a list."""

    tasks: Annotated[int, Field(description="Their number, or how many of the first examined tasks match.")]
    is_exact: Annotated[bool, Field(description="Whether all tasks that may match were examined.")]
    cost_dollars: Annotated[float, Field(description="Estimated cost of these tasks so far, by assumed prices.")]


class AppliedList(TypedDict):
    """The filters of a list. There are no others, and no implied range of time."""

    filters: Annotated[
        Mapping[str, Sequence[str]], Field(description="The filters of the request, by the names of their parameters.")
    ]
    order: Annotated[Literal["asc", "desc"], Field(description="Earliest first or latest first.")]
    order_by: Annotated[
        Literal["due_at", "finished_at"], Field(description="By the due time at creation, or by the end.")
    ]
    limit: Annotated[int, Field(description="Maximum number of entries on the page.")]
    examined: Annotated[int, Field(description="How many of your tasks were read for this page.")]
    examined_to: Annotated[
        Instant | None,
        Field(description="Time, by `order_by`, of the task that was read last; null if none is left to read."),
    ]
    last_change_at: Annotated[
        Instant | None,
        Field(
            description="When the latest change was made that the lists contain, to within ten seconds: lists follow "
            "changes of your tasks after some seconds. It stays the same while nothing changes. Null if the page was "
            "read from the tasks themselves."
        ),
    ]
    count: Annotated[TaskCount | None, Field(description="How many tasks match; null unless `count` was requested.")]


class TaskPage(TypedDict):
    """A page of tasks."""

    tasks: Sequence[ListedTask]
    applied: Annotated[AppliedList, Field(description="The filters of the list.")]
    next_token: Annotated[
        str | None, Field(description="Token of the next page; null on the last one. A page can be short or empty.")
    ]


class AttemptErrorResponse(TaskErrorResponse):
    """Why an attempt failed."""

    traceback: Annotated[
        str | None,
        Field(
            description="The last part of the traceback of a Python handler, with what looks like a secret redacted; "
            "only for the last failed attempt, null for others."
        ),
    ]


class AttemptResponse(TypedDict):
    """An attempt of a task. Most fields are null if its worker was lost."""

    attempt: Annotated[
        int,
        Field(
            description="Number of the attempt. A paused attempt does not count, and a retried task starts again "
            "with 1."
        ),
    ]
    fence: Annotated[int, Field(description="Fence of the attempt; unlike the number, it never repeats.")]
    worker: Annotated[str | None, Field(description="The worker that ran it.")]
    function_version: Annotated[
        str | None,
        Field(
            description="Version of the Lambda function that ran it: the worker's, or that of its package of handlers. "
            "Null for pull workers."
        ),
    ]
    planned_at: Annotated[Instant | None, Field(description="When it was planned to start.")]
    started_at: Annotated[Instant | None, Field(description="When the target was called.")]
    lateness_ms: Annotated[
        int | None, Field(description="How long after its planned start it started, in milliseconds.")
    ]
    duration_ms: Annotated[int | None, Field(description="How long it took, in milliseconds.")]
    outcome: Annotated[AttemptOutcome, Field(description="How it ended.")]
    error: Annotated[
        AttemptErrorResponse | None,
        Field(description="Why it failed; the message can be cut, except that of the last failure."),
    ]
    cost_dollars: Annotated[
        float | None,
        Field(
            description="Estimated cost in US dollars, by assumed public prices: its writes, and its time in a worker."
        ),
    ]


class StepResponse(TypedDict):
    """A step that a handler has done."""

    phase: Annotated[str, Field(description="The phase of the handler; names are unique within it.")]
    name: Annotated[str, Field(description="The name that the handler gave it.")]
    attempt: Annotated[int, Field(description="Number of the attempt that did it.")]
    fence: Annotated[int, Field(description="Fence of that attempt.")]
    finished_at: Annotated[Instant, Field(description="When its function returned.")]
    duration_ms: Annotated[int, Field(description="How long its function took, in milliseconds.")]
    result: Annotated[Any, Field(description="What its function returned, which later attempts get.")]


class StepList(TypedDict):
    """The steps of a task that are done, in the order in which they ended."""

    steps: Annotated[Sequence[StepResponse], Field(description="The steps.")]


class AttemptList(TypedDict):
    """The ended attempts of a task, oldest first."""

    attempts: Sequence[AttemptResponse]


class TaskBatchAccepted(TypedDict):
    """A task of a batch that was created (201), or the one that holds its unique key (200)."""

    status: Literal[200, 201]
    task: TaskSummary


class TaskBatchRejected(TypedDict):
    """A task of a batch that was not created."""

    status: int
    problem: Problem


class TaskBatchResult(TypedDict):
    """The result of each task of a batch, in order."""

    results: Sequence[TaskBatchAccepted | TaskBatchRejected]
    estimate: NotRequired[Estimate]
