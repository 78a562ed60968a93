"""Tests the local stack's output."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from duetime_local.terminal import Display, commands_to_try


def test_the_suggested_commands_use_a_type_with_a_handler() -> None:
    """The suggested commands use `echo` or else the project's first type, whose payload is unknown and left out."""
    first, sent, listed = commands_to_try("http://x", ("ci.job", "echo"))
    assert first == "duetime tasks create echo --payload '\"hello\"' --in 3s --wait"
    assert sent.endswith("""-d '{"type": "echo", "payload": "hello", "delay_seconds": 3}'""")
    assert listed == "curl -s http://x/v1/tasks"
    first, sent, _ = commands_to_try("http://x", ("greet", "report"))
    assert first == "duetime tasks create greet --in 3s --wait"
    assert sent.endswith("""-d '{"type": "greet", "delay_seconds": 3}'""")


def test_without_a_handler_only_the_list_command_is_suggested() -> None:
    """Without a handler, only the command that lists tasks is suggested, because no task could run."""
    assert list(commands_to_try("http://x", ())) == ["curl -s http://x/v1/tasks"]


def test_a_note_is_shown_literally() -> None:
    """A path with brackets is shown unchanged, although brackets are the terminal library's markup."""
    screen = StringIO()
    Display(Console(file=screen)).note("Handlers in [red]app[/red] are reloaded")
    assert screen.getvalue() == "Handlers in [red]app[/red] are reloaded\n"
