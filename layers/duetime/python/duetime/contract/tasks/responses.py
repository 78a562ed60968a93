"""Task responses. Fields without a value are null; list entries have no payload or result."""

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

    keep: Annotated[Literal["body", "all", "none"], Field(description="Which parts of the response are kept.")]
    max_bytes: Annotated[int, Field(description="Maximum size of the body, in bytes.")]
    when_larger: Annotated[
        Literal["fail", "truncate"], Field(description="What happens to a body that is larger than `max_bytes`.")
    ]


class CallBatchResponse(TypedDict):
    """How tasks share calls to an endpoint."""

    max_size: Annotated[int, Field(description="Maximum number of tasks in one call.")]
    max_wait_seconds: Annotated[float, Field(description="How long the first task may wait for other tasks.")]


class HttpTargetResponse(TypedDict):
    """An HTTP endpoint. Request fields that were not set are absent."""

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
    query: Annotated[NotRequired[dict[str, str]], Field(description="Query parameters added to the URL.")]
    body: Annotated[NotRequired[RequestBodyResponse], Field(description="Body of the request.")]
    success: Annotated[NotRequired[Sequence[int]], Field(description="Statuses that mean success.")]
    auth: Annotated[NotRequired[RequestAuthResponse], Field(description="Authentication of the request.")]
    response: Annotated[NotRequired[ResponseOptionsResponse], Field(description="Parts of the response to keep.")]
    batch: Annotated[NotRequired[CallBatchResponse], Field(description="How tasks share calls.")]


class CallbackTargetResponse(TypedDict):
    """The callback URL of another task; this task's name is the other task's id."""

    kind: Literal["callback"]
    url: Annotated[str, Field(description="Where the outcome is posted.")]


class PullTargetResponse(TypedDict):
    """Pull workers, which lease the tasks of this type."""

    kind: Literal["pull"]


class DefinitionRunResponse(TypedDict):
    """The run of a topology definition."""

    name: str
    version: Annotated[
        int | None,
        Field(description="Version of the definition; null in a schedule that always runs the latest version."),
    ]
    parameters: Annotated[dict[str, Any], Field(description="Values of the definition's parameters.")]


class TopologyTargetResponse(TypedDict):
    """A topology, whose graph is the payload."""

    kind: Literal["topology"]
    definition: Annotated[
        NotRequired[DefinitionRunResponse],
        Field(description="The definition that the topology is a run of; absent if there is none."),
    ]


class ApprovalTargetResponse(TypedDict):
    """A person who approves or rejects the task."""

    kind: Literal["approval"]
    timeout_seconds: Annotated[int, Field(description="How long the task waits after its due time.")]
    on_timeout: Annotated[
        Literal["fail", "reject", "approve"], Field(description="What happens if nobody decides in time.")
    ]


class EventTargetResponse(TypedDict):
    """An event that the task waits for."""

    kind: Literal["wait_for_event"]
    event: Annotated[str, Field(description="Name of the event.")]
    key: Annotated[str, Field(description="Distinguishes events with the same name; empty for no key.")]
    timeout_seconds: Annotated[int, Field(description="How long the task waits after its due time.")]
    lookback_seconds: Annotated[
        int, Field(description="How long before the task's creation the signal may have been sent.")
    ]
    when: Annotated[str | None, Field(description="Condition on the signal; null for any signal.")]


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
    wait: Annotated[bool, Field(description="Whether the outcome is the end of the execution or, if false, its start.")]


class EcsTargetResponse(TypedDict):
    """An ECS task definition."""

    kind: Literal["ecs"]
    arn: str
    cluster: str
    container: str
    parameters: Annotated[dict[str, Any], Field(description="Additional fields of the request `RunTask`.")]


class BatchTargetResponse(TypedDict):
    """A Batch job definition."""

    kind: Literal["batch"]
    arn: str
    queue: str
    parameters: Annotated[dict[str, Any], Field(description="Additional fields of the request `SubmitJob`.")]


class JobTargetResponse(TypedDict):
    """A CodeBuild project or a Glue job."""

    kind: Literal["codebuild", "glue"]
    arn: str
    parameters: Annotated[
        dict[str, Any], Field(description="Additional fields of the `StartBuild` or `StartJobRun` request.")
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
        Field(
            description="How long after the start of the first attempt, or after a user's retry, another attempt can "
            "start; null for no limit."
        ),
    ]


