"""`duetime tasks create --file`: creates the tasks in a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import typer
from rich.text import Text

from duetime_client.commands.connection import exit_code_of
from duetime_client.commands.output_streams import console, printable, show_json
from duetime_client.errors import ApiError
from duetime_client.manifests.batch_creation import create_lines
from duetime_client.manifests.task_lines import lines_of_csv, lines_of_json, with_defaults
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from duetime_client.client import Client
    from duetime_client.manifests.batch_creation import LineResult
    from duetime_client.manifests.task_lines import TaskLine

MOST_SHOWN = 20
"""Number of rejected lines that are shown; --json lists all lines."""
STANDARD_INPUT = "-"


def read_lines(file: str, defaults: Mapping[str, Any]) -> Sequence[TaskLine]:
    """Read the tasks of a file or standard input; options fill in omitted fields.

    Raises:
        typer.BadParameter: The file cannot be read.
    """
    try:
        if file == STANDARD_INPUT:
            text = sys.stdin.read().removeprefix("\ufeff")
        else:
            text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint="--file") from error
    lines = lines_of_csv(text) if file.lower().endswith(".csv") else lines_of_json(text)
    return [with_defaults(line, defaults) for line in lines]


def create_from_file(client: Client, lines: Sequence[TaskLine], key: str | None, *, as_json: bool) -> None:
    """Create the tasks with a progress bar; exit code 1 if a line was rejected, 3 if the API did not respond."""
    from duetime_client.commands.progress_bars import counting_bar  # noqa: PLC0415 - see that module

    used = key or f"file-{uuid4().hex[:12]}"
    results: list[LineResult] = []
    try:
        with counting_bar("refused") as progress:
            shown = progress.add_task("creating", total=len(lines), refused="")
            refused = 0
            for result in create_lines(client, lines, used):
                results.append(result)
                if result.reasons:
                    refused += 1
                    _show_refused(progress.console, result, refused)
                progress.update(shown, advance=1, refused=f"{refused} refused" if refused else "")
    except KeyboardInterrupt:
        # Batches in flight may have created tasks; a repeated call with the same key finds them.
        _show_totals(results, len(lines) - len(results), used)
        raise
    if as_json:
        show_json(_document(results, used))
    else:
        _show_totals(results, sum(not each.is_tried for each in results), used)
    _end(results)


def _show_refused(out: Console, result: LineResult, number: int) -> None:
    if number > MOST_SHOWN:
        if number == MOST_SHOWN + 1:
            out.print("more lines are refused; --json lists all refused lines", style="yellow")
        return
    for each in result.reasons:
        where = Text.assemble((f"line {result.line.line}: ", "bold red"), printable(each.field and f"{each.field}: "))
        out.print(where.append_text(printable(each.reason)), soft_wrap=True)


def _show_totals(results: Sequence[LineResult], left: int, key: str) -> None:
    created = sum(each.task_id is not None for each in results)
    refused = sum(bool(each.reasons) for each in results)
    sums = [f"{counted(created, 'task')} created", *([f"{refused} refused"] if refused else [])]
    sums += [f"{left} not tried"] if left else []
    err = console(stderr=True)
    err.print(", ".join(sums), style="bold red" if refused or left else "green")
    if refused or left:
        err.print(f"To create only the other tasks, run the command again with --idempotency-key {key}", soft_wrap=True)


def _document(results: Sequence[LineResult], key: str) -> dict[str, object]:
    return {
        "idempotency_key": key,
        "created": [each.task_id for each in results if each.task_id is not None],
        "refused": [
            {"line": each.line.line, "errors": [{"field": one.field, "reason": one.reason} for one in each.reasons]}
            for each in results
            if each.reasons
        ],
        "not_tried": [each.line.line for each in results if not each.is_tried],
    }


def _end(results: Sequence[LineResult]) -> None:
    errors = [each.error for each in results if each.error is not None]
    codes = [exit_code_of(error) for error in errors] + [1 for each in results if each.line.fault]
    if any(not isinstance(error, ApiError) for error in errors) or codes:
        raise typer.Exit(max(codes))
