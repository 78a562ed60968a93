"""`duetime switches`: list, show, set, delete."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.tables import Column, show_table
from duetime_client.switches import ALL, Circuit, StopSwitches, Switch

app = CommandGroup(help="Stop or limit a type, an owner or all tasks.", no_args_is_help=True)


class ScopeName(StrEnum):
    """What a switch applies to."""

    ALL = "all"
    TYPE = "type"
    OWNER = "owner"


Scope = Annotated[ScopeName, typer.Argument(help="What the switch applies to.")]
Name = Annotated[
    str, typer.Argument(metavar="[NAME]", help="The type or the owner; `all` needs no name.", show_default=False)
]


@app.command("list")
@examples("duetime switches list")
def list_switches(call: Call) -> None:
    """List what is stopped or limited, and, for operators, the HTTP hosts whose circuit breaker is open."""
    with call.client() as client:
        found = client.switches.list()
    call.show(found, _show_list)


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
    stop: Annotated[bool, typer.Option("--stop", help="Start no tasks; running tasks continue.")] = False,
    max_concurrent: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many tasks may run at a time.")
    ] = None,
    rate_limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many attempts may start in each period of --rate-per."),
    ] = None,
    rate_per: Annotated[int, typer.Option(metavar="SECONDS", min=1, help="The period of --rate-limit.")] = 1,
    rate_burst: Annotated[int, typer.Option(metavar="N", min=0, help="How many more attempts may start at once.")] = 0,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Reason; shown with each task that waits because of the switch.")
    ] = "",
) -> None:
    """Stop a type, an owner or all tasks, or limit concurrency or rate. This replaces an existing switch."""
    if not stop and max_concurrent is None and rate_limit is None:
        wanted = "give --stop, --max-concurrent or --rate-limit"
        raise typer.BadParameter(f"{wanted}; to remove a switch, use `duetime switches delete`")
    rate = None if rate_limit is None else {"limit": rate_limit, "per_seconds": rate_per, "burst": rate_burst}
    with call.client() as client:
        switch = client.switches.put(
            scope.value, name, stopped=stop, max_concurrent=max_concurrent, rate=rate, reason=reason
        )
    call.show(switch, lambda switch, clock: show_switches([switch], clock))


@app.command()
@examples("duetime switches show type report")
def show(call: Call, scope: Scope, name: Name = ALL) -> None:
    """Show one switch."""
    with call.client() as client:
        switch = client.switches.get(scope.value, name)
    call.show(switch, lambda switch, clock: show_switches([switch], clock))


@app.command()
@examples("duetime switches delete type report")
def delete(call: Call, scope: Scope, name: Name = ALL) -> None:
    """Delete a switch; tasks that it stopped start automatically within 90 seconds."""
    with call.client() as client:
        switch = client.switches.delete(scope.value, name)
    call.show(switch, _show_deleted)


def show_switches(switches: Iterable[Switch], clock: Clock) -> None:
    """Print switches as a table."""
    columns: list[Column[Switch]] = [
        Column("scope", lambda each: each.scope),
        Column("name", lambda each: each.name),
        Column("switch", setting),
        Column("since", lambda each: timed(each.updated_at, clock, clock.now(), units=1)),
        Column("by", lambda each: each.updated_by),
        Column("reason", lambda each: each.reason, wraps=True),
    ]
    show_table(switches, columns, "no switches")


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
    columns: list[Column[Circuit]] = [
        Column("host", lambda each: each.host),
        Column("owner", lambda each: each.owner),
        Column("circuit breaker", lambda each: printable(each.state, "red")),
        Column("opened", lambda each: timed(each.opened_at, clock, clock.now(), units=1)),
        Column("next call", lambda each: timed(each.open_until, clock, clock.now(), units=1)),
        Column("reason", lambda each: each.reason, wraps=True),
    ]
    show_table(circuits, columns, "no open circuit breakers")


def _show_list(found: StopSwitches, clock: Clock) -> None:
    show_switches(found.switches, clock)
    if found.circuits:
        show_circuits(found.circuits, clock)


def _show_deleted(switch: Switch, _: Clock) -> None:
    subject = printable(f"{switch.scope} {switch.name}" if switch.name != switch.scope else switch.scope)
    what = Text.assemble("deleted the switch for ", subject, " (was: ", setting(switch), ")")
    console().print(what.append("; stopped tasks start within 90 seconds" if switch.stopped else ""), soft_wrap=True)