class TaskLockResponse(TypedDict):
    """A lock that a task holds while it runs."""

    key: str
    mode: LockMode
    max_holders: Annotated[
        int | None,
        Field(
            description="Maximum number of holders; null for a shared lock without its own limit (at most "
            f"{MAX_LOCK_HOLDERS})."
        ),
    ]
    scope: LockScope
    wait_seconds: Annotated[
        int | None, Field(description="How long an attempt can wait for the lock; null for no limit.")
    ]


class TaskRateResponse(TypedDict):
    """How often attempts of tasks with the same key can start."""

    key: str
    limit: int
    per_seconds: int
    burst: int


class AfterOccurrenceResponse(TypedDict):
    """An occurrence of a schedule that a task waits for."""

    schedule: Annotated[str, Field(description="Name of the schedule.")]
    occurrence: Annotated[Instant, Field(description="The scheduled time of the occurrence.")]
    task_id: Annotated[str | None, Field(description="The occurrence's task; null while unknown.")]


class TaskDependenciesResponse(TypedDict, total=False):
    """The dependencies of a task."""

    after: Annotated[
        Sequence[str | AfterOccurrenceResponse],
        Field(description="The tasks that must end before this task starts; absent without dependencies."),
    ]
    trigger_rule: Annotated[TriggerRule, Field(description="How the tasks in `after` must end for this task to run.")]


class UniqueResponse(TypedDict):
    """The unique key of a task, and how other creations with the key are handled."""

    key: str
    until: Until
    on_conflict: OnConflict


class DebounceResponse(TypedDict):
    """A debounced task is delayed by other creations with the same key."""

    key: str
    seconds: int
    max_seconds: Annotated[
        int | None, Field(description="Longest total delay since the task's creation; null for no limit.")
    ]


class OrderKeyResponse(TypedDict):
    """An owner's tasks with the same key run one after another, in creation order."""

    key: str
    on_failure: AfterFailure


class NotifyOnResponse(TypedDict):
    """Notices about a final failure, a late start or a long run."""

    to: Annotated[str, Field(description="Where notices are sent: a URL, or an ARN.")]
    failed: bool
    late_seconds: Annotated[
        int | None, Field(description="After how many seconds a late start is reported; null if it is not reported.")
    ]
    running_seconds: Annotated[
        int | None, Field(description="After how many seconds a long run is reported; null if it is not reported.")
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
        TaskLockResponse | None,
        Field(description="The lock that the task needs while it runs; null for no lock or several locks."),
    ]
    locks: Annotated[
        NotRequired[Sequence[TaskLockResponse]],
        Field(description="The locks that the task needs while it runs, if there are several; otherwise absent."),
    ]
    rate: TaskRateResponse | None
    callback_url: Annotated[str | None, Field(description="URL that receives the outcome; null if there is none.")]
    notify_on: NotifyOnResponse | None
    expires_seconds: Annotated[
        int | None, Field(description="How long after the due time the first attempt can start; null for no limit.")
    ]
    fair_key: Annotated[
        NotRequired[str], Field(description="Key for sharing workers fairly with other keys; absent if there is none.")
    ]
    fair_weight: Annotated[NotRequired[int], Field(description="Weight of `fair_key`; absent if the weight is 1.")]


Instant = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


class CostLineResponse(TypedDict):
    """One item of a cost estimate."""

    part: Annotated[str, Field(description="The billed item.")]
    quantity: Annotated[float, Field(description="Quantity used.")]
    unit: Annotated[str, Field(description="Unit of the quantity.")]
    dollars: Annotated[float, Field(description="Cost of the item, in US dollars.")]


class CostEstimateResponse(TypedDict):
    """The cost of tasks at assumed public prices, if each task succeeds on its first attempt."""

    dollars: Annotated[float, Field(description="The sum of all items, in US dollars.")]
    tasks: Annotated[int, Field(description="How many tasks are counted, including callbacks and topology nodes.")]
    days: Annotated[int | None, Field(description="For a schedule, the number of counted days; otherwise null.")]
    lines: Annotated[Sequence[CostLineResponse], Field(description="The costs, item by item.")]
    left_out: Annotated[Sequence[str], Field(description="Parts of the request that cannot be estimated.")]
    region: Annotated[
        str,
        Field(description="The region of the prices: `us-east-1` if the price table lacks the deployment's region."),
    ]
    prices_as_of: Annotated[str, Field(description="Date of the price table.")]


