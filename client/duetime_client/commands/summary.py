"""`duetime summary`: how many tasks there are."""

import typer
from rich.table import Table
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Deployment, connected
from duetime_client.commands.console import console, printable, show_json
from duetime_client.commands.document_output import AsJson
from duetime_client.commands.formatting import STATE_STYLES, timed
from duetime_client.plurals import counted
from duetime_client.summary import Summary


@examples("duetime summary")
def summary(context: typer.Context, *, deployment: Deployment, as_json: AsJson = False) -> None:
    """Show how many tasks there are: by type and state, some seconds old."""
    with connected(context, deployment) as client:
        found = client.summary.get()
    if as_json:
        show_json(found.document)
        return
    _show(found, context.ensure_object(Clock))


def _show(found: Summary, clock: Clock) -> None:
    if not found.total:
        console().print("no tasks", style="dim")
        return
    states = list(found.states)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("type")
    for state in states:
        table.add_column(printable(state, STATE_STYLES.get(state, "")), justify="right")
    table.add_column("all", justify="right")
    for each in found.types:
        cells = [str(each.states[state]) if state in each.states else "" for state in states]
        table.add_row(printable(each.type), *cells, str(each.total))
    table.add_row("all types", *(str(found.states[state]) for state in states), str(found.total), style="bold")
    console().print(table)
    if found.other_types:
        console().print(f"{counted(found.other_types, 'more type')}: in the last row only")
    if not found.is_complete:
        console().print("there are more types than the API counts in", style="yellow")
    if found.as_of is not None:
        console().print(Text.assemble("counted up to ", timed(found.as_of, clock, clock.now())))
