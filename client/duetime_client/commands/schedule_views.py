"""Schedules, occurrences and what was decided about them, as a person sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from duetime_client.commands.cells import STATE_STYLES, shown_json, timed
from duetime_client.commands.console import console, printable, show_json
from duetime_client.commands.task_table import WIDE, one_line
from duetime_client.commands.times import full_moment
from duetime_client.manifests.differences import SCHEDULE_DEFAULTS, told_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.schedule_models import Occurrence, Schedule

SCHEDULE_STYLES = {"active": "green", "paused": "magenta", "ended": "dim"}
_TOLD_APART = frozenset({"timezone", "calendars", "start_at", "end_at", "dialect"})
_RULES = [(name, value) for name, value in SCHEDULE_DEFAULTS.items() if name not in _TOLD_APART]
"""Rules and what they are where nobody says otherwise: a sheet names those that differ."""


def show(schedule: Schedule, clock: Clock, *, as_json: bool) -> None:
    """Print one schedule in the form that was asked for."""
    if as_json:
        show_json(schedule.document)
        return
    sheet = Table.grid(padding=(0, 2))
    sheet.add_column(style="bold", no_wrap=True)
    sheet.add_column(overflow="fold")
    for label, value in _lines(schedule, clock):
        sheet.add_row(label, value)
    console().print(sheet)


def show_schedules(schedules: Sequence[Schedule], clock: Clock, *, more: bool = False) -> None:
    """Print schedules as a table."""
    out = console()
    if not schedules:
        out.print("no schedules", style="dim")
        return
    zoned = any(schedule.timezone != "UTC" for schedule in schedules)
    table = Table(box=None, header_style="bold", pad_edge=False)
    # The names give way on a narrow screen; a rhythm that is cut would be another one.
    table.add_column("name", overflow="ellipsis", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("next run", no_wrap=True)
    table.add_column("when", overflow="fold")
    wide = out.width >= WIDE
    table.add_column("zone", no_wrap=True) if zoned and wide else None
    table.add_column("type", overflow="ellipsis", no_wrap=True) if wide else None
    now = clock.now()
    for schedule in schedules:
        row = [one_line(schedule.name), shown_state(schedule), _next(schedule, clock, now)]
        row.append(printable(schedule.timing))
        if wide:
            row += [*([printable(schedule.timezone)] if zoned else []), one_line(str(schedule.task.get("type", "")))]
        table.add_row(*row)
    out.print(table)
    if more:
        out.print(f"{len(schedules)} shown, there are more: --limit N or --all", style="dim")


def show_preview(occurrences: Sequence[Occurrence]) -> None:
    """Print what a timing means: in its own zone, in UTC, and what was decided."""
    if not occurrences:
        console().print("nothing is to come", style="dim")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("local time", no_wrap=True)
    table.add_column("UTC", no_wrap=True)
    table.add_column("decided", overflow="fold")
    for each in occurrences:
        style = "" if each.runs else "dim"
        table.add_row(_wall(each.local, style), Text(_utc(each.at), style), decision(each))
    console().print(table)


def show_occurrences(occurrences: Sequence[Occurrence], clock: Clock) -> None:
    """Print occurrences with their tasks."""
    if not occurrences:
        console().print("no occurrences", style="dim")
        return
    now = clock.now()
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("local time", no_wrap=True)
    table.add_column("here", no_wrap=True)
    table.add_column("task", no_wrap=True, overflow="ellipsis")
    table.add_column("state", no_wrap=True)
    table.add_column("note", overflow="fold")
    for each in occurrences:
        state = printable(each.state or "", STATE_STYLES.get(each.state or "", ""))
        here = timed(each.at, clock, now, units=1)
        table.add_row(_wall(each.local), here, printable(each.task_id or ""), state, printable(each.note or ""))
    console().print(table)


def decision(occurrence: Occurrence) -> Text:
    """What becomes of an occurrence, in words."""
    if not occurrence.runs:
        return printable(occurrence.note or "does not run", "yellow")
    text = Text("runs", "green")
    if occurrence.due_at is not None and occurrence.due_at != occurrence.at:
        text.append(f" at {_utc(occurrence.due_at)} UTC")
    if occurrence.note:
        text.append(": ").append_text(printable(occurrence.note))
    return text


def shown_state(schedule: Schedule) -> Text:
    """A state in its colour."""
    return printable(schedule.state, SCHEDULE_STYLES.get(schedule.state, ""))


def _lines(schedule: Schedule, clock: Clock) -> Iterator[tuple[str, Text]]:
    now = clock.now()
    yield "name", printable(schedule.name)
    yield "state", Text.assemble(shown_state(schedule), printable(f": {schedule.note}" if schedule.note else ""))
    yield "when", printable(f"{schedule.timing} ({schedule.timezone})")
    if schedule.dates:
        yield "dates", printable(", ".join(schedule.dates))
    for label, name in (("from", "start_at"), ("until", "end_at")):
        if text := schedule.document.get(name):
            yield label, printable(str(text))
    if schedule.remaining_runs is not None:
        yield "runs left", Text(str(schedule.remaining_runs))
    if calendars := schedule.document.get("calendars"):
        yield "calendars", shown_json(calendars)
    for name, usual in _RULES:
        if (value := schedule.document.get(name, usual)) != usual:
            unit = " s" if name.endswith("_seconds") else ""
            yield name.removesuffix("_seconds").replace("_", " "), printable(f"{value}{unit}")
    yield "task", shown_json(told_of(schedule.task))
    yield "created", timed(schedule.created_at, clock, now)
    yield "revision", Text(str(schedule.revision))
    yield from _run_lines(schedule, clock, now)


def _run_lines(schedule: Schedule, clock: Clock, now: datetime) -> Iterator[tuple[str, Text]]:
    """What comes, what is run of the past, and what did not run."""
    for index, each in enumerate(schedule.upcoming):
        when = timed(each.due_at or each.at, clock, now)
        yield "" if index else "next", Text.assemble(when, "  ", decision(each) if each.note else "")
    for index, run in enumerate(schedule.backfills):
        stands = "ended" if run.get("ended_at") else "under way"
        words = f"{run.get('id')} {stands}: {run.get('placed')} placed, {run.get('from')} to {run.get('until')}"
        yield "" if index else "backfill", printable(words)
    for index, skip in enumerate(schedule.skips):
        yield "" if index else "not run", Text.assemble(timed(skip.at, clock, now), "  ", printable(skip.note))


def _next(schedule: Schedule, clock: Clock, now: datetime) -> Text:
    return Text() if schedule.next_at is None else timed(schedule.next_at, clock, now, units=1)


def _wall(local: str, style: str = "") -> Text:
    """A local time with its offset, the `T` taken out for the eye."""
    return printable(local.replace("T", " ", 1), style)


def _utc(moment: datetime) -> str:
    return full_moment(moment).removesuffix(" UTC")