Estimate = Annotated[
    CostEstimateResponse, Field(description="Estimated cost, in responses to a creation with `estimate`.")
]


class TaskErrorResponse(TypedDict):
    """Why the last attempt failed."""

    type: Annotated[str, Field(description="Type of the error.")]
    message: str


class TaskProgressResponse(TypedDict):
    """The progress that the latest attempt has reported."""

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
    reason: Annotated[
        str | None,
        Field(
            description="Why the topology cancelled the task, or `rollback_failed` if its rollback failed for good; "
            "otherwise null."
        ),
    ]


class JobResponse(TypedDict):
    """The job that AWS runs for a task."""

    arn: str
    console_url: Annotated[str, Field(description="The job's page in the AWS console, which links to its logs.")]


class LeaseResponse(TypedDict):
    """The lease of the worker that runs the task."""

    worker: str
    expires_at: Instant


class WaitingForResponse(TypedDict):
    """Why a task waits, apart from its due time."""

    reason: WaitReason
    text: Annotated[str, Field(description="Human-readable description, such as `lock db-17`.")]


class ScheduleReferenceResponse(TypedDict):
    """The schedule that created a task."""

    name: Annotated[str, Field(description="Name of the schedule.")]
    revision: Annotated[int, Field(description="Revision of the schedule that created the task.")]
    scheduled_at: Annotated[Instant, Field(description="The scheduled time of the run, before jitter and calendars.")]
    previous_at: Annotated[Instant | None, Field(description="The schedule's previous time; null if there is none.")]
    next_at: Annotated[Instant | None, Field(description="The schedule's next time; null if there is none.")]
    cause: Annotated[Cause, Field(description="Why the schedule created the task.")]


class _Identity(TypedDict):
    id: Annotated[str, Field(description="A ULID; ids sort by the due time at creation.")]
    state: State
    type: str


class TaskSummary(_Identity, TaskOptionsResponse, TaskDependenciesResponse):
    """A task, as shown in lists."""

    target: TargetResponse
    unique: Annotated[
        UniqueResponse | None, Field(description="The task's unique key; null for no key, or with `debounce`.")
    ]
    debounce: Annotated[
        DebounceResponse | None, Field(description="How other creations delay the task; null for no debouncing.")
    ]
    order: Annotated[
        OrderKeyResponse | None,
        Field(description="Key whose earlier tasks must end before this task starts; null if there is none."),
    ]
    due_at: Annotated[Instant, Field(description="When the task is due.")]
    expires_at: Annotated[
        Instant | None,
        Field(description="The latest time at which the first attempt can start; null for no limit, or if unknown."),
    ]
    next_at: Annotated[
        Instant | None, Field(description="When the scheduler checks the task next; null once the task has ended.")
    ]
    created_at: Instant
    started_at: Annotated[Instant | None, Field(description="When the first attempt started; null until then.")]
    finished_at: Annotated[
        Instant | None,
        Field(description="When the outcome was stored and all follow-up work was done; null until then."),
    ]
    attempt: Annotated[int, Field(description="Number of attempts that have started.")]
    fence: Annotated[
        int, Field(description="Fence that grows with every attempt, so that a target can reject an outdated attempt.")
    ]
    lease: Annotated[
        LeaseResponse | None,
        Field(description="The lease of the current worker; null if there is none."),
    ]
    awaiting_notification: Annotated[
        bool, Field(description="Whether the target has accepted the work and will report the outcome later.")
    ]
    job: Annotated[
        JobResponse | None,
        Field(description="The current or latest job that AWS ran for the task; null if the target starts no jobs."),
    ]
    requested_action: Annotated[
        RequestedAction | None,
        Field(description="Action that is requested of the running attempt; null if there is none."),
    ]
    waiting_for: Annotated[
        WaitingForResponse | None,
        Field(description="Why the latest check started no attempt; null if the task only waits for its due time."),
    ]
    schedule: Annotated[
        ScheduleReferenceResponse | None,
        Field(description="The schedule that created the task or its topology; null if there is none."),
    ]
    topology: Annotated[
        TopologyReferenceResponse | None,
        Field(description="The topology that the task is a node of; null if it is not a node."),
    ]
    parent_task_id: Annotated[str | None, Field(description="The task that started this task; null if there is none.")]
    progress: TaskProgressResponse | None
    error: TaskErrorResponse | None
    lateness_ms: Annotated[
        int | None,
        Field(
            description="How long after the due time the first attempt started, in milliseconds; null before the "
            "start. The delay counts from the task's creation (except for a schedule's run), update or resumption if "
            "that is later than the due time."
        ),
    ]
    cost_dollars: Annotated[
        float,
        Field(
            description="Estimated cost so far in US dollars, at assumed public prices: the writes for the creation "
            "and the latest five attempts, and the worker time of these attempts."
        ),
    ]
    traceparent: Annotated[
        str | None,
        Field(description="W3C trace context of the request that created the task; null if the request had none."),
    ]
    version: Annotated[int, Field(description="Version that grows with every write and is part of the ETag.")]


