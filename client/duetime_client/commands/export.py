"""`duetime export`: writes all of the caller's data as lines of JSON to a file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.output_streams import say
from duetime_client.exports import CURSOR, END, InvalidCursor

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="File for lines of JSON; must not exist, except with --continue.")
]
Resume = Annotated[bool, typer.Option("--continue", help="Continue an export that was interrupted.")]


@examples("duetime export ada.jsonl", "duetime export ada.jsonl --continue")
def export(call: Call, file: File, *, resume: Resume = False) -> None:
    """Write all of your data to a file: schedules and other definitions, and tasks with payloads.

    Archived tasks are not included; use duetime archive query.
    """
    from duetime_client.commands.progress_bars import counting_bar  # noqa: PLC0415 - see that module

    cursor = _kept(file) if resume else None
    with call.client() as client, _opened(file, resume=resume) as out, counting_bar() as progress:
        bar = progress.add_task("exporting", total=None)
        try:
            for line in client.exports.read(cursor):
                out.write(f"{line.text}\n")
                if line.kind in {CURSOR, END}:
                    out.flush()
                    progress.update(bar, completed=line.value["lines"], description=line.value.get("part", ""))
        except InvalidCursor as error:
            raise typer.BadParameter(str(error), param_hint="FILE") from error
    say(f"{line.value['lines']} objects exported to {file}")


def _opened(file: Path, *, resume: bool) -> Any:  # noqa: ANN401 - a text file
    try:
        return file.open("a" if resume else "x", encoding="utf-8", newline="\n")
    except FileExistsError as error:
        raise typer.BadParameter("exists: give another file, or --continue", param_hint="FILE") from error
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error


def _kept(file: Path) -> dict[str, Any] | None:
    """Return the last cursor of a file, and remove the lines after the cursor; `None` if there is no cursor."""
    cursor, end = None, 0
    try:
        with file.open("r+b") as lines:
            position = 0
            for line in lines:
                position += len(line)
                found = _cursor_in(line)
                if found is not None:
                    cursor, end = found, position
            lines.truncate(end)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error
    return cursor


def _cursor_in(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b'{"kind":"cursor"') or not line.endswith(b"\n"):
        return None
    value: dict[str, Any] = json.loads(line)["value"]
    return value
