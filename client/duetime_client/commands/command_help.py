"""Shortens help to one screen with the most-used options, the names of the other options, and examples.

`--help-all` describes every option. A screen has at least 24 lines; typer's own tables take five lines for an option.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    # Typer has no public name for the base of its context and commands.
    from typer._click import Context, HelpFormatter
    from typer._click.core import Parameter

C = TypeVar("C", bound="Callable[..., Any]")

OPTIONS = "Options"
SHOWN = ("Timing", OPTIONS)
"""Panels whose options `--help` describes; it lists other options by name only."""
LAST = ("Output", "Deployment")
"""Panels that nearly every command has, shown last."""
COMMON = "Common"
SCREEN = 30
"""Number of lines that help may take."""
NAME_WIDTH = 26
WIDEST = 100
_EXAMPLES = "examples"
_OWN_FLAGS = frozenset({"help", "install_completion", "show_completion"})


def examples(*lines: str) -> Callable[[C], C]:
    """Add examples that the command's help shows."""

    def decorate(command: C) -> C:
        setattr(command, _EXAMPLES, lines)
        return command

    return decorate


def examples_of(command: object) -> Sequence[str]:
    """The examples of a command."""
    found: Sequence[str] = getattr(command, _EXAMPLES, ())
    return found


def _with_values(parameters: list[Parameter]) -> list[Parameter]:
    """Give Typer's own flags a default; without a default, every command would import pydantic."""
    for parameter in parameters:
        if parameter.name in _OWN_FLAGS:
            parameter.default = False
    return parameters


class HelpfulCommand(TyperCommand):
    """A command whose help fits a screen."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Its parameters."""
        return _with_values(super().get_params(ctx))

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - as in the base class
        """Print the help."""
        _print(help_lines(self, ctx))


class HelpfulGroup(TyperGroup):
    """A group of commands with the same help format as its commands."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Its parameters."""
        return _with_values(super().get_params(ctx))

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - as in the base class
        """Print the help."""
        _print(group_help_lines(self, ctx))


def _show_all(context: typer.Context, *, requested: bool) -> None:
    if requested and isinstance(context.command, HelpfulCommand):
        _print(help_lines(context.command, context, every=True))
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        callback=lambda ctx, value: _show_all(ctx, requested=value),
        is_eager=True,
        help="Describe every option.",
    ),
]


def _print(lines: Iterable[Text]) -> None:
    from duetime_client.commands.output_streams import console  # noqa: PLC0415 - it imports modules that a list of commands does not need

    out = console()
    for line in lines:
        out.print(line, soft_wrap=True)


def _width() -> int:
    from rich.console import Console  # noqa: PLC0415 - as above

    return min(Console().width, WIDEST)


def help_lines(command: TyperCommand, ctx: Context, *, every: bool = False) -> list[Text]:
    """The help of a command, cut to one screen; with `every`, all options are described."""
    panels = _panels(command)
    shown = [name for name in panels if every or name in SHOWN]
    lines = list(_help_lines(command, ctx, panels, shown))
    if len(lines) > SCREEN and not every:
        # The first panel holds the command's main options.
        lines = list(_help_lines(command, ctx, panels, shown[:1], is_cut=True))
    return lines


def _help_lines(
    command: TyperCommand, ctx: Context, panels: Mapping[str, list[Any]], shown: Sequence[str], *, is_cut: bool = False
) -> Iterator[Text]:
    yield from _head(command, ctx, is_cut=is_cut)
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    if arguments:
        yield from _panel("Arguments", [_argument(each) for each in arguments])
    for name in shown:
        yield from _panel(name, [_option(each, ctx) for each in panels[name]], is_cut=is_cut)
    others = {name: found for name, found in panels.items() if name not in shown}
    if others:
        rows = [(name, _names(found)) for name, found in others.items() if name not in LAST]
        common = [each for name in LAST for each in others.get(name, ())]
        rows += [(COMMON, _names(common))] if common else []
        yield from _panel("More options, described by --help-all", rows)
    if command.epilog:
        yield from _heading("Examples")
        for line in command.epilog.splitlines():
            yield Text(f"  {line}")


