"""Prints the progress and the errors of commands on the error stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from typer._click.globals import get_current_context  # typer has no public name for this type

from duetime_client.commands.formatting import shown_progress, shown_state
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.times import distance
from duetime_client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from duetime_client.commands.clock import Clock
    from duetime_client.errors import ClientError, InvalidField
    from duetime_client.task import Task


_OPTIONS = {
    "tags": "--tag",
    "delay_seconds": "--in",
    "target.url": "--http-url",
    "target.phases": "--http-phase",
    "target.queries": "--http-query",
    "target.method": "--http-method",
    "target.headers": "--http-header",
    "target.auth": "--http-auth",
    "target.definition": "--definition",
    "target.timeout_seconds": "--approval",
    "target.on_timeout": "--on-timeout",
    "target.event": "--event",
    "target.key": "--event-key",
    "target.lookback_seconds": "--event-lookback",
    "target.when": "--event-when",
    "target": "--arn",
    "retry.max_duration_seconds": "--retry-for",
    "retry": "--max-attempts",
    "timeout_seconds": "--timeout",
    "expires_seconds": "--expires",
    "fair_key": "--fair-key",
    "fair_weight": "--fair-weight",
    "notify_within_seconds": "--notify-within",
    "notify_on.late_seconds": "--notify-late",
    "notify_on.running_seconds": "--notify-running",
    "notify_on": "--notify-to",
    "locks": "--lock",
    "lock.mode": "--lock",
    "lock.max_holders": "--lock-max-holders",
    "lock.wait_seconds": "--lock-wait",
    "rate.key": "--rate-key",
    "rate.limit": "--rate-limit",
    "rate.per_seconds": "--rate-per",
    "rate.burst": "--rate-burst",
    "unique.key": "--unique",
    "trigger_rule": "--rule",
    "debounce.key": "--unique",
    "debounce.seconds": "--debounce",
    "debounce.max_seconds": "--debounce-max",
    "order.key": "--order",
    "order.on_failure": "--order-stop",
    "start_at": "--start",
    "end_at": "--end",
    "dates": "--date",
    "calendars": "--calendar",
    "extra_dates": "--extra-date",
    "excluded_dates": "--exclude-date",
    "timings": "--timing",
    "spread_seconds": "--spread",
    "jitter_seconds": "--jitter",
    "catch_up_seconds": "--catch-up",
    "catch_up_mode": "--catch-up-mode",
    "expect_every_seconds": "--expect-every",
    "remaining_runs": "--runs",
}
"""Options whose names differ from the request field they set."""


def waiting_line(task: Task, clock: Clock) -> Text:
    """The spinner's text for a task that has not ended."""
    line = Text.assemble(task.id, " ", shown_state(task))
    if task.due_at > clock.now():
        line.append(f" (due {distance(task.due_at, clock.now())})", "dim")
    elif task.progress is not None:
        line.append_text(printable(f" {shown_progress(task.progress)}"))
    return line


def show_conflict(task: Task, on_conflict: str) -> None:
    """Report that a task was not created because another task holds its unique key."""
    done = "its fields were replaced" if on_conflict == "replace" else "it is kept unchanged"
    console(stderr=True).print(Text(f"{task.id} holds the unique key: {done}"), soft_wrap=True)


def show_created(task: Task) -> None:
    """Print the id on the error stream, because the following wait may be interrupted."""
    console(stderr=True).print(Text.assemble("created ", printable(task.id)), soft_wrap=True)


def show_error(error: ClientError) -> None:
    """Print an error on one line, and each invalid field on a line of its own."""
    _show_errors(headline(error), error.problem.errors if isinstance(error, ApiError) else ())


def show_invalid_file(file: Path, fields: Iterable[InvalidField], kind: str = "topology") -> None:
    """Print that a file is not a valid topology, or other kind, and each invalid field on a line of its own."""
    _show_errors(printable(f"{file} is not a valid {kind}"), fields)


def _show_errors(what: Text, fields: Iterable[InvalidField]) -> None:
    err = console(stderr=True)
    err.print(Text.assemble(("error: ", "bold red"), what), soft_wrap=True)
    for field in fields:
        option = option_of(field.field)
        told = f" ({option})" if option else ""
        err.print(
            Text.assemble("  ", printable(field.field, "bold"), told, ": ", printable(field.reason)), soft_wrap=True
        )


def option_of(field: str) -> str | None:
    """The option of the running command that sets a request field, if there is one."""
    context = get_current_context(silent=True)
    if context is None:
        return None
    known = {option for each in context.command.params for option in each.opts}
    # A schedule nests the fields of its task: task.payload, tags.team.
    parts = field.removeprefix("task.").split(".")
    wanted = (_OPTIONS.get(".".join(parts[:2])), _OPTIONS.get(parts[0]), f"--{parts[0].replace('_', '-')}")
    return next((option for option in wanted if option in known), None)


def headline(error: ClientError) -> Text:
    """The main line of an error message, without the reasons if the list of invalid fields follows."""
    if isinstance(error, ApiError) and error.problem.errors:
        return printable(f"{error.problem.title} ({error.status} {error.code})")
    return printable(str(error))
