"""A table of the runs that schedules plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from duetime_client.commands.formatting import timed
from duetime_client.commands.output_streams import console, printable
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from duetime_client.commands.clock import Clock
    from duetime_client.schedule_models import Forecast, ForecastPeriod


def show_forecast(forecast: Forecast, clock: Clock) -> None:
    """Print the periods with planned runs, and the minutes in which several schedules begin."""
    out, now = console(), clock.now()
    planned = [each for each in forecast.periods if each.runs]
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("from", no_wrap=True)
    table.add_column("runs", justify="right")
    table.add_column("schedules", overflow="fold")
    for each in planned:
        table.add_row(timed(each.start_at, clock, now), str(each.runs), printable(_schedules(each)))
    if planned:
        out.print(table)
    out.print(f"{counted(sum(each.runs for each in planned), 'run')} planned", style="" if planned else "dim")
    for collision in forecast.collisions:
        names = printable(", ".join(collision.schedules))
        out.print(Text.assemble(timed(collision.at, clock, now), " together: ", names))
    if not forecast.is_complete:
        out.print("there are more schedules than a forecast counts: the first by name are in it", style="yellow")


def _schedules(period: ForecastPeriod) -> str:
    """The schedules with the most runs, and the number of runs of the others."""
    others = period.runs - sum(each.runs for each in period.schedules)
    named = [f"{each.name} {each.runs}" for each in period.schedules]
    return ", ".join([*named, *([f"others {others}"] if others else [])])