def group_help_lines(group: TyperGroup, ctx: Context) -> Iterator[Text]:
    """The help of a group: its commands, each with a short summary."""
    yield from _head(group, ctx)
    commands = [(name, group.get_command(ctx, name)) for name in group.list_commands(ctx)]
    shown = [(name, each) for name, each in commands if each is not None and not each.hidden]
    yield from _panel("Commands", [(name, _first_line(each.help)) for name, each in shown])
    options = [max(each.opts, key=len) for each in group.params if not getattr(each, "hidden", False)]
    if options:
        yield Text.assemble((f"{OPTIONS}  ", "bold"), (" ".join(options), "cyan"))
    yield Text(f"{ctx.command_path} COMMAND -h shows the options and examples of a command.", style="dim")


def _head(command: TyperCommand | TyperGroup, ctx: Context, *, is_cut: bool = False) -> Iterator[Text]:
    usage = Text.assemble(("Usage: ", "bold"), ctx.command_path)
    for piece in command.collect_usage_pieces(ctx):
        # An argument's own metavar may already have brackets.
        usage.append(f" {piece.strip('{}').replace('[[', '[').replace(']]', ']')}")
    yield usage
    for paragraph in (command.help or "").split("\n\n")[: 1 if is_cut else None]:
        yield Text()
        for line in textwrap.wrap(" ".join(paragraph.split()), _width(), break_on_hyphens=False):
            yield Text(line)


def _first_line(text: str | None) -> str:
    """The summary of a command in a list, without the details after a colon or semicolon."""
    return re.split("[;:] ", (text or "").split("\n", 1)[0], maxsplit=1)[0].removesuffix(".")


def _panels(command: TyperCommand) -> dict[str, list[Any]]:
    """The options by panel, in display order; `--help` itself is omitted."""
    found: dict[str, list[Any]] = {OPTIONS: []}
    for each in command.params:
        if each.param_type_name == "option" and not getattr(each, "hidden", False) and each.name != "help_all":
            found.setdefault(getattr(each, "rich_help_panel", None) or OPTIONS, []).append(each)
    first = [name for name in SHOWN if found.get(name)]
    middle = [name for name in found if name not in SHOWN and name not in LAST]
    return {name: found[name] for name in (*first, *middle, *(name for name in LAST if name in found))}


def _names(options: Sequence[Any]) -> str:
    return " ".join(max(each.opts, key=len) for each in options)


def _heading(title: str) -> Iterator[Text]:
    yield Text()
    yield Text(title, style="bold")


def _panel(title: str, rows: Sequence[tuple[str, str]], *, is_cut: bool = False) -> Iterator[Text]:
    """A heading, and a row for each name with its description or only the description's first line."""
    yield from _heading(title)
    column = min(NAME_WIDTH, max((len(name) for name, _ in rows), default=0)) + 2
    for name, description in rows:
        room = max(20, _width() - column - 2)
        wrapped = textwrap.wrap(description, room, break_on_hyphens=False) or [""]
        if is_cut:
            wrapped = [textwrap.shorten(description, room, placeholder=" …", break_on_hyphens=False)]
        beside = len(name) + 2 <= column
        head = Text("  ").append(name.ljust(column), style="cyan")
        yield head.append(wrapped[0]) if beside else Text(f"  {name}", style="cyan")
        for line in wrapped[1 if beside else 0 :]:
            yield Text(" " * (column + 2) + line)


def _argument(each: Any) -> tuple[str, str]:  # noqa: ANN401 - typer's classes of parameters are private
    return str(each.metavar or each.name.upper()).strip("[]"), each.help or ""


def _option(each: Any, ctx: Context) -> tuple[str, str]:  # noqa: ANN401 - as above
    """An option's names and value, and the option's help with default and environment variable."""
    names = ", ".join(sorted(each.opts, key=len))
    if each.secondary_opts:
        names = names.replace("--", "--[no-]", 1)
    kind = "" if each.is_flag else f" {_kind(each, ctx)}"
    return f"{names}{kind}", " ".join(filter(None, (each.help or "", *_facts(each))))


def _kind(each: Any, ctx: Context) -> str:  # noqa: ANN401 - as above
    return str(each.metavar or each.display_type(ctx).strip("<>").removeprefix("list[").removesuffix("]"))


def _facts(each: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    default = getattr(each.default, "value", each.default)
    if isinstance(each.show_default, str):
        yield f"[default: {each.show_default}]"
    elif each.show_default and default not in {None, False, ""} and not callable(default):
        yield f"[default: {default}]"
    if each.envvar:
        yield f"[{each.envvar}]"
    if each.required:
        yield "[required]"