class CancelledChildrenResponse(TypedDict):
    """Effect of a cancellation on the tasks that the cancelled task started."""

    cancelled: Annotated[int, Field(description="How many tasks were cancelled.")]
    stopping: Annotated[int, Field(description="How many running tasks were asked to stop.")]
    running: Annotated[int, Field(description="How many running tasks were left alone because `force` is not set.")]
    has_more: Annotated[bool, Field(description="Whether the request must be repeated to cancel the rest.")]


class TaskResponse(TaskSummary):
    """A task, with its group, its payload and its result."""

    group: Annotated[
        GroupReferenceResponse | None,
        Field(description="The group that the task is a member of; null if there is none."),
    ]
    completes_group: Annotated[
        str | None, Field(description="Id of the group whose completion task this is; null if there is none.")
    ]
    kept_until: Annotated[
        Instant | None,
        Field(
            description="Until when the task can be read; null before its end, and for a node that its topology still "
            "needs."
        ),
    ]
    payload: Any
    result: Annotated[Any, Field(description="What the target returned: any JSON; null before the task succeeds.")]
    content_expired: Annotated[
        Sequence[Literal["payload", "result"]],
        Field(description="Which of `payload` and `result` are null because they were large and have expired."),
    ]
    estimate: NotRequired[Estimate]
    children: Annotated[
        NotRequired[CancelledChildrenResponse],
        Field(description="Effect on the task's children, in responses to a cancellation with `include_children`."),
    ]


class TaskQueryResult(TypedDict):
    """The response of a task's endpoint to a query."""

    status: Annotated[int, Field(description="HTTP status of the response.")]
    body: Annotated[
        Any, Field(description="Body of the response: JSON, or other text as a string; null for an empty body.")
    ]


class ListedTask(TaskSummary):
    """A task in a list; content is included if the list was requested with `expand`."""

    payload: NotRequired[Annotated[Any, Field(description="The task's payload, with `expand=payload`.")]]
    result: NotRequired[
        Annotated[
            Any, Field(description="What the target returned, with `expand=result`; null before the task succeeds.")
        ]
    ]
    content_expired: NotRequired[
        Annotated[
            Sequence[Literal["payload", "result"]],
            Field(description="With `expand`: which contents are null because they were large and have expired."),
        ]
    ]


class TaskCount(TypedDict):
    """The number of tasks that match the filters of a list."""

    tasks: Annotated[
        int,
        Field(
            description="Number of matching tasks, or of matches among the first examined tasks if `is_exact` is false."
        ),
    ]
    is_exact: Annotated[bool, Field(description="Whether all tasks that may match were examined.")]
    cost_dollars: Annotated[float, Field(description="Estimated cost of the matching tasks so far, at assumed prices.")]


