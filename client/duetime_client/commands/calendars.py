"""`duetime calendars`: list, show, put, delete."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import printable, say
from duetime_client.commands.tables import Column, show_lines, show_table
from duetime_client.commands.target_arguments import reject_constant
from duetime_client.commands.task_options import IfMatch
from duetime_client.schedule_models import Calendar, CalendarFields

if TYPE_CHECKING:
    from duetime_client.literals import CalendarMode

app = CommandGroup(help="Manage calendars: times at which scheduled tasks may or may not run.", no_args_is_help=True)
CalendarName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the calendar.")]
ICALENDAR_SUFFIX = ".ics"
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SHOWN_DATES = 20
"""Number of dates that a detail view shows; --json lists all dates."""


@app.command("list")
@examples("duetime calendars list")
def list_calendars(call: Call) -> None:
    """List calendars; with --json, as one array."""
    with call.client() as client:
        found = list(client.calendars.list())
    call.show_all(found, show_calendars)


@app.command()
@examples("duetime calendars show uk")
def show(call: Call, name: CalendarName) -> None:
    """Show one calendar."""
    with call.client() as client:
        calendar = client.calendars.get(name)
    call.show(calendar, lambda calendar, _: show_lines(lines(calendar)))


@app.command()
@examples("duetime calendars put uk bank-holidays.ics --timezone Europe/London")
def put(
    call: Call,
    name: CalendarName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File with the calendar: JSON or iCalendar (.ics).")],
    *,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="For an .ics file: excludes (default) or includes.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="For an .ics file: time zone of its days; default: UTC.")
    ] = None,
    if_match: IfMatch = None,
) -> None:
    """Create a calendar from a file, or replace it completely."""
    is_icalendar = file.suffix.lower() == ICALENDAR_SUFFIX
    if not is_icalendar and (mode or timezone):
        raise typer.BadParameter("is for .ics files", param_hint="--mode" if mode else "--timezone")
    data = content_of(file)
    fields = None if is_icalendar else fields_of(data)
    with call.client() as client:
        if fields is None:
            calendar = client.calendars.put_icalendar(
                name, data, mode=cast("CalendarMode | None", mode), timezone=timezone, if_match=if_match
            )
        else:
            calendar = client.calendars.put(name, if_match=if_match, **fields)
    call.show(calendar, lambda calendar, _: show_lines(lines(calendar)))


@app.command()
@examples("duetime calendars delete uk")
def delete(call: Call, name: CalendarName, *, if_match: IfMatch = None) -> None:
    """Delete a calendar that no schedule uses."""
    with call.client() as client:
        calendar = client.calendars.delete(name, if_match=if_match)
    call.show(calendar, lambda calendar, _: say(f"deleted the calendar {calendar.name}"))


def content_of(file: Path) -> bytes:
    """Read the bytes of the file given as an argument."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error


def fields_of(data: bytes) -> CalendarFields:
    """Read the calendar's fields from a JSON file."""
    try:
        fields = json.loads(data, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="FILE") from error
    if not isinstance(fields, dict):
        raise typer.BadParameter("should be a JSON object", param_hint="FILE")
    fields.pop("name", None)
    return fields  # type: ignore[return-value] # the API validates the fields


def show_calendars(calendars: Sequence[Calendar], _: Clock) -> None:
    """Print calendars as a table."""
    columns: list[Column[Calendar]] = [
        Column("name", lambda each: each.name),
        Column("mode", lambda each: each.mode),
        Column("zone", lambda each: each.timezone),
        Column("dates", lambda each: str(len(each.dates) or ""), right=True),
        Column("weekdays", lambda each: str(len(each.weekdays) or ""), right=True),
        Column("windows", lambda each: str(len(each.windows) or ""), right=True),
        Column("spans", lambda each: str(len(each.spans) or ""), right=True),
        Column("known until", known_until),
    ]
    show_table(calendars, columns, "no calendars")


def lines(calendar: Calendar) -> Iterator[tuple[str, Text]]:
    """The lines of a calendar's detail view."""
    yield "name", printable(calendar.name)
    yield "work runs", Text("at other times only" if calendar.mode == "excludes" else "at these times only")
    yield "zone", printable(calendar.timezone)
    yield "known until", known_until(calendar)
    if calendar.weekdays:
        yield "weekdays", printable(" ".join(calendar.weekdays))
    parts = (
        ("dates", [f"{day} {label}" for day, label in sorted(calendar.dates.items())]),
        ("except", [*calendar.except_dates]),
        ("windows", [worded(window) for window in calendar.windows]),
        ("spans", [worded(span) for span in calendar.spans]),
    )
    for label, texts in parts:
        for index, text in enumerate(texts[:_SHOWN_DATES]):
            yield "" if index else label, printable(text.rstrip())
        if len(texts) > _SHOWN_DATES:
            yield "", Text(f"… {len(texts) - _SHOWN_DATES} more (--json shows all)", "dim")


def known_until(calendar: Calendar) -> Text:
    """The time until which the calendar's times are known, as text."""
    if calendar.known_until is None:
        return Text("always", "dim")
    return Text(f"{calendar.known_until.astimezone(UTC):%Y-%m-%dT%H:%MZ}")


def worded(part: Mapping[str, object]) -> str:
    """A window or a span as text."""
    weekdays = part.get("weekdays")
    days = " ".join(map(str, weekdays)) if isinstance(weekdays, list) and len(weekdays) < len(WEEK) else ""
    words = (part.get("start"), "to", part.get("end"), days, part.get("label"), part.get("reason"))
    return " ".join(str(word) for word in words if word)
