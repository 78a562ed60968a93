"""The root of the `duetime` command."""

from importlib.metadata import version
from typing import Annotated

import typer

from duetime_client.commands import (
    archive,
    bulk_operations,
    calendars,
    dead_letters,
    locks,
    logs,
    schedules,
    summary,
    switches,
    task_control,
    tasks,
    topologies,
    verify,
    watch,
    why,
    worker,
)
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.plugins import PluggableGroup

app = CommandGroup(
    cls=PluggableGroup,
    help="Create and control the tasks of a duetime deployment.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
tasks.app.add_typer(task_control.app)
app.add_typer(tasks.app, name="tasks")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(bulk_operations.app, name="bulk")
app.add_typer(locks.app, name="locks")
app.add_typer(schedules.app, name="schedules")
app.add_typer(calendars.app, name="calendars")
app.add_typer(switches.app, name="switches")
app.add_typer(topologies.app, name="topologies")
app.add_typer(worker.app, name="worker")
app.add_typer(archive.app, name="archive")
app.command("why")(why.why)
app.command("logs")(logs.show_logs)
app.command("summary")(summary.summary)
app.command("verify")(verify.verify)
app.command("watch")(watch.watch)


def show_version(*, requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        typer.echo(f"duetime {version('duetime-client')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda requested: show_version(requested=requested),
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Create and control the tasks of a duetime deployment."""