class AppliedList(TypedDict):
    """All filters that apply to a list. There are no implied filters, not even a time range."""

    filters: Annotated[Mapping[str, Sequence[str]], Field(description="The filters of the request, by parameter name.")]
    order: Annotated[Literal["asc", "desc"], Field(description="Earliest first or latest first.")]
    order_by: Annotated[
        Literal["due_at", "finished_at"],
        Field(description="Whether the list is ordered by due time at creation, or by end time."),
    ]
    limit: Annotated[int, Field(description="Maximum number of entries on the page.")]
    examined: Annotated[int, Field(description="How many of your tasks were read for this page.")]
    examined_to: Annotated[
        Instant | None,
        Field(description="Time (see `order_by`) of the last task that was read; null if no tasks are left to read."),
    ]
    last_change_at: Annotated[
        Instant | None,
        Field(
            description="Time of the latest change that the lists contain, to within ten seconds: lists lag a few "
            "seconds behind changes to your tasks. The time is the same while nothing changes. Null if the page was "
            "read from the tasks themselves."
        ),
    ]
    count: Annotated[TaskCount | None, Field(description="How many tasks match; null unless `count` was requested.")]


class TaskPage(TypedDict):
    """A page of tasks."""

    tasks: Sequence[ListedTask]
    applied: Annotated[AppliedList, Field(description="The filters of the list.")]
    next_token: Annotated[
        str | None, Field(description="Token of the next page; null on the last page. A page can be short or empty.")
    ]


class AttemptErrorResponse(TaskErrorResponse):
    """Why an attempt failed."""

    traceback: Annotated[
        str | None,
        Field(
            description="The end of a Python handler's traceback, with apparent secrets redacted; only for the last "
            "failed attempt, otherwise null."
        ),
    ]


class AttemptResponse(TypedDict):
    """An attempt of a task. Most fields are null if the worker was lost."""

    attempt: Annotated[
        int,
        Field(description="Number of the attempt. Paused attempts do not count, and a retried task starts again at 1."),
    ]
    fence: Annotated[int, Field(description="Fence of the attempt, which, unlike the number, is never used twice.")]
    worker: Annotated[str | None, Field(description="The worker that ran the attempt.")]
    function_version: Annotated[
        str | None,
        Field(
            description="Version of the Lambda function that ran the attempt: the worker, or its handler package. Null "
            "for pull workers."
        ),
    ]
    planned_at: Annotated[Instant | None, Field(description="Planned start of the attempt.")]
    started_at: Annotated[Instant | None, Field(description="When the target was called.")]
    lateness_ms: Annotated[int | None, Field(description="Delay between planned and actual start, in milliseconds.")]
    duration_ms: Annotated[int | None, Field(description="Duration of the attempt, in milliseconds.")]
    outcome: Annotated[AttemptOutcome, Field(description="How the attempt ended.")]
    error: Annotated[
        AttemptErrorResponse | None,
        Field(description="Why the attempt failed; the message may be truncated, except for the last failure."),
    ]
    cost_dollars: Annotated[
        float | None,
        Field(description="Estimated cost in US dollars, at assumed public prices: writes and worker time."),
    ]


class StepResponse(TypedDict):
    """A completed step of a handler."""

    phase: Annotated[str, Field(description="The handler's phase; step names are unique within a phase.")]
    name: Annotated[str, Field(description="The step's name, chosen by the handler.")]
    attempt: Annotated[int, Field(description="Number of the attempt that ran the step.")]
    fence: Annotated[int, Field(description="Fence of that attempt.")]
    finished_at: Annotated[Instant, Field(description="When the step's function returned.")]
    duration_ms: Annotated[int, Field(description="Duration of the step's function, in milliseconds.")]
    result: Annotated[Any, Field(description="Return value of the step's function, which later attempts reuse.")]


class StepList(TypedDict):
    """The completed steps of a task, in the order of completion."""

    steps: Annotated[Sequence[StepResponse], Field(description="The steps.")]


class AttemptList(TypedDict):
    """The ended attempts of a task, oldest first."""

    attempts: Sequence[AttemptResponse]


class TaskBatchAccepted(TypedDict):
    """A task created by a batch (201), or the existing task that holds its unique key (200)."""

    status: Literal[200, 201]
    task: TaskSummary


class TaskBatchRejected(TypedDict):
    """A task of a batch that was not created."""

    status: int
    problem: Problem


class TaskBatchResult(TypedDict):
    """The results of a batch's tasks, in the order of the tasks."""

    results: Sequence[TaskBatchAccepted | TaskBatchRejected]
    estimate: NotRequired[Estimate]
