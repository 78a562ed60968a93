"""The parts that tables, sheets and the spinner show alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text

from duetime_client.commands.console import printable
from duetime_client.commands.times import distance, full_moment, short_moment

if TYPE_CHECKING:
    from datetime import datetime

    from duetime_client.commands.clock import Clock
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
LONGEST_JSON = 400


def shown_state(task: Task) -> Text:
    """A state in its colour."""
    return printable(task.state, STATE_STYLES.get(task.state, ""))


def timed(moment: datetime, clock: Clock, now: datetime, *, units: int = 2) -> Text:
    """A moment in the reader's zone and how far away it is; with one unit, as short as a table needs it."""
    try:
        local = clock.local(moment)
    except (OverflowError, ValueError):
        # At either end of the calendar a moment exists in its own zone only.
        local = moment
    shown = short_moment(local, clock.local(now)) if units == 1 else full_moment(local)
    return Text.assemble(shown, (f" ({distance(moment, now, units)})", "dim"))


def shown_json(document: object) -> Text:
    """A JSON value on one line, cut where it is too long for a sheet."""
    text = json.dumps(document, ensure_ascii=False)
    return printable(text if len(text) <= LONGEST_JSON else f"{text[:LONGEST_JSON]}… (--json shows all)")


def shown_progress(progress: Progress) -> str:
    """How far a task says it is."""
    return f"{progress.percent or 0:g} % {progress.message or ''}".rstrip()
