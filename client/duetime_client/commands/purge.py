"""`duetime purge`: remove all stored data of tasks, or of an owner."""

from dataclasses import astuple
from typing import Annotated, Any

import typer

from duetime_client.client import Client
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.output_streams import console, say
from duetime_client.commands.task_arguments import task_filter
from duetime_client.commands.task_options import FilterOptions, Reason
from duetime_client.purges import Purge

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="The tasks.", show_default=False)]
Owner = Annotated[str | None, typer.Option(metavar="OWNER", help="Only data of this owner; for operators.")]
Everything = Annotated[
    bool, typer.Option("--all", help="All tasks, schedules, calendars, definitions and defaults of the owner.")
]
Cancel = Annotated[bool, typer.Option("--cancel", help="Cancel open tasks, and wait for running tasks to stop.")]
PerSecond = Annotated[
    float | None, typer.Option(metavar="N", min=0.1, max=1_000, help="Maximum number of tasks per second.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@examples(
    "duetime purge ID --reason 'request 17'", "duetime purge --of-tag customer=7", "duetime purge --all --of-owner x"
)
def purge(  # noqa: PLR0913 - a command's options are its parameters
    call: Call,
    task_ids: Ids = None,
    *,
    filters: FilterOptions,
    everything: Everything = False,
    of_owner: Owner = None,
    cancel: Cancel = False,
    per_second: PerSecond = None,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Remove all stored data of tasks, or of an owner; print what is left.

    Exit code 1 if tasks were refused or the purge was cancelled.
    """
    selection = _selection(call, task_ids, filters, everything=everything)
    if not yes:
        typer.confirm(f"{_named(selection, of_owner)} will be permanently removed. Continue?", abort=True, err=True)
    with call.client() as client:
        started = client.purges.create(
            **selection,
            owner=of_owner,
            open_tasks="cancel" if cancel else "refuse",
            per_second=per_second,
            reason=reason,
        )
        say(f"runs in the background; to stop it: duetime bulk cancel {started.id}")
        ended = _followed(client, started.id)
    call.show(ended, _show)
    if ended.refused or ended.state == "cancelled":
        raise typer.Exit(1)


def _selection(call: Call, task_ids: list[str] | None, filters: FilterOptions, *, everything: bool) -> dict[str, Any]:
    is_filtered = any(astuple(filters))
    if bool(task_ids) + is_filtered + everything != 1:
        raise typer.BadParameter("give one of: IDs, a filter such as --type, or --all")
    if task_ids:
        return {"task_ids": task_ids}
    return {"all": True} if everything else {"filter": task_filter(filters, call.clock)}


def _named(selection: dict[str, Any], owner: str | None) -> str:
    what = "Everything" if "all" in selection else "Every task that matches" if "filter" in selection else "The tasks"
    return f"{what} of {owner}" if owner else what


def _followed(client: Client, operation_id: str) -> Purge:
    """Follow a purge until it has ended, with a progress bar on the error stream."""
    from duetime_client.commands.progress_bars import counting_bar  # noqa: PLC0415 - see that module

    with counting_bar() as progress:
        bar = progress.add_task("purge", total=None)
        for found in client.purges.follow(operation_id):
            progress.update(bar, completed=found.affected, description=f"{found.examined} scanned")
    return found


def _show(found: Purge, clock: Clock) -> None:
    receipt = found.receipt
    out = console()
    for kind, count in receipt.removed.items():
        out.print(f"{count} {kind.replace('_', ' ')} removed")
    if not any(receipt.removed.values()):
        out.print("nothing was found", style="dim")
    for code, count in sorted(found.refused.items()):
        out.print(f"{count} refused: {code}", style="yellow")
    for each in receipt.left:
        out.print(f"left: {each.kind}, until {timed(each.until, clock, clock.now(), units=1)}", style="dim")
