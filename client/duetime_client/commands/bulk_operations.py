"""`duetime bulk`: list, show and cancel bulk operations."""

from collections.abc import Iterable
from typing import Annotated

import typer

from duetime_client.bulk_operations import BulkOperation
from duetime_client.client import Client
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.tables import Column, show_table

app = CommandGroup(
    help="Follow and stop bulk operations; they change all tasks that match a filter.", no_args_is_help=True
)
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the operation.")]


@app.command("list")
@examples("duetime bulk list")
def list_operations(call: Call) -> None:
    """List the latest operations, newest first; with --json, as one array."""
    with call.client() as client:
        found = client.bulk_operations.list()
    call.show_all(found, show_operations)


@app.command()
@examples("duetime bulk show ID --watch")
def show(
    call: Call,
    operation_id: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the operation until it has ended.")] = False,
) -> None:
    """Show the progress of an operation; exit code 1 if it was cancelled."""
    with call.client() as client:
        operation = watched(client, operation_id) if watch else client.bulk_operations.get(operation_id)
    call.show(operation, show_one)
    if operation.state == "cancelled":
        raise typer.Exit(1)


@app.command()
@examples("duetime bulk cancel ID")
def cancel(call: Call, operation_id: Id) -> None:
    """Stop an operation; changes already made are kept."""
    with call.client() as client:
        operation = client.bulk_operations.cancel(operation_id)
    call.show(operation, show_one)


def watched(client: Client, operation_id: str) -> BulkOperation:
    """Follow an operation until it has ended, with a progress bar on the error stream."""
    from duetime_client.commands.progress_bars import counting_bar  # noqa: PLC0415 - see that module

    with counting_bar() as progress:
        bar = progress.add_task("")
        for operation in client.bulk_operations.follow(operation_id):
            total = operation.matched if operation.topology_id else None
            progress.update(bar, total=total, completed=operation.affected, description=operation.kind)
    return operation


def show_one(operation: BulkOperation, clock: Clock) -> None:
    """Print one operation as a table, with the reasons for rejections."""
    show_operations([operation], clock)
    for code, count in sorted(operation.refused.items()):
        console().print(f"{count} rejected: {code}", style="yellow")
    if operation.reason:
        console().print(printable(operation.reason))


def show_operations(operations: Iterable[BulkOperation], clock: Clock) -> None:
    """Print operations as a table."""
    columns: list[Column[BulkOperation]] = [
        Column("id", lambda each: each.id),
        Column("kind", lambda each: each.kind),
        Column("state", lambda each: each.state),
        Column("started", lambda each: timed(each.created_at, clock, clock.now(), units=1)),
        Column("scanned", lambda each: str(each.examined), right=True),
        Column("matched", lambda each: str(each.matched), right=True),
        Column("affected", lambda each: str(each.affected), right=True),
        Column("rejected", lambda each: str(sum(each.refused.values())), right=True),
    ]
    show_table(operations, columns, "no bulk operations")
