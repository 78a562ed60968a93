"""Prints the events of a task or of a schedule as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from duetime_client.commands.formatting import STATE_STYLES, shown_error, timed
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.tables import Column, table_of
from duetime_client.commands.task_views import OUTCOME_STYLES
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime_client.commands.clock import Clock
    from duetime_client.schedule_models import ScheduleEvent, ScheduleHistory
    from duetime_client.task import TaskEvent, TaskHistory


T = TypeVar("T")


def show_events(history: TaskHistory, clock: Clock) -> None:
    """Print the events of a task as a table, oldest first; cells that do not apply to an event's type are empty."""
    now = clock.now()
    columns: list[Column[TaskEvent]] = [
        Column("at", lambda event: timed(event.at, clock, now, units=1) if event.at else ""),
        Column("event", lambda event: event.type.replace("_", " ")),
        Column("by", actor, wraps=True),
        Column("details", lambda event: printable(details(event), _style(event)), wraps=True),
        Column("reason", lambda event: event.reason or "", wraps=True),
    ]
    _show(history.events, columns, history.dropped)


def show_schedule_events(history: ScheduleHistory, clock: Clock) -> None:
    """Print the events of a schedule as a table, oldest first."""
    now = clock.now()
    columns: list[Column[ScheduleEvent]] = [
        Column("at", lambda event: timed(event.at, clock, now, units=1)),
        Column("event", lambda event: event.type.replace("_", " ")),
        Column("by", _schedule_actor, wraps=True),
        Column("details", _schedule_details, wraps=True),
        Column("reason", lambda event: event.reason or "", wraps=True),
    ]
    _show(history.events, columns, history.dropped)


def _show(events: Iterable[T], columns: Sequence[Column[T]], dropped: int) -> None:
    if dropped:
        console().print(f"{counted(dropped, 'older action')} not kept", style="dim")
    console().print(table_of(events, columns))


def _schedule_actor(event: ScheduleEvent) -> str:
    return (event.actor.name if event.actor.kind == "user" else event.actor.kind) or ""


def _schedule_details(event: ScheduleEvent) -> str:
    values = {each.field: f"{each.field} {each.before or 'none'} → {each.after or 'none'}" for each in event.values}
    fields = ", ".join(values.get(name, name) for name in event.fields_changed)
    parts = [fields, event.task_id and f"task {event.task_id}", event.backfill_id]
    return ", ".join(part for part in parts if part)


def _style(event: TaskEvent) -> str:
    return STATE_STYLES.get(event.state or "", "") or OUTCOME_STYLES.get(event.outcome or "", "")


def actor(event: TaskEvent) -> str:
    """The actor of an event: a user's name, the kind and name of another actor, or else the worker."""
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
        shown_error(event.error),
        ", ".join(event.fields_changed),
        event.nodes and f"from {', '.join(event.nodes)}",
        event.bulk_operation_id and f"bulk {event.bulk_operation_id}",
    ]
    return ", ".join(str(part) for part in parts if part)
