"""The options of the commands on tasks, each described once."""

from enum import StrEnum
from typing import Annotated

import typer

from duetime_client.task_fields import Priority


class HttpPhase(StrEnum):
    """What an endpoint may offer besides `run`."""

    PREPARE = "prepare"
    CLEAN = "clean"
    ROLLBACK = "rollback"


class HttpQuery(StrEnum):
    """What an endpoint may be asked about a task."""

    STATUS = "status"
    PROGRESS = "progress"
    SUMMARY = "summary"


TaskId = Annotated[str, typer.Argument(metavar="ID", help="Id of the task.")]
Payload = Annotated[
    str | None, typer.Option(metavar="JSON", help="What the task is given: JSON, @file, or - for standard input.")
]
At = Annotated[str | None, typer.Option(metavar="TIME", help="When it is due, ISO 8601; local time if without a zone.")]
In = Annotated[str | None, typer.Option("--in", metavar="SPAN", help="When it is due, from now: 90, 5m, 1h30m, 250ms.")]
PriorityOption = Annotated[Priority | None, typer.Option("--priority", help="Which of the due tasks goes first.")]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="A name to find it by.")]
Tag = Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="A tag; may be repeated.")]
HttpUrl = Annotated[str | None, typer.Option(metavar="URL", help="Call this endpoint instead of a Python handler.")]
Arn = Annotated[
    str | None,
    typer.Option("--arn", metavar="ARN", help="Call this Lambda function, SQS queue, SNS topic, bus or state machine."),
]
Async = Annotated[
    bool, typer.Option("--async", help="Do not wait for the Lambda function: it notifies of its end. Needs --arn.")
]
DetailType = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Of the event on the bus; without it the task's type. Needs --arn.")
]
MaxAttempts = Annotated[int | None, typer.Option(metavar="N", help="How often it is tried at most.")]
Timeout = Annotated[int | None, typer.Option(metavar="SECONDS", help="How long one attempt may run.")]
Deadline = Annotated[
    int | None, typer.Option(metavar="SECONDS", help="How long a target that has only accepted the work may take.")
]
Rollback = Annotated[
    bool | None, typer.Option("--rollback/--no-rollback", help="Have a final failure undone by the target.")
]
LockKey = Annotated[
    str | None, typer.Option("--lock", metavar="KEY", help="A lock that it needs for itself while it runs.")
]
LockLimit = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Most tasks that may hold the lock at once. Needs --lock.")
]
HttpPhases = Annotated[
    list[HttpPhase] | None,
    typer.Option("--http-phase", help="What the endpoint offers besides run; may be repeated. Needs --http-url."),
]
HttpQueries = Annotated[
    list[HttpQuery] | None,
    typer.Option("--http-query", help="What the endpoint answers when asked; may be repeated. Needs --http-url."),
]
AllowUnknownType = Annotated[
    bool, typer.Option("--allow-unknown-type", help="Accept a type whose handler a later deployment brings.")
]
CallbackUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Post the outcome here, signed. An empty one takes it back.")
]
AnyTaskId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Id of the task; without it, a filter says which tasks.")
]
FILTER = "Many tasks at once"
OfState = Annotated[
    str | None, typer.Option("--state", metavar="STATE", help="Tasks in this state.", rich_help_panel=FILTER)
]
OfType = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Tasks of this type.", rich_help_panel=FILTER)
]
OfName = Annotated[
    str | None, typer.Option("--of-name", metavar="NAME", help="Tasks of this name.", rich_help_panel=FILTER)
]
OfTag = Annotated[
    list[str] | None,
    typer.Option("--of-tag", metavar="KEY=VALUE", help="Tasks with this tag; may be repeated.", rich_help_panel=FILTER),
]
DueFrom = Annotated[
    str | None, typer.Option(metavar="TIME", help="Tasks due at or after this.", rich_help_panel=FILTER)
]
DueTo = Annotated[str | None, typer.Option(metavar="TIME", help="Tasks due before this.", rich_help_panel=FILTER)]
Every = Annotated[bool, typer.Option("--all", help="All tasks that have not ended.", rich_help_panel=FILTER)]
PerSecond = Annotated[
    float | None,
    typer.Option(metavar="N", min=0.1, max=1_000, help="Most tasks a second.", rich_help_panel=FILTER),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show which tasks are meant.", rich_help_panel=FILTER)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.", rich_help_panel=FILTER)]
Fence = Annotated[int, typer.Option(metavar="N", help="The fence that the attempt was given.")]
IfMatch = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        parser=lambda text: text if '"' in text else f'"{text}"',
        help="Change it only if it is still at this version.",
    ),
]


class Order(StrEnum):
    """Order of a list by due time."""

    ASC = "asc"
    DESC = "desc"
