"""`duetime dead-letters`: list, redrive."""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table
from rich.text import Text

from duetime_client.authentication import Authentication
from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Auth, Owner, Url, connected
from duetime_client.commands.console import console, show_json
from duetime_client.commands.filter_actions import Wanted, filter_action
from duetime_client.commands.formatting import timed
from duetime_client.commands.task_options import (
    AnyTaskId,
    DryRun,
    DueFrom,
    DueTo,
    Every,
    OfName,
    OfTag,
    OfType,
    PerSecond,
    Yes,
)
from duetime_client.commands.task_table import one_line
from duetime_client.commands.task_view import show
from duetime_client.task import Task

if TYPE_CHECKING:
    from duetime_client.task_fields import DeadLetterFilter

app = typer.Typer(help="See what gave up, and have it tried again.", no_args_is_help=True)
OfError = Annotated[
    str | None, typer.Option("--error", metavar="CLASS", help="Tasks that failed with an error of this class.")
]
_DEFAULT_LIMIT = 50


@app.command("list")
def list_dead_letters(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    url: Url,
    error: OfError = None,
    task_type: OfType = None,
    of_name: OfName = None,
    of_tag: OfTag = None,
    due_from: DueFrom = None,
    due_to: DueTo = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many tasks at most.")] = _DEFAULT_LIMIT,
    everything: Annotated[bool, typer.Option("--all", help="Every task, however many there are.")] = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """List the tasks that failed and are not tried again by themselves; with --json, one array of them."""
    clock = context.ensure_object(Clock)
    wanted = Wanted(
        state=None,
        task_type=task_type,
        name=of_name,
        tags=of_tag or [],
        due_from=due_from,
        due_to=due_to,
        every=True,
        per_second=None,
        dry_run=False,
        yes=False,
        error=error,
    )
    task_filter = cast("DeadLetterFilter", wanted.filter(clock))
    with connected(context, url, auth, owner) as client:
        # One more than is shown, to know whether there are more.
        tasks = list(islice(client.list_dead_letters(**task_filter), None if everything else limit + 1))
    shown = tasks if everything else tasks[:limit]
    if as_json:
        show_json([task.document for task in shown])
    else:
        show_dead_letters(shown, clock, more=len(tasks) > len(shown))


@app.command()
def redrive(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    task_id: AnyTaskId = None,
    *,
    url: Url,
    error: OfError = None,
    task_type: OfType = None,
    of_name: OfName = None,
    of_tag: OfTag = None,
    due_from: DueFrom = None,
    due_to: DueTo = None,
    every: Every = False,
    per_second: PerSecond = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Have a failed task tried again from its first attempt on, or every failed task that a filter names."""
    clock = context.ensure_object(Clock)
    wanted = Wanted(
        state=None,
        task_type=task_type,
        name=of_name,
        tags=of_tag or [],
        due_from=due_from,
        due_to=due_to,
        every=every,
        per_second=per_second,
        dry_run=dry_run,
        yes=yes,
        error=error,
    )
    wanted.matches(task_id)
    with connected(context, url, auth, owner) as client:
        if task_id is None:
            filter_action(
                lambda task_filter: client.list_dead_letters(**cast("DeadLetterFilter", task_filter)),
                clock,
                wanted,
                "redriven",
                lambda task_filter, options: client.redrive_dead_letters(
                    cast("DeadLetterFilter", task_filter), **options
                ),
                as_json=as_json,
            )
            return
        task = client.retry_task(task_id)
    show(task, clock, as_json=as_json)


def show_dead_letters(tasks: Sequence[Task], clock: Clock, *, more: bool) -> None:
    """Print failed tasks as a table, each with the error it ended with."""
    if not tasks:
        console().print("no dead letters", style="dim")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("type")
    table.add_column("failed", no_wrap=True)
    table.add_column("attempts", justify="right", no_wrap=True)
    table.add_column("error")
    now = clock.now()
    for task in tasks:
        error = f"{task.error.kind}: {task.error.message}" if task.error else ""
        ended = Text("soon") if task.finished_at is None else timed(task.finished_at, clock, now, units=1)
        table.add_row(Text(task.id), one_line(task.type), ended, str(task.attempt), one_line(error))
    console().print(table)
    if more:
        console().print(f"{len(tasks)} shown, there are more: --limit N or --all", style="dim")
