"""Progress bars on the error stream; imported only when a bar is drawn."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from duetime_client.commands.output_streams import console


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar that is removed at the end, and is drawn only if the error stream is a terminal."""
    err = console(stderr=True)
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


def counting_bar(*notes: str) -> Progress:
    """A bar that counts completed items.

    Args:
        notes: fields of the bar's task to show in red.
    """
    return progress_bar(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        *(TextColumn(f"[red]{{task.fields[{note}]}}[/red]") for note in notes),
        TimeElapsedColumn(),
    )
