"""`duetime summary`: how many tasks there are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import STATE_STYLES, timed
from duetime_client.commands.output_streams import console, printable
from duetime_client.plurals import counted
from duetime_client.summary import OwnerSummary, Summary

ByOwner = Annotated[bool, typer.Option("--by-owner", help="Show the numbers by owner and state, for operators.")]


@examples("duetime summary", "duetime summary --by-owner")
def summary(call: Call, *, owners: ByOwner = False) -> None:
    """Show the number of tasks by type and state; the numbers are some seconds old."""
    with call.client() as client:
        if owners:
            call.show_all(list(client.summary.list_owners()), _show_owners)
            return
        found = client.summary.get()
    call.show(found, _show)


def _show(found: Summary, clock: Clock) -> None:
    if not found.total:
        console().print("no tasks", style="dim")
        _show_completeness(found, clock)
        return
    states = list(found.states)
    table = _table("type", states, [(each.type, each.states, each.total) for each in found.types])
    table.add_row("all types", *(str(found.states[state]) for state in states), str(found.total), style="bold")
    console().print(table)
    if found.other_types:
        console().print(f"{counted(found.other_types, 'more type')}: in the last row only")
    _show_completeness(found, clock)
    if found.as_of is not None:
        console().print(Text.assemble("counted up to ", timed(found.as_of, clock, clock.now())))


def _show_completeness(found: Summary, clock: Clock) -> None:
    if found.counted_since is None:
        if not found.is_complete:
            console().print("there are more types than the API counts", style="yellow")
        return
    since = timed(found.counted_since, clock, clock.now())
    if found.recounted_at is None:
        console().print(Text.assemble("tasks created before ", since, " are not counted yet"), style="yellow")
    else:
        recounted = timed(found.recounted_at, clock, clock.now())
        console().print(Text.assemble("tasks created before ", since, " were counted ", recounted))


def _show_owners(found: Sequence[OwnerSummary], _: Clock) -> None:
    if not found:
        console().print("no owner has had tasks", style="dim")
    else:
        states = sorted({state for each in found for state in each.states})
        console().print(_table("owner", states, [(each.owner, each.states, each.total) for each in found]))


def _table(what: str, states: Sequence[str], rows: Iterable[tuple[str, Mapping[str, int], int]]) -> Table:
    """A table with a row for each type and a column for each state."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(what)
    for state in states:
        table.add_column(printable(state, STATE_STYLES.get(state, "")), justify="right")
    table.add_column("all", justify="right")
    for name, numbers, total in rows:
        cells = [str(numbers[state]) if state in numbers else "" for state in states]
        table.add_row(printable(name), *cells, str(total))
    return table
