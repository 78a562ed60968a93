"""`duetime why`: why a task waits, and where its time went."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Deployment, connected
from duetime_client.commands.console import console, printable, say, show_json
from duetime_client.commands.formatting import STATE_STYLES, timed
from duetime_client.explanations import Gate, TaskExplanation

GATE_STYLES = {"passed": "dim", "waiting": "bold yellow", "ahead": "yellow", "unknown": "magenta"}
_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
_BAR = 20

Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the task.")]


def why(
    context: typer.Context,
    task_id: Id,
    *,
    deployment: Deployment,
    as_json: AsJson = False,
) -> None:
    """Explain why a task waits, or where its time went: each thing that it waited for, and for how long."""
    with connected(context, deployment) as client:
        explanation = client.explain_task(task_id)
    if as_json:
        show_json(explanation.document)
    else:
        show_task(explanation, context.ensure_object(Clock))


def show_task(explanation: TaskExplanation, clock: Clock) -> None:
    """Print the answer in words, then the gates as a table."""
    head = Text.assemble(
        printable(explanation.task_id),
        "  ",
        printable(explanation.state, STATE_STYLES.get(explanation.state, "")),
        "  due ",
        timed(explanation.due_at, clock, clock.now(), units=1),
    )
    console().print(head, soft_wrap=True)
    say(explanation.text)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("gate", "state", "since"):
        table.add_column(heading, no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", no_wrap=True)
    table.add_column("what")
    for gate in explanation.gates:
        table.add_row(*cells(gate, explanation, clock))
    table.add_row("total", "", "", length_of(explanation.total_ms), "", "", style="bold")
    console().print(table)


def cells(gate: Gate, explanation: TaskExplanation, clock: Clock) -> tuple[Text, ...]:
    """One row of the table."""
    share = 0.0 if not gate.duration_ms else gate.duration_ms / max(1, explanation.total_ms)
    return (
        printable(gate.name.replace("_", " ")),
        printable(gate.state, GATE_STYLES.get(gate.state, "")),
        timed(gate.since, clock, clock.now(), units=1) if gate.since else Text(),
        Text("" if gate.duration_ms is None else length_of(gate.duration_ms)),
        Text("█" * max(round(share * _BAR), 1 if gate.duration_ms else 0), "cyan"),
        printable(gate.text),
    )


def length_of(milliseconds: int) -> str:
    """A length of time, to the millisecond where it is short."""
    if milliseconds < _SECOND_MS:
        return f"{milliseconds} ms"
    if milliseconds < _MINUTE_MS:
        return f"{milliseconds / _SECOND_MS:.1f} s"
    days, rest = divmod(milliseconds, _DAY_MS)
    hours, rest = divmod(rest, _HOUR_MS)
    minutes, rest = divmod(rest, _MINUTE_MS)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest // _SECOND_MS, "s")]
    first = next(index for index, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number} {unit}" for number, unit in parts[first : first + 2] if number)
