"""The tables of the events of a task and of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from duetime_client.commands.attempt_views import OUTCOME_STYLES
from duetime_client.commands.formatting import STATE_STYLES, timed
from duetime_client.commands.output_streams import console, printable
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from duetime_client.commands.clock import Clock
    from duetime_client.schedule_models import ScheduleEvent, ScheduleHistory
    from duetime_client.task import TaskEvent, TaskHistory


def show_events(history: TaskHistory, clock: Clock) -> None:
    """Print the events of a task as a table, oldest first."""
    _show((cells(event, clock) for event in history.events), history.dropped)


def show_schedule_events(history: ScheduleHistory, clock: Clock) -> None:
    """Print the events of a schedule as a table, oldest first."""
    _show((schedule_cells(event, clock) for event in history.events), history.dropped)


def schedule_cells(event: ScheduleEvent, clock: Clock) -> Iterator[Text]:
    """One row of the events of a schedule."""
    yield timed(event.at, clock, clock.now(), units=1)
    yield printable(event.type.replace("_", " "))
    yield printable((event.actor.name if event.actor.kind == "user" else event.actor.kind) or "")
    parts = [", ".join(event.fields_changed), event.task_id and f"task {event.task_id}", event.backfill_id]
    yield printable(", ".join(part for part in parts if part))
    yield printable(event.reason or "")


def _show(rows: Iterable[Iterable[Text]], dropped: int) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("at", "event"):
        table.add_column(heading, no_wrap=True)
    for heading in ("by", "details", "reason"):
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    if dropped:
        console().print(f"{counted(dropped, 'older action')} not kept", style="dim")
    console().print(table)


def cells(event: TaskEvent, clock: Clock) -> Iterator[Text]:
    """One row; cells that do not apply to its type are empty."""
    yield timed(event.at, clock, clock.now(), units=1) if event.at else Text()
    yield printable(event.type.replace("_", " "))
    yield printable(actor(event))
    yield printable(
        details(event), STATE_STYLES.get(event.state or "", "") or OUTCOME_STYLES.get(event.outcome or "", "")
    )
    yield printable(event.reason or "")


def actor(event: TaskEvent) -> str:
    """The actor of an event: a user's name, another kind with its name, or else the worker."""
    if event.actor is None:
        return event.worker or ""
    if event.actor.kind == "user":
        return event.actor.name or ""
    return ":".join(part for part in (event.actor.kind, event.actor.name) if part)


def details(event: TaskEvent) -> str:
    """Details of an event as text."""
    parts = [
        event.state,
        event.outcome,
        event.attempt and f"attempt {event.attempt}",
        event.error and f"{event.error.type}: {event.error.message}".removesuffix(": "),
        ", ".join(event.fields_changed),
        event.nodes and f"from {', '.join(event.nodes)}",
        event.bulk_operation_id and f"bulk {event.bulk_operation_id}",
    ]
    return ", ".join(str(part) for part in parts if part)
