"""The options of the commands on tasks, each described once; bundles have the options of several commands."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from duetime_client.commands.completions import states
from duetime_client.task_request_fields import Priority
from duetime_common.limits import MAX_PAGE
from duetime_common.payload_codecs import OCTET_STREAM


class HttpPhase(StrEnum):
    """The optional phases of an endpoint, besides `run`."""

    PREPARE = "prepare"
    CLEAN = "clean"
    ROLLBACK = "rollback"


class HttpMethod(StrEnum):
    """Methods of a custom request."""

    GET = "GET"
    HEAD = "HEAD"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


class HttpQuery(StrEnum):
    """The queries that an endpoint may support."""

    STATUS = "status"
    PROGRESS = "progress"
    SUMMARY = "summary"


class ApprovalTimeout(StrEnum):
    """What happens to a task whose approval times out."""

    FAIL = "fail"
    REJECT = "reject"
    APPROVE = "approve"


class Order(StrEnum):
    """Direction of a list."""

    ASC = "asc"
    DESC = "desc"


class OrderBy(StrEnum):
    """Time by which a list is ordered."""

    DUE_AT = "due_at"
    FINISHED_AT = "finished_at"


class UniqueUntil(StrEnum):
    """How long a task holds its unique key."""

    STARTED = "started"
    ENDED = "ended"


class UniqueConflict(StrEnum):
    """How a create request is handled when another task holds its unique key."""

    KEEP = "keep"
    REPLACE = "replace"
    REFUSE = "refuse"


TARGET, ATTEMPTS, NOTICES, START, REQUEST, MANY = "Target", "Attempts", "Notices", "Start", "Request", "Many tasks"
"""Panels of options, in the order of the help."""
_target = partial(typer.Option, rich_help_panel=TARGET)
_attempts = partial(typer.Option, rich_help_panel=ATTEMPTS)
_notices = partial(typer.Option, rich_help_panel=NOTICES)
_start = partial(typer.Option, rich_help_panel=START)
_request = partial(typer.Option, rich_help_panel=REQUEST)
_many = partial(typer.Option, rich_help_panel=MANY)

TaskId = Annotated[str, typer.Argument(metavar="ID", help="Id of the task.")]
AnyTaskId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Id of the task; without it, a filter selects tasks.")
]
TaskType = Annotated[str, typer.Argument(metavar="TYPE", help="Type of the task, which selects its handler.")]
AnyTaskType = Annotated[
    str | None, typer.Argument(metavar="TYPE", help="Type of the task, which selects its handler; default of --file.")
]
AllowUnknownType = Annotated[
    bool, _request("--allow-unknown-type", help="Accept a type whose handler is not deployed yet.")
]
WithEstimate = Annotated[bool, _request("--estimate", help="Also show the API's estimate of its cost.")]
Fence = Annotated[int, typer.Option(metavar="N", help="The fence of the attempt.")]
Reason = Annotated[
    str,
    typer.Option(metavar="TEXT", help="Reason; recorded with the task and shown in its events.", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
IfMatch = Annotated[
    str | None,
    _request(
        metavar="VERSION",
        parser=lambda text: text if '"' in text else f'"{text}"',
        help="Act only if this version is still current.",
    ),
]
IdempotencyKey = Annotated[
    str | None, _request(metavar="KEY", help="Idempotency key: a second request with the same key creates nothing.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """Options of a task, shared by `create` and `update` of tasks and of schedules."""

    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="Input of the task: JSON, @file, or - for standard input.")
    ] = None
    payload_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Input of the task: the bytes of this file.", show_default=False)
    ] = None
    content_type: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help=f"Content type of --payload-file; default: {OCTET_STREAM}."),
    ] = None
    priority: Annotated[Priority | None, typer.Option("--priority", help="Which of the due tasks starts first.")] = None
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the task, for filters.")] = None
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="A tag; may be repeated.")] = None
    arn: Annotated[
        str | None,
        _target(
            metavar="ARN",
            help="Call this Lambda function, SQS queue, SNS topic, bus, state machine or task definition.",
        ),
    ] = None
    notifies: Annotated[
        bool, _target("--async", help="Invoke the Lambda function asynchronously; the function notifies. Needs --arn.")
    ] = False
    detail_type: Annotated[
        str | None, _target(metavar="TEXT", help="Detail type of the event; default: the task type. Needs --arn.")
    ] = None
    job: Annotated[
        bool,
        _target("--job", help="Wait for the end of the state machine's or durable function's execution. Needs --arn."),
    ] = False
    cluster: Annotated[
        str | None, _target(metavar="ARN", help="Cluster that runs the task definition. Needs --arn.")
    ] = None
    container: Annotated[
        str | None,
        _target(metavar="NAME", help="Container that gets the task, and whose exit code counts. Needs --arn."),
    ] = None
    job_queue: Annotated[str | None, _target(metavar="ARN", help="Queue of the Batch job. Needs --arn.")] = None
    job_parameters: Annotated[
        str | None, _target(metavar="JSON", help="Other fields of the request that starts the job. Needs --arn.")
    ] = None
    pull: Annotated[bool, _target("--pull", help="Let your own workers (duetime worker) lease the task.")] = False
    topology: Annotated[
        Path | None,
        _target(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Run the graph in this JSON file, like duetime topologies run.",
        ),
    ] = None
    definition: Annotated[
        str | None,
        _target(metavar="NAME[@VERSION]", help="Run this topology definition, by default its latest version."),
    ] = None
    parameter: Annotated[
        list[str] | None,
        _target(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter: JSON, or else text; may be repeated. Needs --definition.",
        ),
    ] = None
    approval: Annotated[
        int | None,
        _target(metavar="SECONDS", min=1, help="How long to wait for a decision (duetime tasks approve or reject)."),
    ] = None
    on_timeout: Annotated[
        ApprovalTimeout | None,
        _target(help="What happens if nobody decides in time; default: fail. Needs --approval."),
    ] = None
    event: Annotated[str | None, _target(metavar="NAME", help="Wait for this event (duetime signals send).")] = None
    event_key: Annotated[str | None, _target(metavar="KEY", help="Key of the event. Needs --event.")] = None
    event_timeout: Annotated[
        int | None,
        _target(metavar="SECONDS", min=1, max=2_592_000, help="How long to wait; default: a week. Needs --event."),
    ] = None
    event_lookback: Annotated[
        int | None,
        _target(
            metavar="SECONDS",
            min=0,
            help="Also accept a signal that was sent up to this long before the task is created. Needs --event.",
        ),
    ] = None
    event_when: Annotated[
        str | None,
        _target(metavar="JMESPATH", help='Condition on the signal, such as "payload.amount > `10`". Needs --event.'),
    ] = None
    http_url: Annotated[str | None, _target(metavar="URL", help="Call this endpoint instead of a Python handler.")] = (
        None
    )
    http_phase: Annotated[
        list[HttpPhase] | None,
        _target("--http-phase", help="A phase of the endpoint besides run; may be repeated. Needs --http-url."),
    ] = None
    http_query: Annotated[
        list[HttpQuery] | None,
        _target("--http-query", help="A query that the endpoint supports; may be repeated. Needs --http-url."),
    ] = None
    http_method: Annotated[
        HttpMethod | None,
        _target(
            "--http-method",
            help="Send the payload with this method, instead of duetime's own request. Needs --http-url.",
        ),
    ] = None
    http_header: Annotated[
        list[str] | None,
        _target("--http-header", metavar="NAME=VALUE", help="A header to add; may be repeated. Needs --http-url."),
    ] = None
    http_auth: Annotated[
        str | None,
        _target(
            metavar="SCHEME=SECRET",
            help="Send a secret of the settings: bearer, basic, oauth_client, or the name of a header. "
            "Needs --http-url.",
        ),
    ] = None
    callback_url: Annotated[
        str | None,
        _notices(metavar="URL", help="POST the signed outcome to this URL; an empty value means no callback."),
    ] = None
    notify_to: Annotated[
        str | None,
        _notices(
            metavar="ADDRESS",
            help="Notify this URL, SNS topic or event bus (ARN) of failures; an empty value means no notices.",
        ),
    ] = None
    notify_failed: Annotated[
        bool | None,
        _notices("--notify-failed/--no-notify-failed", help="Notify of a final failure (default). Needs --notify-to."),
    ] = None
    notify_late: Annotated[
        int | None,
        _notices(
            metavar="SECONDS", min=60, help="Notify if the task starts this late, or not at all. Needs --notify-to."
        ),
    ] = None
    notify_running: Annotated[
        int | None,
        _notices(metavar="SECONDS", min=1, help="Notify if an attempt runs longer than this. Needs --notify-to."),
    ] = None
    max_attempts: Annotated[int | None, _attempts(metavar="N", help="Maximum number of attempts.")] = None
    timeout: Annotated[int | None, _attempts(metavar="SECONDS", help="Time limit of one attempt.")] = None
    notify_within: Annotated[
        int | None, _attempts(metavar="SECONDS", help="Time limit of a target that accepts work and notifies later.")
    ] = None
    rollback_on_failure: Annotated[
        bool | None,
        _attempts(
            "--rollback-on-failure/--no-rollback-on-failure",
            help="After a final failure, ask the target to undo the task.",
        ),
    ] = None
    expires_seconds: Annotated[
        int | None,
        _start(
            "--expires",
            metavar="SECONDS",
            min=1,
            help="Fail the task with the error Expired if it has not started this long after its due time.",
        ),
    ] = None
    fair_key: Annotated[
        str | None,
        _start(
            "--fair-key",
            metavar="KEY",
            help="Tasks with other keys do not wait behind tasks with this key; an empty value means no key.",
        ),
    ] = None
    fair_weight: Annotated[
        int | None,
        _start("--fair-weight", metavar="N", min=1, help="Share of the key, from 1 to 5, compared with other keys."),
    ] = None
    lock: Annotated[
        list[str] | None,
        _start(metavar="KEY[=shared]", help="A lock that the task holds while it runs; may be repeated."),
    ] = None
    lock_max_holders: Annotated[
        int | None, _start(metavar="N", min=1, help="How many tasks may hold the lock at a time. Needs --lock.")
    ] = None
    lock_wait: Annotated[
        int | None,
        _start(
            metavar="SECONDS",
            min=1,
            help="Fail the task with the error LockWaitExpired if it has waited this long for a lock. Needs --lock.",
        ),
    ] = None
    rate_key: Annotated[
        str | None,
        _start(metavar="KEY", help="Limit how often attempts of tasks with this key start. Needs --rate-limit."),
    ] = None
    rate_limit: Annotated[
        int | None, _start(metavar="N", min=1, help="How many attempts may start in each period of --rate-per.")
    ] = None
    rate_per: Annotated[int | None, _start(metavar="SECONDS", min=1, help="Default: 1. Needs --rate-key.")] = None
    rate_burst: Annotated[
        int | None,
        _start(metavar="N", min=0, help="How many more attempts may start at once after a pause. Needs --rate-key."),
    ] = None
    retry_for: Annotated[
        int | None, _start(metavar="SECONDS", min=1, help="No attempt starts later than this after the first attempt.")
    ] = None


class TaskTriggerRule(StrEnum):
    """How other tasks must have ended."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    NONE_FAILED = "none_failed"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueOptions:
    """Relations to other tasks: the group, tasks that must end first, and tasks with the same key."""

    group: Annotated[str | None, _start(metavar="ID", help="Let the task join this group.")] = None
    after: Annotated[
        list[str] | None,
        _start(
            metavar="ID",
            help="Start after this task, or after SCHEDULE@TIME; may be repeated.",
        ),
    ] = None
    trigger_rule: Annotated[
        TaskTriggerRule | None, _start("--rule", help="Trigger rule: how the tasks of --after must have ended.")
    ] = None

    unique: Annotated[str | None, _start(metavar="KEY", help="Allow no other task with this key.")] = None
    unique_until: Annotated[
        UniqueUntil | None, _start(help="Whether the task holds the key until it has started or ended (default).")
    ] = None
    on_conflict: Annotated[
        UniqueConflict | None,
        _start(
            help="If another task holds the key: keep that task (default), replace its fields, or refuse this task."
        ),
    ] = None
    debounce: Annotated[
        int | None,
        _start(
            metavar="SECONDS",
            min=1,
            help="Due this long after the latest creation with the key; each creation replaces the fields.",
        ),
    ] = None
    debounce_max: Annotated[
        int | None,
        _start(metavar="SECONDS", min=1, help="Due at most this long after the first creation. Needs --debounce."),
    ] = None
    order: Annotated[
        str | None, _start(metavar="KEY", help="Run after the outcome of earlier tasks with this key.")
    ] = None
    order_stop: Annotated[
        bool, _start("--order-stop", help="After a final failure, hold the key's next tasks. Needs --order.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DueOptions:
    """When a task is due."""

    due_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Due time, ISO 8601; without a zone, in local time.")
    ] = None
    delay: Annotated[
        str | None, typer.Option("--in", metavar="DURATION", help="Due time from now: 90, 5m, 1h30m, 250ms.")
    ] = None


OfState = Annotated[str | None, _many("--state", metavar="STATE", autocompletion=states, help="Tasks in this state.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """Selects the tasks that match all given options."""

    task_type: Annotated[str | None, _many("--type", metavar="TYPE", help="Tasks of this type.")] = None
    of_name: Annotated[str | None, _many(metavar="NAME", help="Tasks with this name.")] = None
    name_contains: Annotated[
        str | None, _many(metavar="TEXT", help="Tasks whose name contains this text, in any case.")
    ] = None
    error_contains: Annotated[
        str | None,
        _many(metavar="TEXT", help='Tasks whose last error ("type: message") contains this text, in any case.'),
    ] = None
    of_tag: Annotated[
        list[str] | None, _many("--of-tag", metavar="KEY=VALUE", help="Tasks with this tag; may be repeated.")
    ] = None
    due_after: Annotated[str | None, _many(metavar="TIME", help="Tasks due at or after this time.")] = None
    due_before: Annotated[str | None, _many(metavar="TIME", help="Tasks due before this time.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkActionOptions:
    """Options for changing many tasks."""

    every: Annotated[bool, _many("--all", help="All tasks, without a filter.")] = False
    per_second: Annotated[
        float | None, _many(metavar="N", min=0.1, max=1_000, help="Maximum number of tasks per second.")
    ] = None
    dry_run: Annotated[bool, _many("--dry-run", help="Show which tasks match, and change nothing.")] = False
    yes: Annotated[bool, _many("--yes", "-y", help="Do not ask for confirmation.")] = False


OnlyState = Annotated[str | None, typer.Option(metavar="STATE", autocompletion=states, help="Only in this state.")]
OnlyType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only of this type.")]
OnlyName = Annotated[str | None, typer.Option(metavar="NAME", help="Only of this name.")]
OnlyTag = Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="Only with this tag.")]
DueAfter = Annotated[str | None, typer.Option(metavar="TIME", help="Only tasks due at or after this time.")]
DueBefore = Annotated[str | None, typer.Option(metavar="TIME", help="Only due before this.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilterOptions:
    """Which tasks to list, and in which order."""

    state: OnlyState = None
    task_type: OnlyType = None
    name: OnlyName = None
    name_contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only tasks with this text in the name; checks tasks one by one.")
    ] = None
    error_contains: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only tasks with this text in the error; checks tasks one by one."),
    ] = None
    tag: OnlyTag = None
    due_after: DueAfter = None
    due_before: DueBefore = None
    created_after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only tasks created at or after this time.")
    ] = None
    created_before: Annotated[str | None, typer.Option(metavar="TIME", help="Only created before this.")] = None
    finished_after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only tasks finished at or after this time.")
    ] = None
    finished_before: Annotated[str | None, typer.Option(metavar="TIME", help="Only finished before this.")] = None
    schedule: Annotated[str | None, typer.Option(metavar="NAME", help="Only runs of this schedule.")] = None
    parent: Annotated[str | None, typer.Option(metavar="ID", help="Only nodes of this topology.")] = None
    parent_task_id: Annotated[str | None, typer.Option(metavar="ID", help="Only tasks started by this task.")] = None
    group: Annotated[str | None, typer.Option(metavar="ID", help="Only members of this group.")] = None
    include_nodes: Annotated[bool, typer.Option("--include-nodes", help="Also nodes of topologies.")] = False
    order: Annotated[Order | None, typer.Option(help="Earliest or latest first.")] = None
    order_by: Annotated[
        OrderBy | None, typer.Option(help="Sort by due time, or by end (ended tasks only; default with --finished-…).")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """How many entries of a list to show."""

    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of entries to show.")] = 50
    everything: Annotated[bool, typer.Option("--all", help="All entries, without a limit.")] = False

    @property
    def wanted(self) -> int | None:
        """The number of entries to read (`None` for all): one more than shown, to detect whether there are more."""
        return None if self.everything else self.limit + 1

    @property
    def page_size(self) -> int:
        """The number of entries to request at a time."""
        return min(self.wanted or MAX_PAGE, MAX_PAGE)
