"""What a person sees: tables, sheets and errors."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duetime_client.commands.times import distance, full_moment, short_moment
from duetime_client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from duetime_client.commands.surroundings import Surroundings
    from duetime_client.errors import ClientError
    from duetime_client.task import Progress, Task

STATE_STYLES = {
    "running": "bold cyan",
    "preparing": "cyan",
    "succeeded": "green",
    "failed": "bold red",
    "rolling_back": "yellow",
    "rolled_back": "yellow",
    "postponed": "yellow",
    "paused": "magenta",
    "cancelled": "dim",
}
# Where nobody reads along (a file, a pipe) nothing need be cut to a screen's width.
PAPER_WIDTH = 200
WIDE = 100
"""From this many columns on, a table has room for more than the most needed."""
LONGEST_JSON = 400


def console(*, stderr: bool = False) -> Console:
    """A console of the stream as it is now; a pipe gets lines long enough to cut nothing."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        # A terminal that lacks a letter gets its escape instead of a failed command.
        stream.reconfigure(errors="backslashreplace")
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=PAPER_WIDTH)


def show_json(document: object) -> None:
    """Print one JSON document."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        # A terminal of another encoding, or half a surrogate pair: the same document in escapes.
        text = json.dumps(document, indent=2)
    typer.echo(text)


def show_tasks(tasks: Sequence[Task], surroundings: Surroundings, *, more: bool) -> None:
    """Print tasks as a table, with columns only for what at least one of them has."""
    out = console()
    if not tasks:
        out.print("no tasks", style="dim")
        return
    named = any(task.name for task in tasks)
    late = out.width >= WIDE and any(task.lateness_ms is not None for task in tasks)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("due", no_wrap=True)
    table.add_column("late", justify="right", no_wrap=True) if late else None
    # Columns that may wrap are the ones that give way on a narrow screen.
    table.add_column("type")
    table.add_column("name") if named else None
    now = surroundings.now()
    for task in tasks:
        table.add_row(*cells(task, surroundings, now, named=named, late=late))
    out.print(table)
    if more:
        out.print(f"{len(tasks)} shown, there are more: --limit N or --all", style="dim")


def cells(task: Task, surroundings: Surroundings, now: datetime, *, named: bool, late: bool) -> Iterator[Text]:
    """One row of the table of tasks."""
    yield Text(task.id)
    yield shown_state(task)
    yield timed(task.due_at, surroundings, now, units=1)
    if late:
        yield Text("" if task.lateness_ms is None else f"{task.lateness_ms:g} ms")
    yield one_line(task.type)
    if named:
        yield one_line(task.name or "")


def one_line(text: str) -> Text:
    """Text that is cut rather than wrapped."""
    line = printable(text)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def show_task(task: Task, surroundings: Surroundings) -> None:
    """Print everything about one task, a line for each thing there is to say."""
    sheet = Table.grid(padding=(0, 2))
    sheet.add_column(style="bold", no_wrap=True)
    sheet.add_column(overflow="fold")
    for label, value in lines(task, surroundings):
        sheet.add_row(label, value)
    console().print(sheet)


def lines(task: Task, surroundings: Surroundings) -> Iterator[tuple[str, Text]]:
    """The lines of one task's sheet."""
    yield "id", Text(task.id)
    yield "state", shown_state(task)
    yield "type", printable(task.type)
    if task.name:
        yield "name", printable(task.name)
    if task.tags:
        yield "tags", printable(" ".join(f"{key}={value}" for key, value in task.tags.items()))
    yield "priority", printable(task.priority)
    now = surroundings.now()
    for label, moment in moments(task):
        yield label, timed(moment, surroundings, now)
    yield from run_lines(task)


def moments(task: Task) -> Iterator[tuple[str, datetime]]:
    """The times of a task that are known."""
    yield "due", task.due_at
    yield "created", task.created_at
    if task.started_at:
        yield "started", task.started_at
    if task.finished_at:
        yield "finished", task.finished_at


def run_lines(task: Task) -> Iterator[tuple[str, Text]]:
    """What was asked of a task, and what came of it."""
    if task.target is not None:
        yield "target", shown_json(task.target)
    if task.payload is not None:
        yield "payload", shown_json(task.payload)
    if task.attempt:
        of = (task.retry or {}).get("max_attempts")
        yield "attempt", Text(f"{task.attempt} of {of}" if of else str(task.attempt))
    if task.progress is not None:
        yield "progress", printable(shown_progress(task.progress))
    if task.lateness_ms is not None:
        yield "late", Text(f"{task.lateness_ms:g} ms")
    if task.result is not None:
        yield "result", shown_json(task.result)
    if task.error is not None:
        yield "error", printable(f"{task.error.kind}: {task.error.message}".removeprefix(": "), "red")


def waiting_line(task: Task, surroundings: Surroundings) -> Text:
    """What the spinner says of a task that has not ended."""
    line = Text.assemble(task.id, " ", shown_state(task))
    if task.due_at > surroundings.now():
        line.append(f" (due {distance(task.due_at, surroundings.now())})", "dim")
    elif task.progress is not None:
        line.append_text(printable(f" {shown_progress(task.progress)}"))
    return line


def shown_progress(progress: Progress) -> str:
    """How far a task says it is."""
    return f"{progress.percent or 0:g} % {progress.message or ''}".rstrip()


def show_created(task: Task) -> None:
    """Tell the id before a wait that may be broken off, apart from the output."""
    console(stderr=True).print(Text.assemble("created ", printable(task.id)), soft_wrap=True)


def show_error(error: ClientError) -> None:
    """Print an error on one line, and each field that was refused on a line of its own."""
    refused = error.problem.errors if isinstance(error, ApiError) else ()
    err = console(stderr=True)
    err.print(Text.assemble(("error: ", "bold red"), headline(error)), soft_wrap=True)
    for field in refused:
        err.print(Text.assemble("  ", printable(field.field, "bold"), ": ", printable(field.reason)), soft_wrap=True)


def headline(error: ClientError) -> Text:
    """The line that says what happened; where fields follow it need not say their reasons too."""
    if isinstance(error, ApiError) and error.problem.errors:
        return printable(f"{error.problem.title} ({error.status} {error.code})")
    return printable(str(error))


def shown_state(task: Task) -> Text:
    """A state in its colour."""
    return printable(task.state, STATE_STYLES.get(task.state, ""))


def timed(moment: datetime, surroundings: Surroundings, now: datetime, *, units: int = 2) -> Text:
    """A moment in the reader's zone and how far away it is; with one unit, as short as a table needs it."""
    try:
        local = surroundings.local(moment)
    except (OverflowError, ValueError):
        # At either end of the calendar a moment exists in its own zone only.
        local = moment
    shown = short_moment(local, surroundings.local(now)) if units == 1 else full_moment(local)
    return Text.assemble(shown, (f" ({distance(moment, now, units)})", "dim"))


def shown_json(document: object) -> Text:
    """A JSON value on one line, cut where it is too long for a sheet."""
    text = json.dumps(document, ensure_ascii=False)
    return printable(text if len(text) <= LONGEST_JSON else f"{text[:LONGEST_JSON]}… (--json shows all)")


def printable(text: str, style: str = "") -> Text:
    """Text that may come from anyone, without the control characters that would steer a terminal."""
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return Text(safe, style=style)
