"""`duetime switches`: list, set, lift."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from duetime_client.authentication import Authentication
from duetime_client.commands.cells import timed
from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Auth, Owner, Url, connected
from duetime_client.commands.console import console, printable, show_json
from duetime_client.switches import Circuit, Switch

app = typer.Typer(help="Stop or cap what runs, without a deployment.", no_args_is_help=True)


class ScopeName(StrEnum):
    """What a switch is about."""

    EVERYTHING = "everything"
    TYPE = "type"
    OWNER = "owner"


Scope = Annotated[ScopeName, typer.Argument(help="What it is about.")]
Name = Annotated[str, typer.Argument(metavar="[NAME]", help="Of the type or the owner.", show_default=False)]


@app.command("list")
def list_switches(
    context: typer.Context,
    *,
    url: Url,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """List what is stopped or capped, and for operators the HTTP hosts that are left alone."""
    with connected(context, url, auth, owner) as client:
        held = client.list_switches()
    if as_json:
        show_json(held.document)
        return
    show_switches(held.switches, context.ensure_object(Clock))
    if held.circuits:
        show_circuits(held.circuits, context.ensure_object(Clock))


@app.command("set")
def set_switch(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    scope: Scope,
    name: Name = "",
    *,
    url: Url,
    stop: Annotated[bool, typer.Option("--stop", help="Nothing of it begins; what runs goes on.")] = False,
    max_concurrent: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Most of its tasks that run at once.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; shown with each task that is held back.")] = "",
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Stop or cap something: what the options say takes the place of what was set before."""
    if not stop and max_concurrent is None:
        raise typer.BadParameter("give --stop or --max-concurrent; `duetime switches lift` lets it go on")
    with connected(context, url, auth, owner) as client:
        switch = client.put_switch(scope.value, name, stopped=stop, max_concurrent=max_concurrent, reason=reason)
    show_one(switch, context.ensure_object(Clock), as_json=as_json)


@app.command()
def lift(
    context: typer.Context,
    scope: Scope,
    name: Name = "",
    *,
    url: Url,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Let something go on: what was held back comes again by itself, within 90 seconds. Shows the switch as it was."""
    with connected(context, url, auth, owner) as client:
        switch = client.remove_switch(scope.value, name)
    show_one(switch, context.ensure_object(Clock), as_json=as_json)


def show_one(switch: Switch, clock: Clock, *, as_json: bool) -> None:
    """Print one switch in the form that was asked for."""
    if as_json:
        show_json(switch.document)
    else:
        show_switches([switch], clock)


def show_switches(switches: Iterable[Switch], clock: Clock) -> None:
    """Print switches as a table."""
    table = _table("about", "name", "switch", "since", "by", "reason")
    for switch in switches:
        told = [Text("stopped", "bold red")] if switch.stopped else []
        if switch.max_concurrent is not None:
            told.append(Text(f"at most {switch.max_concurrent} at once", "yellow"))
        since = timed(switch.changed_at, clock, clock.now(), units=1)
        known = (printable(text) for text in (switch.changed_by, switch.reason))
        table.add_row(printable(switch.scope), printable(switch.name), Text(", ").join(told), since, *known)
    _show(table, "nothing is stopped or capped")


def show_circuits(circuits: Iterable[Circuit], clock: Clock) -> None:
    """Print open circuits as a table."""
    table = _table("host", "owner", "circuit", "opened", "called again", "reason")
    for circuit in circuits:
        opened, again = (
            timed(moment, clock, clock.now(), units=1) for moment in (circuit.opened_at, circuit.open_until)
        )
        table.add_row(
            printable(circuit.host),
            printable(circuit.owner),
            printable(circuit.state, "red"),
            opened,
            again,
            printable(circuit.reason),
        )
    _show(table, "no circuits are open")


def _table(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, no_wrap=heading != "reason")
    return table


def _show(table: Table, nothing: str) -> None:
    console().print(table) if table.row_count else console().print(nothing, style="dim")
