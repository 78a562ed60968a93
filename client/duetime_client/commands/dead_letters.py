"""`duetime dead-letters`: list, retry, delete."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.filter_actions import Selection, filter_action
from duetime_client.commands.formatting import shown_error, timed
from duetime_client.commands.list_reader import show_list
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.tables import Column, one_line, show_more, show_table
from duetime_client.commands.task_options import AnyTaskId, BulkActionOptions, FilterOptions, LimitOptions, Reason
from duetime_client.commands.task_views import show_task
from duetime_client.task import Task

if TYPE_CHECKING:
    from duetime_client.task_request_fields import DeadLetterFilter

app = CommandGroup(help="List, retry or delete tasks that failed after all retries.", no_args_is_help=True)
OfError = Annotated[
    str | None, typer.Option("--error-type", metavar="TYPE", help="Tasks that failed with an error of this type.")
]


@app.command("list")
@examples("duetime dead-letters list --type report")
def list_dead_letters(call: Call, *, filters: FilterOptions, error: OfError = None, limits: LimitOptions) -> None:
    """List the tasks that failed and are not retried automatically; with --json, as one array."""
    selection = Selection(filters, BulkActionOptions(every=True), error=error)
    task_filter = cast("DeadLetterFilter", selection.filter(call.clock))
    with call.client() as client:
        show_list(call, client, client.dead_letters.list(**task_filter), limits, show_dead_letters)


@app.command()
@examples("duetime dead-letters retry ID", "duetime dead-letters retry --error-type Timeout --per-second 10")
def retry(
    call: Call,
    task_id: AnyTaskId = None,
    *,
    filters: FilterOptions,
    bulk: BulkActionOptions,
    error: OfError = None,
    reason: Reason = "",
) -> None:
    """Run a failed task, or all failed tasks that match a filter, again from the first attempt."""
    selection = Selection(filters, bulk, error=error, reason=reason)
    selection.is_given(task_id)
    with call.client() as client:
        if task_id is None:
            filter_action(
                call,
                selection,
                "retried",
                lambda wanted: client.dead_letters.list(**cast("DeadLetterFilter", wanted)),
                lambda wanted, options: client.tasks.retry_by_filter(cast("DeadLetterFilter", wanted), **options),
            )
            return
        task = client.tasks.retry(task_id, reason=reason)
    call.show(task, show_task)


@app.command()
@examples("duetime dead-letters delete --type report --error-type Timeout --dry-run")
def delete(
    call: Call,
    *,
    filters: FilterOptions,
    bulk: BulkActionOptions,
    error: OfError = None,
    reason: Reason = "",
) -> None:
    """Delete failed tasks with payloads, results and attempts. For one task, use duetime tasks delete ID."""
    selection = Selection(filters, bulk, error=error, reason=reason)
    selection.is_given(None)
    with call.client() as client:
        filter_action(
            call,
            selection,
            "deleted",
            lambda wanted: client.dead_letters.list(**cast("DeadLetterFilter", wanted)),
            lambda wanted, options: client.tasks.delete_by_filter(
                {"state": "failed", **cast("DeadLetterFilter", wanted)}, **options
            ),
        )


def show_dead_letters(tasks: Sequence[Task], clock: Clock, *, more: bool) -> None:
    """Print failed tasks as a table, each with its last error."""
    now = clock.now()
    columns: list[Column[Task]] = [
        Column("id", lambda task: task.id),
        Column("type", lambda task: one_line(task.type), wraps=True),
        Column("failed", lambda task: timed(task.finished_at, clock, now, units=1) if task.finished_at else "soon"),
        Column("attempts", lambda task: str(task.attempt), right=True),
        Column("error", lambda task: one_line(shown_error(task.error)), wraps=True),
    ]
    show_table(tasks, columns, "no dead letters")
    if more:
        show_more(tasks)
