"""The help of every command: it fits a screen, and its examples are commands that can be typed."""

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
    """The lines of a command's help."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = help_lines(*COMMANDS[path], every=every) if path in COMMANDS else group_help_lines(*GROUPS[path])
    return "\n".join(line.plain for line in lines).splitlines()


@EVERY_COMMAND
def test_every_command_has_examples_that_parse(path: Path, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example in the help names its own command, and its options parse."""
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
        # Parses only: nothing runs.
        command.make_context(path[-1], words[1 + len(path) :], parent=context.parent)


@EVERY_COMMAND
def test_help_fits_a_screen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wrapped by the terminal, but for an example; tasks and schedules have options for a few more."""
    more = {"schedules": 12, "tasks": 9}
    most = SCREEN + max((lines for group, lines in more.items() if group in path), default=0)
    for columns in (80, 100):
        lines = _help(path, columns, monkeypatch)
        assert len(lines) <= most
        assert max(map(len, lines[: lines.index("Examples")])) <= columns


@pytest.mark.parametrize("path", sorted(GROUPS), ids=" ".join)
def test_the_help_of_a_group_fits_a_screen(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group's help lists its commands in one or two lines each; the list of all commands takes a few more."""
    assert len(_help(path, 80, monkeypatch)) <= (SCREEN if path else SCREEN + 19)


@EVERY_COMMAND
def test_help_names_every_option_and_help_all_describes_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options that `--help` does not describe are named by it, and described by `--help-all`."""
    command, _ = COMMANDS[path]
    short = "\n".join(_help(path, 80, monkeypatch))
    long = " ".join(" ".join(_help(path, 80, monkeypatch, every=True)).split())
    for each in command.params:
        if each.param_type_name == "option" and each.name != "help_all":
            assert max(each.opts, key=len).removeprefix("--") in short
            assert " ".join(str(each.help).split()) in long


def test_help_and_help_all_are_options_of_a_command() -> None:
    """The short form is shorter, both end well, and neither needs the arguments."""
    short, long = (CliRunner().invoke(app, ["tasks", "create", option]) for option in ("-h", "--help-all"))
    assert (short.exit_code, long.exit_code) == (0, 0)
    assert "--max-attempts N" not in short.stdout
    assert "--max-attempts N" in long.stdout


def test_a_wrong_name_is_corrected() -> None:
    """A misspelt command, option or value is reported with a suggestion and exit code 2."""
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
