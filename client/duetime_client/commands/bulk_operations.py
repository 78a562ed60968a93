"""`duetime bulk`: list, show and cancel bulk operations."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from duetime_client.authentication import Authentication
from duetime_client.bulk_operations import BulkOperation
from duetime_client.client import Client
from duetime_client.commands.cells import timed
from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Auth, Owner, Url, connected
from duetime_client.commands.console import console, printable, show_json

app = typer.Typer(help="See how far requests are that concern many tasks, and stop them.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the operation.")]


@app.command("list")
def list_operations(
    context: typer.Context,
    *,
    url: Url,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """List the latest operations, newest first; with --json, one array of them."""
    with connected(context, url, auth, owner) as client:
        found = client.list_bulk_operations()
    if as_json:
        show_json([operation.document for operation in found])
    elif found:
        show_operations(found, context.ensure_object(Clock))
    else:
        console().print("no bulk operations", style="dim")


@app.command()
def show(
    context: typer.Context,
    operation_id: Id,
    *,
    url: Url,
    watch: Annotated[bool, typer.Option("--watch", help="Show its progress until it has ended.")] = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Show how far an operation is; exit code 1 if it was cancelled."""
    with connected(context, url, auth, owner) as client:
        operation = watched(client, operation_id) if watch else client.get_bulk_operation(operation_id)
    show_one(operation, context.ensure_object(Clock), as_json=as_json)
    if operation.state == "cancelled":
        raise typer.Exit(1)


@app.command()
def cancel(
    context: typer.Context,
    operation_id: Id,
    *,
    url: Url,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Stop an operation where it is; what it has done stays done."""
    with connected(context, url, auth, owner) as client:
        operation = client.cancel_bulk_operation(operation_id)
    show_one(operation, context.ensure_object(Clock), as_json=as_json)


def watched(client: Client, operation_id: str) -> BulkOperation:
    """An operation when it has ended, with a bar on the error stream until then."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        bar = progress.add_task("")
        for operation in client.follow_bulk_operation(operation_id):
            total = operation.matched if operation.topology_id else None
            progress.update(bar, total=total, completed=operation.changed, description=operation.kind)
    return operation


def show_one(operation: BulkOperation, clock: Clock, *, as_json: bool) -> None:
    """Print one operation in the form that was asked for."""
    if as_json:
        show_json(operation.document)
        return
    show_operations([operation], clock)
    for code, count in sorted(operation.refused.items()):
        console().print(f"{count} refused: {code}", style="yellow")
    if operation.reason:
        console().print(printable(operation.reason))


def show_operations(operations: Iterable[BulkOperation], clock: Clock) -> None:
    """Print operations as a table."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("id", "kind", "state", "began"):
        table.add_column(heading, no_wrap=True)
    for heading in ("examined", "matched", "changed", "refused"):
        table.add_column(heading, justify="right", no_wrap=True)
    now = clock.now()
    for each in operations:
        counts = (each.examined, each.matched, each.changed, sum(each.refused.values()))
        began = timed(each.created_at, clock, now, units=1)
        table.add_row(printable(each.id), each.kind, each.state, began, *map(str, counts))
    console().print(table)
