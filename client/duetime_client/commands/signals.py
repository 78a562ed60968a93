"""`duetime signals`: send."""

from typing import Annotated

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import say
from duetime_client.commands.task_arguments import json_of
from duetime_client.signals import SentSignal

app = CommandGroup(help="Wake tasks that wait for an event.", no_args_is_help=True)


@app.command()
@examples("duetime signals send order.paid --key order-4711 --payload '{\"amount\": 17}'")
def send(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the event.")],
    *,
    key: Annotated[str, typer.Option(metavar="KEY", help="Key of the event.")] = "",
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="Result of the tasks: JSON, @file, or - for standard input.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Idempotency key: a repeated command sends no second signal.")
    ] = None,
) -> None:
    """Wake all tasks that wait for an event; the payload becomes their result."""
    value = None if payload is None else json_of(payload)
    with call.client() as client:
        sent = client.signals.send(name, key, value, idempotency_key=idempotency_key)
    call.show(sent, _show_signal)


def _show_signal(sent: SentSignal, _: Clock) -> None:
    tasks = "task" if sent.woken == 1 else "tasks"
    say(f"woke {sent.woken} {tasks}")
    if sent.operation_id is not None:
        say(f"other tasks follow in the background: duetime bulk show {sent.operation_id}")
