"""Tables and detail views of schedules, their occurrences, and the decisions about them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from duetime_client.commands.cost_views import show_estimate
from duetime_client.commands.formatting import STATE_STYLES, localized, shown_json, timed
from duetime_client.commands.output_streams import console, printable, show_json
from duetime_client.commands.task_table import WIDE, one_line
from duetime_client.commands.times import distance, full_moment, span
from duetime_client.manifests.differences import SCHEDULE_DEFAULTS, non_default_fields
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client.commands.clock import Clock
    from duetime_client.schedule_models import Backfill, Occurrence, Schedule, ScheduleRun

_RUN_STYLES = {**STATE_STYLES, "skipped": "yellow", "missed": "bold red", "planned": "dim", "expired": "dim"}
SCHEDULE_STYLES = {"active": "green", "paused": "magenta", "ended": "dim"}
_SHOWN_SEPARATELY = frozenset({"timezone", "calendars", "start_at", "end_at", "dialect"})
_RULES = [(name, value) for name, value in SCHEDULE_DEFAULTS.items() if name not in _SHOWN_SEPARATELY]
"""Rules with their defaults; a detail view shows only those that differ."""


def show(schedule: Schedule, clock: Clock, *, as_json: bool) -> None:
    """Print one schedule as a detail view or as JSON."""
    if as_json:
        show_json(schedule.document)
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in _lines(schedule, clock):
        grid.add_row(label, value)
    console().print(grid)
    if schedule.estimate is not None:
        show_estimate(schedule.estimate)


def show_schedules(schedules: Sequence[Schedule], clock: Clock, *, more: bool = False) -> None:
    """Print schedules as a table."""
    out = console()
    if not schedules:
        out.print("no schedules", style="dim")
        return
    zoned = any(schedule.timezone != "UTC" for schedule in schedules)
    table = Table(box=None, header_style="bold", pad_edge=False)
    # On a narrow screen only names are cut, because a truncated timing could be misread.
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
    """Print the occurrences of a timing in its own zone, each with the decision about it."""
    if not occurrences:
        console().print("no occurrences", style="dim")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("time", no_wrap=True)
    table.add_column("decision", overflow="fold")
    for each in occurrences:
        style = "" if each.runs else "dim"
        table.add_row(_local_time(each.local_time, style), decision(each))
    console().print(table)


def show_occurrences(occurrences: Sequence[Occurrence], clock: Clock) -> None:
    """Print occurrences with their tasks."""
    if not occurrences:
        console().print("no occurrences", style="dim")
        return
    now = clock.now()
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("time", no_wrap=True)
    table.add_column("task", no_wrap=True, overflow="ellipsis")
    table.add_column("state", no_wrap=True)
    table.add_column("note", overflow="fold")
    for each in occurrences:
        state = printable(each.state or "", STATE_STYLES.get(each.state or "", ""))
        time = _local_time(each.local_time).append(f" ({distance(each.scheduled_at, now, 1)})", "dim")
        table.add_row(time, printable(each.task_id or ""), state, printable(each.note or ""))
    console().print(table)


def show_runs(runs: Sequence[ScheduleRun], clock: Clock) -> None:
    """Print what became of the occurrences of a schedule, newest first."""
    if not runs:
        console().print("no runs", style="dim")
        return
    now = clock.now()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("time", "status", "cause"):
        table.add_column(heading, no_wrap=True)
    table.add_column("task", no_wrap=True, overflow="ellipsis")
    table.add_column("reason", overflow="fold")
    for each in runs:
        status = printable(each.status, _RUN_STYLES.get(each.status, ""))
        time = _local_time(each.local_time).append(f" ({distance(each.scheduled_at, now, 1)})", "dim")
        table.add_row(time, status, printable(each.cause), printable(each.task_id or ""), printable(each.reason or ""))
    console().print(table)


def show_backfills(backfills: Sequence[Backfill], clock: Clock, *, as_json: bool = False) -> None:
    """Print backfills, a line each; one as JSON."""
    if as_json:
        show_json(backfills[0].document)
        return
    for each in backfills:
        console().print(printable(f"{each.id} {backfill_line(each, clock)}"))
    if not backfills:
        console().print("no backfills", style="dim")


def backfill_line(backfill: Backfill, clock: Clock) -> str:
    """The progress and the period of a backfill."""
    state = "finished" if backfill.finished_at else "running"
    bounds = (backfill.scheduled_after, backfill.scheduled_before)
    start, end = (full_moment(localized(each, clock)) for each in bounds)
    done = f"{backfill.runs_started} of {counted(backfill.occurrences, 'run')} started"
    known = f" ({backfill.runs_known} had run before)" if backfill.runs_known else ""
    return f"{state}: {done}{known}, {start} to {end}"


def decision(occurrence: Occurrence) -> Text:
    """Whether an occurrence runs, when, and why."""
    if not occurrence.runs:
        return printable(occurrence.note or "does not run", "yellow")
    text = Text("runs", "green")
    # The note of a moved occurrence already contains the time.
    is_said = "moved to" in (occurrence.note or "")
    if occurrence.due_at is not None and occurrence.due_at != occurrence.scheduled_at and not is_said:
        # Uses the occurrence's UTC offset, like all times in the table.
        offset = datetime.fromisoformat(occurrence.local_time).tzinfo
        text.append(f" at {occurrence.due_at.astimezone(offset).isoformat(' ', 'seconds')}")
    if occurrence.note:
        text.append(": ").append_text(printable(occurrence.note))
    return text


def shown_state(schedule: Schedule) -> Text:
    """A state in its colour, with a mark if an expectation was missed."""
    state = printable(schedule.state, SCHEDULE_STYLES.get(schedule.state, ""))
    if schedule.expectation is not None and schedule.expectation.is_missed:
        state.append(", missed", "red")
    return state


def _lines(schedule: Schedule, clock: Clock) -> Iterator[tuple[str, Text]]:
    now = clock.now()
    yield "name", printable(schedule.name)
    yield (
        "state",
        Text.assemble(
            shown_state(schedule), printable(f": {schedule.paused_reason}" if schedule.paused_reason else "")
        ),
    )
    yield "when", printable(f"{schedule.timing} ({schedule.timezone})")
    if schedule.dates:
        yield "dates", printable(", ".join(schedule.dates))
    for label, bound in (("from", schedule.start_at), ("until", schedule.end_at)):
        if bound is not None:
            yield label, timed(bound, clock, now)
    if schedule.remaining_runs is not None:
        yield "runs left", Text(str(schedule.remaining_runs))
    if calendars := schedule.document.get("calendars"):
        yield "calendars", shown_json(calendars)
    for name, usual in _RULES:
        if (value := schedule.document.get(name, usual)) != usual:
            shown = span(value, 2) if name.endswith("_seconds") and isinstance(value, int) and value else f"{value}"
            yield name.removesuffix("_seconds").replace("_", " "), printable(shown)
    if schedule.expectation is not None and schedule.expectation.missed_at is not None:
        missed = timed(schedule.expectation.missed_at, clock, now)
        yield "missed", Text.assemble(missed, f", {counted(schedule.expectation.misses, 'time')} in all")
    yield "task", shown_json(non_default_fields(schedule.task))
    yield "created", timed(schedule.created_at, clock, now)
    yield "revision", Text(str(schedule.revision))
    yield from _run_lines(schedule, clock, now)


def _run_lines(schedule: Schedule, clock: Clock, now: datetime) -> Iterator[tuple[str, Text]]:
    """Lines for upcoming runs, backfills, and recent events: manual runs, pauses and skips with reasons."""
    for index, each in enumerate(schedule.upcoming):
        when = timed(each.due_at or each.scheduled_at, clock, now)
        yield "" if index else "next", Text.assemble(when, "  ", decision(each) if each.note else "")
    for index, run in enumerate(schedule.backfills):
        yield "" if index else "backfill", printable(f"{run.id} {backfill_line(run, clock)}")
    for index, skip in enumerate(schedule.skipped_runs):
        when = timed(skip.recorded_at, clock, now)
        yield "" if index else "events", Text.assemble(when, "  ", printable(skip.reason))


def _next(schedule: Schedule, clock: Clock, now: datetime) -> Text:
    return Text() if schedule.next_at is None else timed(schedule.next_at, clock, now, units=1)


def _local_time(local: str, style: str = "") -> Text:
    """A local time with its offset, without the `T`."""
    return printable(local.replace("T", " ", 1), style)
