"""Formats states, times, counts and JSON for tables, detail views and the spinner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text

from duetime_client.commands.output_streams import printable
from duetime_client.commands.times import distance, full_moment, short_moment

if TYPE_CHECKING:
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.task import Failure, Progress, Task

STATE_STYLES = {
    "running": "bold cyan",
    "preparing": "cyan",
    "succeeded": "green",
    "failed": "bold red",
    "rolling_back": "yellow",
    "rolled_back": "yellow",
    "waiting": "yellow",
    "paused": "magenta",
    "cancelled": "dim",
}
LONGEST_JSON = 400


def shown_state(task: Task) -> Text:
    """A state in its color."""
    return printable(task.state, STATE_STYLES.get(task.state, ""))


def timed(moment: datetime, clock: Clock, now: datetime, *, units: int = 2) -> Text:
    """A time in the reader's zone with its distance from now; `units=1` gives the short form for tables."""
    local = localized(moment, clock)
    shown = short_moment(local, clock.local(now)) if units == 1 else full_moment(local)
    return Text.assemble(shown, (f" ({distance(moment, now, units)})", "dim"))


def localized(moment: datetime, clock: Clock) -> datetime:
    """A time in the reader's zone."""
    try:
        return clock.local(moment)
    except (OverflowError, ValueError):
        # Times in the years 1 and 9999 can leave the range of `datetime` when they are converted.
        return moment


def shown_json(document: object) -> Text:
    """A JSON value on one line, cut if it is too long for a detail view."""
    text = json.dumps(document, ensure_ascii=False)
    return printable(text if len(text) <= LONGEST_JSON else f"{text[:LONGEST_JSON]}… (--json shows all)")


def shown_progress(progress: Progress) -> str:
    """The progress that a task reports."""
    return f"{progress.percent or 0:g}% {progress.message or ''}".rstrip()


def shown_error(error: Failure | None) -> str:
    """The type and message of an error; empty without an error."""
    return f"{error.type}: {error.message}".removeprefix(": ").removesuffix(": ") if error else ""
