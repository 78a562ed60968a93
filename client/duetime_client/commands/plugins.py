"""Sub-commands of other packages: every entry point of the group `duetime.commands` is a typer app."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from duetime_client.commands.messages import show_error
from duetime_client.commands.usage_errors import plain
from duetime_client.errors import ClientError

if TYPE_CHECKING:
    # Typer names the base of its context and commands in no public module.
    from typer._click import Command, Context

GROUP = "duetime.commands"


class PluginBroken(ClientError):
    """The sub-command of an installed package cannot be loaded."""

    def __init__(self, plugin: EntryPoint, reason: BaseException) -> None:
        super().__init__(
            f"the command {plugin.name!r} of {plugin.value} cannot be loaded: {type(reason).__name__}: {reason}"
        )


class PluggableGroup(TyperGroup):
    """A group that loads a plugin only when its command or the list of commands is needed."""

    def invoke(self, ctx: Context) -> Any:  # noqa: ANN401 - as the base class
        """Run the command; an option that it cannot read is reported in plain words."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = plain(error.message)
            raise

    def list_commands(self, ctx: Context) -> list[str]:
        """Names of the built-in commands, then of the plugins."""
        own = super().list_commands(ctx)
        return [*own, *(name for name in sorted(plugins()) if name not in own)]

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The built-in command of this name, or else the plugin's."""
        own = super().get_command(ctx, cmd_name)
        plugin = plugins().get(cmd_name)
        return own or (loaded(plugin) if plugin else None)


def plugins() -> dict[str, EntryPoint]:
    """The plugins that are installed, by the name of their command."""
    return {plugin.name: plugin for plugin in entry_points(group=GROUP)}


def loaded(plugin: EntryPoint) -> Command:
    """The plugin's command, or one that reports why it cannot be loaded."""
    try:
        command: Command = get_group(plugin.load())
    except Exception as error:  # noqa: BLE001 - whatever a plugin does while it loads, the others must work
        command = broken(PluginBroken(plugin, error))
    command.name = plugin.name
    return command


def broken(error: PluginBroken) -> Command:
    """A command that reports why its plugin cannot be loaded, whatever its arguments are."""
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
