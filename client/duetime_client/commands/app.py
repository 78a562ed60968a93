"""The root of the `duetime` command."""

from typing import Annotated

import typer

from duetime_client.commands.command_help import examples
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.plugins import PluggableGroup

app = CommandGroup(
    cls=PluggableGroup,
    help="Create and control the tasks of a duetime deployment.",
    no_args_is_help=True,
    # All commands have these settings, because the Click contexts of commands inherit them.
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def show_version(*, requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        print_version()
        raise typer.Exit


@app.command("version", hidden=True)
@examples("duetime version")
def print_version() -> None:
    """Show the version."""
    from importlib.metadata import version  # noqa: PLC0415 - its import takes a tenth of a command's time

    typer.echo(f"duetime {version('duetime-client')}")


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
