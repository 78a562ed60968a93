"""Checks the `duetime` commands in the console's source without a browser."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import typer

from infra import ROOT
from tests.docs.test_commands import USAGE_ERROR, check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

SOURCES = sorted((ROOT / "console" / "src").rglob("*.ts*"))
_SHOWN = re.compile(r"""<Command text=(?:"(?P<plain>[^"]*)"|\{(?P<quote>['`])(?P<code>.*?)(?P=quote)\})""")
_BUILT = re.compile(r"\bcommand\((?P<words>(?:[^()]|\([^()]*\))*)\)")
_NAME = re.compile(r'"[^"]*"(?:, "[^"]*")*')
_LITERAL = re.compile(r'"([^"]*)"')
_VALUE = re.compile(r"\$\{[^}]*\}")
_FILE = re.compile(r"[\w-]+\.(?:json|ics)")
_OPTION = re.compile(r'path: "(?P<path>[a-z_.]+)".*?option: "(?P<option>--[a-z-]+)"')
_OF_ONE_TASK = ("due_at", "unique", "debounce", "order", "group")
_NOT_OF_AN_UPDATE = "--allow-unknown-type"
"""The form shows no command for a change with this option."""


def _shown() -> Iterator[str]:
    """The commands that pages show as examples."""
    for source in SOURCES:
        for found in _SHOWN.finditer(source.read_text(encoding="utf-8")):
            yield _VALUE.sub("2026-11-01", found["plain"] or found["code"])


def _built() -> Iterator[list[str]]:
    """The name and the options of each command that a page builds, unless a part of the name is a variable."""
    for source in SOURCES:
        for found in _BUILT.finditer(source.read_text(encoding="utf-8")):
            name = _NAME.match(found["words"])
            first = _LITERAL.findall(name[0]) if name else []
            if len(first) > 1 or first == ["why"]:
                yield [*first, *(word for word in _LITERAL.findall(found["words"]) if word.startswith("--"))]


def _refusal(arguments: list[str], *, whole: bool) -> str:
    try:
        check(arguments, whole=whole)
    except typer.Exit:
        return ""
    except (USAGE_ERROR, ValueError) as error:
        return f"duetime {shlex.join(arguments)}: {error}"
    return ""


def test_every_shown_command_is_valid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The examples on empty pages and on the settings page can be run as they are."""
    monkeypatch.setenv("DUETIME_URL", "https://api.example.org")
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(each)[1:] for each in _shown() if each.startswith("duetime ")]
    assert len(lines) > 10
    for name in {word for line in lines for word in line if _FILE.fullmatch(word)}:
        (tmp_path / name).touch()
    assert [refused for line in lines if (refused := _refusal(line, whole=True))] == []


def test_every_built_command_has_only_known_options() -> None:
    """Each command exists, with its options and `--owner`."""
    found = list(_built())
    assert len(found) > 20
    refused = [refusal for words in found if (refusal := _refusal([*words, "--owner"], whole=False))]
    assert refused == []


def test_the_options_of_tasks_are_options_of_the_commands() -> None:
    """The form's options exist in the commands that create tasks and schedules."""
    text = (ROOT / "console" / "src" / "components" / "task_options.tsx").read_text(encoding="utf-8")
    options = [(found["path"].split(".")[0], found["option"]) for found in _OPTION.finditer(text)]
    of_schedules = [option for field, option in options if field not in _OF_ONE_TASK]
    assert len(of_schedules) > 20
    assert _refusal(["tasks", "create", *(option for _, option in options)], whole=False) == ""
    assert _refusal(["schedules", "create", *of_schedules], whole=False) == ""
    of_updates = [option for option in of_schedules if option != _NOT_OF_AN_UPDATE]
    assert _refusal(["schedules", "update", *of_updates], whole=False) == ""
