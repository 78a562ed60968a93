"""`duetime schedules backfills`: list, show, create, cancel."""

from typing import Annotated

import typer

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.schedule_options import ScheduleName
from duetime_client.commands.schedule_views import show_backfill, show_backfills
from duetime_client.commands.task_arguments import moment
from duetime_client.commands.task_options import IdempotencyKey, IfMatch
from duetime_client.schedule_models import BackfillOverlap

app = CommandGroup(help="Run the occurrences of past periods; follow or cancel backfills.", no_args_is_help=True)
BackfillId = Annotated[str, typer.Argument(metavar="ID", help="Id of the backfill, from `schedules backfills list`.")]


@app.command("list")
@examples("duetime schedules backfills list nightly")
def list_backfills(call: Call, name: ScheduleName) -> None:
    """List the backfills of a schedule, with their progress; with --json, as one array."""
    with call.client() as client:
        found = client.schedules.list_backfills(name)
    call.show_all(found, show_backfills)


@app.command()
@examples("duetime schedules backfills show nightly ID")
def show(call: Call, name: ScheduleName, backfill_id: BackfillId) -> None:
    """Show one backfill, with its progress."""
    with call.client() as client:
        found = client.schedules.get_backfill(name, backfill_id)
    call.show(found, show_backfill)


@app.command()
@examples("duetime schedules backfills create nightly --after 2026-11-01 --before 2026-11-08")
def create(  # noqa: PLR0913 - a command's options are its parameters
    call: Call,
    name: ScheduleName,
    *,
    after: Annotated[str, typer.Option("--after", metavar="TIME", help="Start of the period.")],
    before: Annotated[
        str, typer.Option("--before", metavar="TIME", help="End of the period (exclusive); must be in the past.")
    ],
    per_minute: Annotated[int | None, typer.Option(metavar="N", min=1, help="Number of tasks per minute.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also run occurrences that already have a run.")] = False,
    overlap: Annotated[
        BackfillOverlap | None, typer.Option(help="buffer_all: each run waits until the schedule's other runs end.")
    ] = None,
    idempotency_key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> None:
    """Run the occurrences of a past period that have no run yet, at a limited number per minute."""
    clock = call.clock
    start, end = moment(after, clock, "--after"), moment(before, clock, "--before")
    with call.client() as client:
        begun = client.schedules.create_backfill(
            *(name, start, end),
            per_minute=per_minute,
            only_missing=False if again else None,
            overlap=overlap,
            idempotency_key=idempotency_key,
            if_match=if_match,
        )
    call.show(begun, show_backfill)


@app.command()
@examples("duetime schedules backfills cancel nightly ID")
def cancel(call: Call, name: ScheduleName, backfill_id: BackfillId) -> None:
    """Cancel a backfill; tasks that it has already created still run."""
    with call.client() as client:
        cancelled = client.schedules.cancel_backfill(name, backfill_id)
    call.show(cancelled, show_backfill)
