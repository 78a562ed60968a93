"""Sub-commands of other packages: entry points of the group `duetime.commands`, typer apps or deferred commands."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import typer
from typer._click.exceptions import NoSuchOption, UsageError
from typer.main import get_command, get_group

from duetime_client.commands.command_help import HelpfulGroup
from duetime_client.commands.deferred_commands import BUILTIN, DeferredCommand
from duetime_client.commands.usage_errors import plain, suggesting
from duetime_client.errors import ClientError

if TYPE_CHECKING:
    # Typer has no public name for the base of its context and commands.
    from importlib.metadata import EntryPoint

    from typer._click import Command, Context, HelpFormatter

GROUP = "duetime.commands"
DISTRIBUTIONS = {"dev": "duetime-local", "local": "duetime-local"}
"""Commands that another duetime distribution provides."""


class PluginBroken(ClientError):
    """The sub-command of an installed package cannot be loaded."""

    def __init__(self, plugin: EntryPoint, reason: BaseException) -> None:
        super().__init__(
            f"the command {plugin.name!r} of {plugin.value} cannot be loaded: {type(reason).__name__}: {reason}"
        )


class PluggableGroup(HelpfulGroup):
    """A group that imports a command only when it runs."""

    _summaries_only = False

    def invoke(self, ctx: Context) -> Any:  # noqa: ANN401 - as the base class
        """Run the command; invalid options are reported in plain words."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if isinstance(error, NoSuchOption):
                error.message, error.possibilities = suggesting(error), ()
            error.message = plain(error.message)
            raise

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Resolve a command by name; an unknown name raises an error with suggestions, including plugins."""
        name = args[0] if args else "-"
        # The list of plugins is not read for built-in commands, because that would make them a tenth slower.
        if not name.startswith("-") and name not in BUILTIN and name not in (known := self.list_commands(ctx)):
            matches = get_close_matches(name, known)
            meant = f" Did you mean {', '.join(map(repr, matches))}?" if matches else ""
            if brought_by := DISTRIBUTIONS.get(name):
                meant = f" It comes with {brought_by}: pip install {brought_by}"
            ctx.fail(f"No such command {name!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Print the help; this package's commands are summarized without being imported."""
        self._summaries_only = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._summaries_only = False

    def list_commands(self, ctx: Context) -> list[str]:
        """Names of the built-in commands, then of the plugins."""
        own = [*BUILTIN, *super().list_commands(ctx)]
        return [*own, *(name for name in sorted(plugins()) if name not in own)]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The built-in command with this name, else the plugin's command."""
        if cmd_name in BUILTIN:
            builtin = BUILTIN[cmd_name]
            return builtin.summarized() if self._summaries_only else builtin.load()
        own = super().get_command(ctx, cmd_name)
        plugin = None if own else plugins().get(cmd_name)
        return own or (loaded(plugin, summary_only=self._summaries_only) if plugin else None)


def plugins() -> dict[str, EntryPoint]:
    """The plugins that are installed, by the name of their command."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - built-in commands run without it, a tenth faster

    return {plugin.name: plugin for plugin in entry_points(group=GROUP)}


def loaded(plugin: EntryPoint, *, summary_only: bool = False) -> Command:
    """The plugin's command, or a command that reports why the plugin cannot be loaded."""
    try:
        found = plugin.load()
        if isinstance(found, DeferredCommand):
            command: Command = found.summarized() if summary_only else found.load()
        else:
            command = get_group(found)
    except Exception as error:  # noqa: BLE001 - whatever a plugin does while it loads, the others must work
        command = broken(PluginBroken(plugin, error))
    command.name = plugin.name
    return command


def broken(error: PluginBroken) -> Command:
    """A command that accepts any arguments and reports why its plugin cannot be loaded."""
    from duetime_client.commands.messages import show_error  # noqa: PLC0415 - needs the client, as help does not

    stand_in = typer.Typer(add_completion=False)

    @stand_in.command(
        help="(cannot be loaded)",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        add_help_option=False,
    )
    def report() -> None:
        show_error(error)
        raise typer.Exit(1)

    return get_command(stand_in)
