"""`duetime dispatch`: when the trigger last ran, and how long the queues are."""

from rich.table import Table
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.output_streams import console, printable
from duetime_client.dispatch_status import DispatchStatus


@examples("duetime dispatch")
def dispatch(call: Call) -> None:
    """Show when the trigger last ran, and how long the queues are; for operators."""
    with call.client() as client:
        found = client.dispatch.get_status()
    call.show(found, _show)


def _show(found: DispatchStatus, clock: Clock) -> None:
    if found.last_tick_at is None or found.dispatched_until is None:
        console().print("the trigger has not run yet", style="yellow")
    else:
        now = clock.now()
        console().print(Text.assemble("the trigger last ran ", timed(found.last_tick_at, clock, now)))
        console().print(Text.assemble("dispatched until ", timed(found.dispatched_until, clock, now)))
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("queue")
    for name in ("waiting", "delayed", "in flight"):
        table.add_column(name, justify="right")
    for each in found.queues:
        name = each.priority or f"type {each.pulled_type}"
        table.add_row(printable(name), str(each.waiting), str(each.delayed), str(each.in_flight))
    console().print(table)
