"""`duetime why`: explains why a task waits, where its time went, and why a schedule did not run."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import STATE_STYLES, timed
from duetime_client.commands.output_streams import console, printable, say, show_json
from duetime_client.commands.tables import Column, table_of
from duetime_client.commands.task_arguments import moment
from duetime_client.commands.times import span
from duetime_client.explanations import Gate, ScheduleExplanation, TaskExplanation
from duetime_client.task_request_fields import TaskFields

GATE_STYLES = {"passed": "dim", "waiting": "bold yellow", "ahead": "yellow", "unknown": "magenta"}
OUTCOME_STYLES = {"ran": "green", "open": "bold cyan", "planned": "cyan"}
_SECOND_MS, _MINUTE_MS = 1_000, 60_000
_SAID = ("waiting", "ahead")
_BAR = 20

Id = Annotated[str | None, typer.Argument(metavar="ID", help="Id of the task.")]
Name = Annotated[str | None, typer.Option("--schedule", metavar="NAME", help="A schedule instead of a task.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="The time at which the schedule did or did not run, instead of its latest occurrence.",
    ),
]


@examples("duetime why ID", "duetime why --schedule nightly", "duetime why --schedule nightly --at 2026-11-21T02:00")
def why(call: Call, task_id: Id = None, *, schedule: Name = None, at: At = None) -> None:
    """Explain why a task waits or where its time went; with --schedule, why a schedule did or did not run."""
    if (task_id is None) == (schedule is None):
        raise typer.BadParameter("give either the ID of a task, or --schedule")
    if schedule is None and at is not None:
        raise typer.BadParameter("--at needs --schedule")
    clock = call.clock
    found: TaskExplanation | ScheduleExplanation
    with call.client() as client:
        if schedule is not None:
            found = client.schedules.explain(schedule, None if at is None else moment(at, clock, "--at"))
        else:
            found = client.tasks.explain(task_id or "")
    if call.as_json:
        show_json(found.document)
    elif isinstance(found, TaskExplanation):
        show_task(found, clock)
    else:
        show_schedule(found, clock)


def show_preview(call: Call, task_type: str, fields: TaskFields) -> None:
    """Say when a task would start, and what the task would wait for."""
    with call.client() as client:
        found = client.tasks.preview(task_type, **fields)
    call.show(found, lambda found, _clock: say(found.text))


def show_schedule(explanation: ScheduleExplanation, clock: Clock) -> None:
    """Explain what happened at one scheduled time."""
    outcome = explanation.outcome.replace("_", " ")
    head = Text.assemble(
        printable(explanation.schedule),
        "  ",
        timed(explanation.at, clock, clock.now(), units=1),
        "  ",
        printable(outcome, OUTCOME_STYLES.get(explanation.outcome, "bold yellow")),
    )
    console().print(head, soft_wrap=True)
    say(explanation.text)
    if explanation.task_id:
        say(f"See: duetime why {explanation.task_id}")


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
    open_gates = [gate for gate in explanation.gates if gate.state in _SAID]
    for sentence in [gate.text for gate in open_gates] or [explanation.text]:
        say(sentence)
    if explanation.steps:
        say(steps_done(explanation.steps))
    now = clock.now()
    columns: list[Column[Gate]] = [
        Column("gate", lambda gate: gate.name.replace("_", " ")),
        Column("state", lambda gate: printable(gate.state, GATE_STYLES.get(gate.state, ""))),
        Column("since", lambda gate: timed(gate.since, clock, now, units=1) if gate.since else ""),
        Column("time", lambda gate: "" if gate.duration_ms is None else length_of(gate.duration_ms), right=True),
        Column("share", lambda gate: _bar(gate, explanation.total_ms)),
        # The text is not repeated if it was already printed above.
        Column("what", lambda gate: "" if gate.state in _SAID else gate.text, wraps=True),
    ]
    table = table_of(explanation.gates, columns)
    table.add_row("total", "", "", length_of(explanation.total_ms), "", "", style="bold")
    console().print(table)


def steps_done(names: Sequence[str]) -> str:
    """The completed steps, in one sentence."""
    return f"Completed steps: {', '.join(names)}. The next attempt does not repeat them."


def _bar(gate: Gate, total_ms: int) -> Text:
    """The share of a gate in the total time."""
    share = 0.0 if not gate.duration_ms else gate.duration_ms / max(1, total_ms)
    return Text("█" * max(round(share * _BAR), 1 if gate.duration_ms else 0), "cyan")


def length_of(milliseconds: int) -> str:
    """A duration: in milliseconds below a second, in tenths of a second below a minute."""
    if milliseconds < _SECOND_MS:
        return f"{milliseconds} ms"
    if milliseconds < _MINUTE_MS:
        return f"{milliseconds / _SECOND_MS:.1f} s"
    return span(milliseconds / _SECOND_MS, 2)
