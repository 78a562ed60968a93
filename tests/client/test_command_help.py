"""Tests that every command's help fits a screen, and that the examples in the help are valid commands."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app
from duetime_client.commands.command_help import SCREEN, group_help_lines, help_lines
from tests.client.commands import COMMANDS, GROUPS

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from tests.client.commands import Path

EVERY_COMMAND = pytest.mark.parametrize("path", sorted(COMMANDS), ids=" ".join)


def _help(path: Path, columns: int, monkeypatch: pytest.MonkeyPatch, *, every: bool = False) -> list[str]:
    """Return the lines of a command's help."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = help_lines(*COMMANDS[path], every=every) if path in COMMANDS else group_help_lines(*GROUPS[path])
    return "\n".join(line.plain for line in lines).splitlines()


@EVERY_COMMAND
def test_every_command_has_examples_that_parse(path: Path, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example in a command's help calls the command with options that can be parsed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.json").touch()
    (tmp_path / "nightly.json").touch()
    (tmp_path / "order-placed.json").touch()
    (tmp_path / "bank-holidays.ics").touch()
    command, context = COMMANDS[path]
    lines = _help(path, 80, monkeypatch)
    found = [shlex.split(line) for line in lines[lines.index("Examples") + 1 :]]
    assert found
    for words in found:
        assert words[: 1 + len(path)] == ["duetime", *path]
        # The command is only parsed; nothing runs.
        command.make_context(path[-1], words[1 + len(path) :], parent=context.parent)


@EVERY_COMMAND
def test_help_fits_a_screen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help lines do not wrap, except for examples; the help of tasks and schedules may be a few lines longer."""
    more = {"schedules": 12, "tasks": 9}
    most = SCREEN + max((lines for group, lines in more.items() if group in path), default=0)
    for columns in (80, 100):
        lines = _help(path, columns, monkeypatch)
        assert len(lines) <= most
        assert max(map(len, lines[: lines.index("Examples")])) <= columns


@pytest.mark.parametrize("path", sorted(GROUPS), ids=" ".join)
def test_the_help_of_a_group_fits_a_screen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group's help lists each command in one or two lines; the list of all commands may be a few lines longer."""
    assert len(_help(path, 80, monkeypatch)) <= (SCREEN if path else SCREEN + 19)


@EVERY_COMMAND
def test_help_names_every_option_and_help_all_describes_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--help` names every option, even options that it does not describe, and `--help-all` describes every option."""
    command, _ = COMMANDS[path]
    short = "\n".join(_help(path, 80, monkeypatch))
    long = " ".join(" ".join(_help(path, 80, monkeypatch, every=True)).split())
    for each in command.params:
        if each.param_type_name == "option" and each.name != "help_all":
            assert max(each.opts, key=len).removeprefix("--") in short
            assert " ".join(str(each.help).split()) in long


def test_help_and_help_all_are_options_of_a_command() -> None:
    """`--help` is shorter than `--help-all`; both exit with code 0 and work without the command's arguments."""
    short, long = (CliRunner().invoke(app, ["tasks", "create", option]) for option in ("-h", "--help-all"))
    assert (short.exit_code, long.exit_code) == (0, 0)
    assert "--max-attempts N" not in short.stdout
    assert "--max-attempts N" in long.stdout


def test_a_misspelled_name_is_reported_with_a_suggestion() -> None:
    """A misspelled command, option or value is reported with a suggestion and exit code 2."""
    for words, meant in {
        "tsks list": "Did you mean 'tasks'?",
        "tasks lst": "Did you mean 'list'?",
        "schedules backfils list x": "Did you mean 'backfills'?",
        "tasks create x --paylod 1": "Did you mean --payload",
        "tasks create x --ttl 60": "Did you mean --expires?",
        "tasks create x --countdown 60": "Did you mean --in?",
        "tasks create x --webhook https://example.org": "Did you mean --callback-url?",
        "tasks create x --max_retry 3": "Did you mean --max-attempts?",
        "tasks create x --priority hihg": "Did you mean 'high'?",
    }.items():
        result = CliRunner().invoke(app, words.split())
        assert (result.exit_code, meant in result.stderr) == (2, True), result.stderr
