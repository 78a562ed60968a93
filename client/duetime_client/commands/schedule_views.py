"""Prints schedules: the table, a schedule's details, occurrences, runs and backfills, and the forecast."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich.text import Text

from duetime_client.commands.cost_views import show_estimate
from duetime_client.commands.formatting import STATE_STYLES, localized, shown_json, timed
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.tables import Column, one_line, show_lines, show_more, show_table, table_of
from duetime_client.commands.task_views import WIDE
from duetime_client.commands.times import distance, full_moment, span
from duetime_client.manifests.differences import SCHEDULE_DEFAULTS, non_default_fields
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime_client.commands.clock import Clock
    from duetime_client.schedule_models import Backfill, Forecast, ForecastPeriod, Occurrence, Schedule, ScheduleRun

_RUN_STYLES = {**STATE_STYLES, "skipped": "yellow", "missed": "bold red", "planned": "dim", "expired": "dim"}
SCHEDULE_STYLES = {"active": "green", "paused": "magenta", "ended": "dim"}
_SHOWN_SEPARATELY = frozenset({"timezone", "calendars", "start_at", "end_at", "dialect"})
_RULES = [(name, value) for name, value in SCHEDULE_DEFAULTS.items() if name not in _SHOWN_SEPARATELY]
"""Rules with their defaults; a detail view shows only rules that differ from the defaults."""


def show_details(schedule: Schedule, clock: Clock) -> None:
    """Print one schedule, with a line for each field that is set."""
    show_lines(_lines(schedule, clock))
    if schedule.estimate is not None:
        show_estimate(schedule.estimate)


def show_schedules(schedules: Sequence[Schedule], clock: Clock, *, more: bool = False) -> None:
    """Print schedules as a table."""
    now = clock.now()
    # On a narrow screen only names are cut, because a truncated timing could be misread.
    columns: list[Column[Schedule]] = [
        Column("name", lambda each: one_line(each.name)),
        Column("state", shown_state),
        Column("next run", lambda each: "" if each.next_at is None else timed(each.next_at, clock, now, units=1)),
        Column("when", lambda each: each.timing, folds=True),
    ]
    if console().width >= WIDE:
        if any(schedule.timezone != "UTC" for schedule in schedules):
            columns.append(Column("zone", lambda each: each.timezone))
        columns.append(Column("type", lambda each: one_line(str(each.task.get("type", "")))))
    show_table(schedules, columns, "no schedules")
    if more:
        show_more(schedules)


def show_preview(occurrences: Sequence[Occurrence], _: Clock) -> None:
    """Print the occurrences of a timing in the timing's own zone, and whether each occurrence runs."""
    columns: list[Column[Occurrence]] = [
        Column("time", lambda each: _local_time(each.local_time, "" if each.runs else "dim")),
        Column("decision", decision, folds=True),
    ]
    show_table(occurrences, columns, "no occurrences")


def show_occurrences(occurrences: Sequence[Occurrence], clock: Clock) -> None:
    """Print occurrences with their tasks."""
    columns: list[Column[Occurrence]] = [
        Column("time", _time_column(clock)),
        Column("task", lambda each: each.task_id or ""),
        Column("state", lambda each: printable(each.state or "", STATE_STYLES.get(each.state or "", ""))),
        Column("note", lambda each: each.note or "", folds=True),
    ]
    show_table(occurrences, columns, "no occurrences")


def show_runs(runs: Sequence[ScheduleRun], clock: Clock) -> None:
    """Print the results of a schedule's occurrences, newest first."""
    columns: list[Column[ScheduleRun]] = [
        Column("time", _time_column(clock)),
        Column("status", lambda each: printable(each.status, _RUN_STYLES.get(each.status, ""))),
        Column("cause", lambda each: each.cause),
        Column("task", lambda each: each.task_id or ""),
        Column("reason", lambda each: each.reason or "", folds=True),
    ]
    show_table(runs, columns, "no runs")


def _time_column(clock: Clock) -> Callable[[Occurrence | ScheduleRun], Text]:
    """A function that returns the time of a run in the schedule's zone, with its distance from now."""
    now = clock.now()
    return lambda each: _local_time(each.local_time).append(f" ({distance(each.scheduled_at, now, 1)})", "dim")


def show_backfills(backfills: Sequence[Backfill], clock: Clock) -> None:
    """Print backfills, each on one line."""
    for each in backfills:
        show_backfill(each, clock)
    if not backfills:
        console().print("no backfills", style="dim")


def show_backfill(backfill: Backfill, clock: Clock) -> None:
    """Print one backfill on a line."""
    console().print(printable(f"{backfill.id} {backfill_line(backfill, clock)}"))


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
        # The time has the occurrence's UTC offset, like all times in the table.
        offset = datetime.fromisoformat(occurrence.local_time).tzinfo
        text.append(f" at {occurrence.due_at.astimezone(offset).isoformat(' ', 'seconds')}")
    if occurrence.note:
        text.append(": ").append_text(printable(occurrence.note))
    return text


def shown_state(schedule: Schedule) -> Text:
    """A state in its color, with a mark if an expectation was missed."""
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


def _local_time(local: str, style: str = "") -> Text:
    """A local time with its offset, without the `T`."""
    return printable(local.replace("T", " ", 1), style)


def show_forecast(forecast: Forecast, clock: Clock) -> None:
    """Print the periods with planned runs, and the minutes in which several schedules begin."""
    out, now = console(), clock.now()
    planned = [each for each in forecast.periods if each.runs]
    columns: list[Column[ForecastPeriod]] = [
        Column("from", lambda each: timed(each.start_at, clock, now)),
        Column("runs", lambda each: str(each.runs), right=True),
        Column("schedules", _planned_schedules, folds=True),
    ]
    if planned:
        out.print(table_of(planned, columns))
    out.print(f"{counted(sum(each.runs for each in planned), 'run')} planned", style="" if planned else "dim")
    for collision in forecast.collisions:
        names = printable(", ".join(collision.schedules))
        out.print(Text.assemble(timed(collision.at, clock, now), " together: ", names))
    if not forecast.is_complete:
        out.print("there are more schedules than could be counted: only the first by name are included", style="yellow")


def _planned_schedules(period: ForecastPeriod) -> str:
    """The schedules with the most runs, and the number of runs of the other schedules."""
    others = period.runs - sum(each.runs for each in period.schedules)
    named = [f"{each.name} {each.runs}" for each in period.schedules]
    return ", ".join([*named, *([f"others {others}"] if others else [])])
