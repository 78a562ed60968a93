"""The table of a task's attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from duetime_client.commands.formatting import timed
from duetime_client.commands.output_streams import console, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client.commands.clock import Clock
    from duetime_client.task import Attempt

OUTCOME_STYLES = {"succeeded": "green", "failed": "bold red", "retried": "yellow", "lost": "red"}


def show_attempts(attempts: Sequence[Attempt], clock: Clock) -> None:
    """Print attempts as a table, oldest first."""
    if not attempts:
        console().print("no finished attempts", style="dim")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("attempt", "fence"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("outcome", "started"):
        table.add_column(heading, no_wrap=True)
    for heading in ("late", "took", "dollars"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("worker")
    failed = any(attempt.error for attempt in attempts)
    table.add_column("error") if failed else None
    for attempt in attempts:
        table.add_row(*cells(attempt, clock, failed=failed))
    console().print(table)
    for attempt in attempts:
        if attempt.error and attempt.error.traceback:
            console().print(f"\ntraceback of attempt {attempt.attempt}, fence {attempt.fence}", style="bold")
            for line in attempt.error.traceback.splitlines():
                console().print(printable(line), soft_wrap=True)


def cells(attempt: Attempt, clock: Clock, *, failed: bool) -> Iterator[Text]:
    """One row; unknown values of a lost attempt are empty."""
    yield Text(str(attempt.attempt))
    yield Text(str(attempt.fence))
    yield printable(attempt.outcome, OUTCOME_STYLES.get(attempt.outcome, ""))
    yield timed(attempt.started_at, clock, clock.now(), units=1) if attempt.started_at else Text()
    for milliseconds in (attempt.lateness_ms, attempt.duration_ms):
        yield Text("" if milliseconds is None else f"{milliseconds:g} ms")
    yield Text("" if attempt.cost_dollars is None else f"{attempt.cost_dollars:.8f}")
    yield printable(attempt.worker or "")
    if failed:
        error = attempt.error
        yield printable(f"{error.type}: {error.message}".removeprefix(": "), "red") if error else Text()
