"""The options of the commands on tasks, each described once; those that several commands share, in bundles."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from duetime_client.commands.completions import states
from duetime_client.task_request_fields import Priority


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
    """Order of a list by due time."""

    ASC = "asc"
    DESC = "desc"


class UniqueUntil(StrEnum):
    """How long a task holds its unique key."""

    STARTED = "started"
    ENDED = "ended"


class UniqueConflict(StrEnum):
    """How a creation is handled when another task holds its unique key."""

    KEEP = "keep"
    REPLACE = "replace"
    REFUSE = "refuse"


TARGET, ATTEMPTS, NOTICES, START, REQUEST = "Target", "Attempts", "Notices", "Start", "Request"
"""Panels of options, in the order of the help."""

TaskId = Annotated[str, typer.Argument(metavar="ID", help="Id of the task.")]
AnyTaskId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Id of the task; without it, a filter selects tasks.")
]
TaskType = Annotated[str, typer.Argument(metavar="TYPE", help="Type of the task, which selects its handler.")]
AnyTaskType = Annotated[
    str | None, typer.Argument(metavar="TYPE", help="Type of the task, which selects its handler; default of --file.")
]
AllowUnknownType = Annotated[
    bool,
    typer.Option(
        "--allow-unknown-type", help="Accept a type whose handler is not deployed yet.", rich_help_panel=REQUEST
    ),
]
WithEstimate = Annotated[
    bool,
    typer.Option("--estimate", help="Also show what it will cost, as the API estimates it.", rich_help_panel=REQUEST),
]
Fence = Annotated[int, typer.Option(metavar="N", help="The fence of the attempt.")]
Reason = Annotated[
    str, typer.Option(metavar="TEXT", help="Why; recorded with the task, and shown in its events.", show_default=False)
]
IfMatch = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        parser=lambda text: text if '"' in text else f'"{text}"',
        help="Only if it still has this version.",
        rich_help_panel=REQUEST,
    ),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="A second request with the same key creates nothing.", rich_help_panel=REQUEST),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """Options of a task, shared by `create` and `update` of tasks and of schedules."""

    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="Input of the task: JSON, @file, or - for standard input.")
    ] = None
    priority: Annotated[
        Priority | None, typer.Option("--priority", help="Which of the tasks that are due goes first.")
    ] = None
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the task, for filters.")] = None
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="A tag; may be repeated.")] = None
    arn: Annotated[
        str | None,
        typer.Option(
            metavar="ARN",
            help="Call this Lambda function, SQS queue, SNS topic, bus, state machine or task definition.",
            rich_help_panel=TARGET,
        ),
    ] = None
    notifies: Annotated[
        bool,
        typer.Option(
            "--async",
            help="Invoke the Lambda function asynchronously; it notifies. Needs --arn.",
            rich_help_panel=TARGET,
        ),
    ] = False
    detail_type: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Detail type of the event; default: the task type. Needs --arn.",
            rich_help_panel=TARGET,
        ),
    ] = None
    job: Annotated[
        bool,
        typer.Option(
            "--job",
            help="Wait for the end of the state machine's or durable function's execution. Needs --arn.",
            rich_help_panel=TARGET,
        ),
    ] = False
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Cluster that runs the task definition. Needs --arn.", rich_help_panel=TARGET),
    ] = None
    container: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Container that is given the task, and whose exit code counts. Needs --arn.",
            rich_help_panel=TARGET,
        ),
    ] = None
    job_queue: Annotated[
        str | None,
        typer.Option(metavar="ARN", help="Queue of the Batch job. Needs --arn.", rich_help_panel=TARGET),
    ] = None
    job_parameters: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="Further fields of the request that starts the job. Needs --arn.",
            rich_help_panel=TARGET,
        ),
    ] = None
    pull: Annotated[
        bool, typer.Option("--pull", help="Have your own workers lease it: duetime worker.", rich_help_panel=TARGET)
    ] = False
    topology: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Run the graph of this file (JSON), as duetime topologies run.",
            rich_help_panel=TARGET,
        ),
    ] = None
    definition: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[@VERSION]",
            help="Run this topology definition; without a version, the latest.",
            rich_help_panel=TARGET,
        ),
    ] = None
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter: JSON, or else text; may be repeated. Needs --definition.",
            rich_help_panel=TARGET,
        ),
    ] = None
    approval: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="How long to wait for a decision: duetime tasks approve, reject.",
            rich_help_panel=TARGET,
        ),
    ] = None
    on_timeout: Annotated[
        ApprovalTimeout | None,
        typer.Option(
            help="What happens without a decision in time; default: fail. Needs --approval.",
            rich_help_panel=TARGET,
        ),
    ] = None
    http_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Call this endpoint instead of a Python handler.", rich_help_panel=TARGET),
    ] = None
    http_phase: Annotated[
        list[HttpPhase] | None,
        typer.Option(
            "--http-phase",
            help="A phase of the endpoint besides run; may be repeated. Needs --http-url.",
            rich_help_panel=TARGET,
        ),
    ] = None
    http_query: Annotated[
        list[HttpQuery] | None,
        typer.Option(
            "--http-query",
            help="A query that the endpoint supports; may be repeated. Needs --http-url.",
            rich_help_panel=TARGET,
        ),
    ] = None
    http_method: Annotated[
        HttpMethod | None,
        typer.Option(
            "--http-method",
            help="Send the payload with this method, instead of duetime's own request. Needs --http-url.",
            rich_help_panel=TARGET,
        ),
    ] = None
    http_header: Annotated[
        list[str] | None,
        typer.Option(
            "--http-header",
            metavar="NAME=VALUE",
            help="A header to add; may be repeated. Needs --http-url.",
            rich_help_panel=TARGET,
        ),
    ] = None
    http_auth: Annotated[
        str | None,
        typer.Option(
            metavar="SCHEME=SECRET",
            help="Send a secret of the settings: bearer, basic, oauth_client, or the name of a header. "
            "Needs --http-url.",
            rich_help_panel=TARGET,
        ),
    ] = None
    callback_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="POST the outcome, signed, to this URL; empty: no callback.", rich_help_panel=NOTICES
        ),
    ] = None
    notify_to: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Notify this URL, SNS topic or event bus (ARN) of failures; empty: none.",
            rich_help_panel=NOTICES,
        ),
    ] = None
    notify_failed: Annotated[
        bool | None,
        typer.Option(
            "--notify-failed/--no-notify-failed",
            help="Notify of a final failure (default). Needs --notify-to.",
            rich_help_panel=NOTICES,
        ),
    ] = None
    notify_late: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=60,
            help="Notify if it starts this late, or not at all. Needs --notify-to.",
            rich_help_panel=NOTICES,
        ),
    ] = None
    max_attempts: Annotated[
        int | None, typer.Option(metavar="N", help="Maximum number of attempts.", rich_help_panel=ATTEMPTS)
    ] = None
    timeout: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Time limit of one attempt.", rich_help_panel=ATTEMPTS)
    ] = None
    notify_within: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            help="Time limit of a target that accepts work and notifies later.",
            rich_help_panel=ATTEMPTS,
        ),
    ] = None
    rollback_on_failure: Annotated[
        bool | None,
        typer.Option(
            "--rollback-on-failure/--no-rollback-on-failure",
            help="Have the target undo a final failure.",
            rich_help_panel=ATTEMPTS,
        ),
    ] = None
    expires_seconds: Annotated[
        int | None,
        typer.Option(
            "--expires",
            metavar="SECONDS",
            min=1,
            help="Fail it, with the error Expired, if it has not started this long after its due time.",
            rich_help_panel=START,
        ),
    ] = None
    lock: Annotated[
        str | None, typer.Option(metavar="KEY", help="A lock that the task holds while it runs.", rich_help_panel=START)
    ] = None
    lock_max_holders: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="How many tasks may hold the lock at a time. Needs --lock.",
            rich_help_panel=START,
        ),
    ] = None
    lock_wait: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Fail it, with the error LockWaitExpired, if it has waited this long for the lock. Needs --lock.",
            rich_help_panel=START,
        ),
    ] = None
    rate_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Limit how often attempts of tasks with this key start. Needs --rate-limit.",
            rich_help_panel=START,
        ),
    ] = None
    rate_limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="How many attempts start in the time of --rate-per.", rich_help_panel=START
        ),
    ] = None
    rate_per: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", min=1, help="Default: 1. Needs --rate-key.", rich_help_panel=START),
    ] = None
    rate_burst: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="How many more start at once after a pause. Needs --rate-key.",
            rich_help_panel=START,
        ),
    ] = None
    retry_for: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="No attempt starts later than this after the first one.",
            rich_help_panel=START,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueOptions:
    """What happens if another task has the same key."""

    unique: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Make it the only task of this key.", rich_help_panel=START),
    ] = None
    unique_until: Annotated[
        UniqueUntil | None,
        typer.Option(help="Whether it holds the key until it starts, or has ended (default).", rich_help_panel=START),
    ] = None
    on_conflict: Annotated[
        UniqueConflict | None,
        typer.Option(
            help="If another task holds the key: keep that (default), replace its fields, or refuse this one.",
            rich_help_panel=START,
        ),
    ] = None
    debounce: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Due this long after the latest creation with the key, which replaces its fields.",
            rich_help_panel=START,
        ),
    ] = None
    debounce_max: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Due this long after the first creation at the latest. Needs --debounce.",
            rich_help_panel=START,
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueOptions:
    """When a task is due."""

    due_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Due time, ISO 8601; without a zone, in local time.")
    ] = None
    delay: Annotated[
        str | None, typer.Option("--in", metavar="DURATION", help="Due time from now: 90, 5m, 1h30m, 250ms.")
    ] = None


MANY = "Many tasks"
"""The panel of the options that select many tasks."""
OfState = Annotated[
    str | None,
    typer.Option("--state", metavar="STATE", autocompletion=states, help="Tasks in this state.", rich_help_panel=MANY),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """Selects the tasks that match all given options."""

    task_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Tasks of this type.", rich_help_panel=MANY)
    ] = None
    of_name: Annotated[str | None, typer.Option(metavar="NAME", help="Tasks with this name.", rich_help_panel=MANY)] = (
        None
    )
    of_tag: Annotated[
        list[str] | None,
        typer.Option(
            "--of-tag", metavar="KEY=VALUE", help="Tasks with this tag; may be repeated.", rich_help_panel=MANY
        ),
    ] = None
    due_after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Tasks due at or after this time.", rich_help_panel=MANY)
    ] = None
    due_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Tasks due before this time.", rich_help_panel=MANY)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkActionOptions:
    """Options for changing many tasks."""

    every: Annotated[bool, typer.Option("--all", help="All tasks, without a filter.", rich_help_panel=MANY)] = False
    per_second: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.1, max=1_000, help="How many tasks a second at most.", rich_help_panel=MANY),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show which tasks match, and change nothing.", rich_help_panel=MANY)
    ] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", rich_help_panel=MANY)] = False
