"""Tests that every `duetime` command on a page can be parsed."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest
import typer
from typer.core import TyperGroup

from duetime_client.commands.app import app
from tests.docs.pages import PAGES, ROOT, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT_COMMAND = typer.main.get_command(app)
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""The error that typer raises for an invalid command line, for which typer has no public name."""
COMMANDS_OF_PAGES = sorted({*PAGES, ROOT / "client" / "README.md"})
RUNBOOK = ROOT / "docs" / "how-to" / "respond-to-an-alarm.md"
"""The runbook, whose commands are complete even in the text, because users copy them from there."""
_FENCE = re.compile(r"^ *```(?:console|sh|bash|shell)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"^ *(?:\$ )?(?:[A-Z_]+=\S+ |uvx? (?:tool )?run |\.venv/bin/)*duetime (?P<rest>.*)$")
_SPAN = re.compile(r"`duetime\s+([^`]+)`")
_NO_COMMAND = {"task"}
"""Words after `duetime` that are not commands, because events have the detail type `duetime task`."""
_REDIRECTION = re.compile(r"\s(?:[|>&]|2>).*$|\s#.*$")
_FILE = re.compile(r"\w[\w./-]*\.(?:json|ics|ya?ml|txt)")
_PLACEHOLDER = re.compile(r"[…<]|\.\.\.")


def shown_in(text: str) -> Iterator[str]:
    """Return the arguments of `duetime` in a page's blocks, where command lines are complete."""
    for block in _FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if (found := _CALL.match(line)) is not None:
                yield _REDIRECTION.sub("", found["rest"])


def named_in(text: str) -> Iterator[str]:
    """Return the arguments of `duetime` in a page's text, where command lines can be incomplete."""
    return (
        each
        for each in _SPAN.findall(_FENCE.sub("", text))
        if not _PLACEHOLDER.search(each) and each not in _NO_COMMAND
    )


def check(arguments: list[str], *, whole: bool) -> None:
    """Parse a command line as if it were run; if the line is incomplete, check only its commands and options.

    Raises:
        USAGE_ERROR: a command, option or value does not exist, or is missing.
    """
    command, context = ROOT_COMMAND, typer.Context(ROOT_COMMAND, info_name="duetime", **ROOT_COMMAND.context_settings)
    while isinstance(command, TyperGroup) and arguments and not arguments[0].startswith("-"):
        _, found, arguments = command.resolve_command(context, arguments)
        assert found is not None
        command, context = found, typer.Context(found, parent=context, info_name=found.name)
    if whole:
        command.make_context(command.name or "", arguments, parent=context.parent)
        return
    known = {name for each in command.get_params(context) for name in (*each.opts, *each.secondary_opts)}
    if unknown := [each for each in arguments if each.startswith("--") and each.partition("=")[0] not in known]:
        raise USAGE_ERROR(f"no such option: {unknown[0]}")


@pytest.mark.parametrize("page", COMMANDS_OF_PAGES, ids=name_of)
def test_every_command_on_a_page_is_valid(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names, options, values and arguments of each command are parsed, but nothing is run."""
    monkeypatch.setenv("DUETIME_URL", "https://api.example.org")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    refused: list[str] = []
    for whole, lines in ((True, shown_in(text)), (page == RUNBOOK, named_in(text))):
        for line in lines:
            try:
                arguments = shlex.split(line)
                for name in filter(_FILE.fullmatch, arguments):
                    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                    (tmp_path / name).touch()
                check(arguments, whole=whole)
            except typer.Exit:
                continue
            except (USAGE_ERROR, ValueError) as error:
                refused.append(f"duetime {line}: {error}")
    assert refused == []


def test_the_check_finds_commands_on_pages() -> None:
    """The check finds commands on the pages, and fails for a wrong command."""
    found = [line for page in COMMANDS_OF_PAGES for line in shown_in(page.read_text(encoding="utf-8"))]
    assert len(found) > 50
    for wrong in ("tasks remove x", "schedules list --color red", "tasks cancel --type", "schedules show"):
        with pytest.raises(USAGE_ERROR):
            check(wrong.split(), whole=True)
