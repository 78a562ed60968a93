"""Tests shell completion with the script that `duetime --install-completion` installs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from duetime.domain.tasks.states import State
from duetime_client.commands.app import app
from duetime_client.commands.completions import STATES

if TYPE_CHECKING:
    from pathlib import Path


def _completed(line: str) -> list[str]:
    words = line.split(" ")
    environ = {"_DUETIME_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(app, [], prog_name="duetime", env=environ).stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("duetime sched", ["schedules"]),
        ("duetime tasks cr", ["create"]),
        ("duetime schedules backfills ", ["list", "show", "create", "cancel"]),
        ("duetime tasks create mail --prio", ["--priority"]),
        ("duetime tasks create mail --priority h", ["high"]),
        ("duetime tasks list -o js", ["json", "jsonl"]),
        ("duetime tasks list --state fai", ["failed"]),
        ("duetime watch --mine --state ru", ["running"]),
    ],
)
def test_commands_options_and_values_are_completed(line: str, found: list[str]) -> None:
    """Commands on every level, options, and option values from a fixed list are completed."""
    assert _completed(line) == found


def test_contexts_are_completed_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Added contexts and `local` are completed, but nothing is completed if the contexts file is broken."""
    file = tmp_path / "contexts.json"
    monkeypatch.setenv("DUETIME_CONTEXTS", str(file))
    assert _completed("duetime context use ") == ["local"]
    CliRunner().invoke(app, ["context", "add", "prod", "--url", "https://tasks.example.org"])
    assert _completed("duetime context use ") == ["local", "prod"]
    assert _completed("duetime context remove p") == ["prod"]
    file.write_text("{")
    assert _completed("duetime context use ") == []


def test_all_task_states_of_the_api_are_completed() -> None:
    """All task states of the API are completed."""
    assert set(STATES) == {state.value for state in State}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(shell: str) -> None:
    """`--show-completion` prints the completion script of each shell."""
    environ = {"_DUETIME_COMPLETE": f"source_{shell}"}
    assert "duetime" in CliRunner().invoke(app, [], prog_name="duetime", env=environ).stdout
