"""The options of the commands on tasks, each described once."""

from enum import StrEnum
from typing import Annotated

import typer

from duetime_client.fields import Priority


class HttpPhase(StrEnum):
    """What an endpoint may offer besides `run`."""

    PREPARE = "prepare"
    CLEAN = "clean"
    ROLLBACK = "rollback"


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
MaxAttempts = Annotated[int | None, typer.Option(metavar="N", help="How often it is tried at most.")]
Timeout = Annotated[int | None, typer.Option(metavar="SECONDS", help="How long one attempt may run.")]
Deadline = Annotated[
    int | None, typer.Option(metavar="SECONDS", help="How long a target that has only accepted the work may take.")
]
Rollback = Annotated[
    bool | None, typer.Option("--rollback/--no-rollback", help="Have a final failure undone by the target.")
]
HttpPhases = Annotated[
    list[HttpPhase] | None,
    typer.Option("--http-phase", help="What the endpoint offers besides run; may be repeated. Needs --http-url."),
]
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
