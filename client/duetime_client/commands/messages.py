"""Messages of commands on the error stream: progress and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from duetime_client.commands.console import console, printable
from duetime_client.commands.formatting import shown_progress, shown_state
from duetime_client.commands.times import distance
from duetime_client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from duetime_client.commands.clock import Clock
    from duetime_client.errors import ClientError, InvalidField
    from duetime_client.task import Task


def waiting_line(task: Task, clock: Clock) -> Text:
    """The spinner's text for a task that has not ended."""
    line = Text.assemble(task.id, " ", shown_state(task))
    if task.due_at > clock.now():
        line.append(f" (due {distance(task.due_at, clock.now())})", "dim")
    elif task.progress is not None:
        line.append_text(printable(f" {shown_progress(task.progress)}"))
    return line


def show_created(task: Task) -> None:
    """Print the id on the error stream, before a wait that may be interrupted."""
    console(stderr=True).print(Text.assemble("created ", printable(task.id)), soft_wrap=True)


def show_error(error: ClientError) -> None:
    """Print an error on one line, and each invalid field on a line of its own."""
    _show_errors(headline(error), error.problem.errors if isinstance(error, ApiError) else ())


def show_invalid_file(file: Path, fields: Iterable[InvalidField]) -> None:
    """Print that a file is not a valid topology, and each invalid field on a line of its own."""
    _show_errors(printable(f"{file} is not a valid topology"), fields)


def _show_errors(what: Text, fields: Iterable[InvalidField]) -> None:
    err = console(stderr=True)
    err.print(Text.assemble(("error: ", "bold red"), what), soft_wrap=True)
    for field in fields:
        err.print(Text.assemble("  ", printable(field.field, "bold"), ": ", printable(field.reason)), soft_wrap=True)


def headline(error: ClientError) -> Text:
    """The line that says what happened; without the reasons if the invalid fields follow."""
    if isinstance(error, ApiError) and error.problem.errors:
        return printable(f"{error.problem.title} ({error.status} {error.code})")
    return printable(str(error))
