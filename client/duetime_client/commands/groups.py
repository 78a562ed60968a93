"""`duetime groups`: list, show, close, cancel, retry."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.filter_actions import Totals, show_totals
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import printable
from duetime_client.commands.tables import Column, show_table
from duetime_client.groups import CompletionRule, Group

if TYPE_CHECKING:
    from duetime_client.filter_actions import FilterActionResult

app = CommandGroup(help="See and close groups of tasks; cancel or retry the members of a group.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the group.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Reason; recorded with each task.")]


@app.command("list")
@examples("duetime groups list")
def list_groups(call: Call) -> None:
    """List the groups, without counts; with --json, as one array."""
    with call.client() as client:
        found = list(client.groups.list())
    call.show_all(found, show_groups)


@app.command()
@examples("duetime groups show import-17 --wait 25")
def show(
    call: Call,
    group_id: Id,
    *,
    wait: Annotated[
        int, typer.Option(metavar="SECONDS", min=0, max=25, help="Wait this long for the group to be complete.")
    ] = 0,
) -> None:
    """Show a group with the number of its members by state."""
    with call.client() as client:
        group = client.groups.get(group_id, wait_seconds=wait)
    call.show(group, show_group)


@app.command()
@examples("duetime groups close import-17 --run report --rule all_success")
def close(
    call: Call,
    group_id: Id,
    *,
    run: Annotated[
        str | None, typer.Option(metavar="TYPE", help="Run a task of this type once all members have ended.")
    ] = None,
    payload: Annotated[str | None, typer.Option(metavar="JSON", help="Payload of the task. Needs --run.")] = None,
    callback_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Call this URL instead of running a task.")
    ] = None,
    rule: Annotated[
        str, typer.Option(metavar="RULE", help=f"How members must have ended: {', '.join(get_args(CompletionRule))}.")
    ] = "all_done",
) -> None:
    """Close a group to new tasks; a missing group is created."""
    if payload is not None and run is None:
        raise typer.BadParameter("needs --run", param_hint="--payload")
    if run is not None and callback_url is not None:
        raise typer.BadParameter("cannot be given together with --run", param_hint="--callback-url")
    task: Any = None if run is None else {"type": run, **({} if payload is None else {"payload": _json(payload)})}
    with call.client() as client:
        chosen: Any = rule
        group = client.groups.close(group_id, task=task, callback_url=callback_url, rule=chosen)
    call.show(group, show_group)


@app.command()
@examples("duetime groups cancel import-17 --force")
def cancel(
    call: Call,
    group_id: Id,
    *,
    force: Annotated[bool, typer.Option("--force", help="Also ask running members to stop.")] = False,
    reason: Why = "",
) -> None:
    """Cancel the members of a group that have not started."""
    with call.client() as client:
        _follow(call, client.groups.cancel(group_id, force=force, reason=reason), "cancelled")


@app.command()
@examples("duetime groups retry import-17")
def retry(call: Call, group_id: Id, *, reason: Why = "") -> None:
    """Run the failed members of a group again."""
    with call.client() as client:
        _follow(call, client.groups.retry(group_id, reason=reason), "retried")


def show_groups(groups: Iterable[Group], clock: Clock) -> None:
    """Print groups as a table."""
    now = clock.now()
    columns: list[Column[Group]] = [
        Column("group", lambda each: printable(each.id)),
        Column("state", lambda each: each.state),
        Column("created", lambda each: timed(each.created_at, clock, now, units=1)),
        Column("then", lambda each: each.on_complete.task_id if each.on_complete else ""),
    ]
    show_table(groups, columns, "no groups")


def show_group(group: Group, clock: Clock) -> None:
    """Print one group as a table, with a row for each state of members."""
    show_groups([group], clock)
    rows = [("ended", f"{group.ended} of {group.total} ({group.progress}%)")]
    rows += [(state, str(number)) for state, number in group.counts.items()]
    columns: list[Column[tuple[str, str]]] = [
        Column("members", lambda each: each[0]),
        Column("", lambda each: each[1]),
    ]
    show_table(rows, columns, "no members")


def _follow(call: Call, results: "Iterator[FilterActionResult]", done: str) -> None:
    totals = Totals()
    for result in results:
        totals.add(result)
    show_totals(totals, done, as_json=call.as_json)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}", param_hint="--payload") from None
