"""`duetime switches`: list, show, set, delete."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, show_json
from duetime_client.switches import ALL, Circuit, Switch

app = CommandGroup(help="Stop or limit a type, an owner or all tasks, without a deployment.", no_args_is_help=True)


class ScopeName(StrEnum):
    """What a switch applies to."""

    ALL = "all"
    TYPE = "type"
    OWNER = "owner"


Scope = Annotated[ScopeName, typer.Argument(help="What the switch applies to.")]
Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="The type or the owner; `all` needs none.", show_default=False)
]


@app.command("list")
@examples("duetime switches list")
def list_switches(call: Call) -> None:
    """List what is stopped or limited, and, for operators, the HTTP hosts whose circuit breaker is open."""
    with call.client() as client:
        found = client.switches.list()
    if call.as_json:
        show_json(found.document)
        return
    show_switches(found.switches, call.clock)
    if found.circuits:
        show_circuits(found.circuits, call.clock)


@app.command("set")
@examples(
    "duetime switches set type report --stop --reason 'the database is down'",
    "duetime switches set type report --max-concurrent 5",
    "duetime switches set type report --rate-limit 100 --rate-per 60",
)
def set_switch(  # noqa: PLR0913 - a command's options are its parameters
    call: Call,
    scope: Scope,
    name: Name = ALL,
    *,
    stop: Annotated[bool, typer.Option("--stop", help="Start none of its tasks; running ones continue.")] = False,
    max_concurrent: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many of its tasks may run at a time.")
    ] = None,
    rate_limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many attempts at its tasks may start in the time of --rate-per."),
    ] = None,
    rate_per: Annotated[int, typer.Option(metavar="SECONDS", min=1, help="The time of --rate-limit.")] = 1,
    rate_burst: Annotated[int, typer.Option(metavar="N", min=0, help="How many more may start at once.")] = 0,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why; shown with each task that waits because of it.")
    ] = "",
) -> None:
    """Stop something, limit its concurrency or its rate. Replaces the switch that was set before."""
    if not stop and max_concurrent is None and rate_limit is None:
        wanted = "give --stop, --max-concurrent or --rate-limit"
        raise typer.BadParameter(f"{wanted}; to remove a switch, use `duetime switches delete`")
    rate = None if rate_limit is None else {"limit": rate_limit, "per_seconds": rate_per, "burst": rate_burst}
    with call.client() as client:
        switch = client.switches.put(
            scope.value, name, stopped=stop, max_concurrent=max_concurrent, rate=rate, reason=reason
        )
    show_one(switch, call.clock, as_json=call.as_json)


@app.command()
@examples("duetime switches show type report")
def show(call: Call, scope: Scope, name: Name = ALL) -> None:
    """Show one switch."""
    with call.client() as client:
        switch = client.switches.get(scope.value, name)
    show_one(switch, call.clock, as_json=call.as_json)


@app.command()
@examples("duetime switches delete type report")
def delete(call: Call, scope: Scope, name: Name = ALL) -> None:
    """Delete a switch: tasks that it stopped start by themselves within 90 seconds."""
    with call.client() as client:
        switch = client.switches.delete(scope.value, name)
    if call.as_json:
        show_json(switch.document)
        return
    subject = printable(f"{switch.scope} {switch.name}" if switch.name != switch.scope else switch.scope)
    what = Text.assemble("deleted the switch for ", subject, " (was: ", setting(switch), ")")
    console().print(what.append("; stopped tasks start within 90 seconds" if switch.stopped else ""), soft_wrap=True)


def show_one(switch: Switch, clock: Clock, *, as_json: bool) -> None:
    """Print one switch as a table or as JSON."""
    if as_json:
        show_json(switch.document)
    else:
        show_switches([switch], clock)


def show_switches(switches: Iterable[Switch], clock: Clock) -> None:
    """Print switches as a table."""
    table = _table("scope", "name", "switch", "since", "by", "reason")
    for switch in switches:
        since = timed(switch.updated_at, clock, clock.now(), units=1)
        known = (printable(text) for text in (switch.updated_by, switch.reason))
        table.add_row(printable(switch.scope), printable(switch.name), setting(switch), since, *known)
    _show(table, "no switches")


def setting(switch: Switch) -> Text:
    """The effect of a switch as text."""
    parts = [Text("stopped", "bold red")] if switch.stopped else []
    if switch.max_concurrent is not None:
        parts.append(Text(f"at most {switch.max_concurrent} running", "yellow"))
    if switch.rate is not None:
        burst = f", {switch.rate['burst']} more at once" if switch.rate.get("burst") else ""
        parts.append(Text(f"{switch.rate['limit']} starts in {switch.rate['per_seconds']} s{burst}", "yellow"))
    return Text(", ").join(parts)


def show_circuits(circuits: Iterable[Circuit], clock: Clock) -> None:
    """Print open circuit breakers as a table."""
    table = _table("host", "owner", "circuit breaker", "opened", "next call", "reason")
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
    _show(table, "no open circuit breakers")


def _table(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, no_wrap=heading != "reason")
    return table


def _show(table: Table, nothing: str) -> None:
    console().print(table) if table.row_count else console().print(nothing, style="dim")
