"""The table of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from duetime_client.commands.formatting import shown_state, timed
from duetime_client.commands.output_streams import console, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.task import Task

WIDE = 100
"""Minimum width, in characters, for the additional columns."""


def show_tasks(tasks: Sequence[Task], clock: Clock, *, more: bool) -> None:
    """Print tasks as a table; columns that would be empty are left out."""
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
    # Columns that may wrap are the ones that shrink on a narrow screen.
    table.add_column("type")
    table.add_column("name") if named else None
    now = clock.now()
    for task in tasks:
        table.add_row(*cells(task, clock, now, named=named, late=late))
    out.print(table)
    if more:
        out.print(f"{len(tasks)} shown, there are more: --limit N or --all", style="dim")


def cells(task: Task, clock: Clock, now: datetime, *, named: bool, late: bool) -> Iterator[Text]:
    """One row of the table of tasks."""
    yield Text(task.id)
    yield shown_state(task)
    yield timed(task.due_at, clock, now, units=1)
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
