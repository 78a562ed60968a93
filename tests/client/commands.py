"""Loads all `duetime` commands once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.main import get_command

from duetime_client.commands.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str, ...]
"""A command's words, without `duetime`."""


def _leaves(group: Any, context: Any, path: Path = ()) -> Iterator[tuple[Path, tuple[Any, Any]]]:  # noqa: ANN401 - typer's classes are private
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = type(context)(command, parent=context, info_name=name)
        if hasattr(command, "list_commands"):
            GROUPS[*path, name] = (command, inner)
            yield from _leaves(command, inner, (*path, name))
        else:
            yield (*path, name), (command, inner)


_ROOT = get_command(app)
GROUPS: dict[Path, tuple[Any, Any]] = {(): (_ROOT, _ROOT.make_context("duetime", [], resilient_parsing=True))}
COMMANDS = dict(_leaves(*GROUPS[()]))
"""Each command that is not a group, with its context."""
