"""Tests that other packages can add sub-commands to `duetime`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]

WORKING = """
import typer

app = typer.Typer(help="Greets.")


@app.command()
def greet(name: str) -> None:
    print(f"hello {name}")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a package that declares a sub-command, as a package installer would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def package(name: str, source: str, command: str) -> None:
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        (metadata / "entry_points.txt").write_text(f"[duetime.commands]\n{command} = {name}:app\n", encoding="utf-8")

    return package


def test_a_plugin_is_a_sub_command(duetime: Run, install: Callable[..., None]) -> None:
    """An installed typer app becomes a sub-command with the entry point's name and the app's commands and help."""
    install("plugin_that_works", WORKING, "hello")
    assert "Greets" in duetime("--help").stdout
    assert duetime("hello", "greet", "world").stdout == "hello world\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [("import a_module_that_is_nowhere", "ModuleNotFoundError"), ("", "AttributeError"), ("app = 1", "AttributeError")],
)
def test_a_broken_plugin_is_reported_only_on_use(
    duetime: Run, install: Callable[..., None], source: str, reason: str, request: pytest.FixtureRequest
) -> None:
    """A broken plugin is marked in the help, prints the reason when it is used, and does not affect other commands."""
    install(f"plugin_that_breaks_{request.node.callspec.indices['source']}", source, "broken")
    assert duetime("tasks", "list").exit_code == 0
    listed = duetime("--help")
    assert listed.exit_code == 0
    assert "(cannot be loaded)" in listed.stdout
    used = duetime("broken", "anything", "--at", "all")
    assert (used.exit_code, used.stdout) == (1, "")
    assert used.stderr.startswith("error: the command 'broken' of plugin_that_breaks_")
    assert reason in used.stderr
    assert used.stderr.count("\n") == 1


def test_a_plugin_cannot_replace_a_built_in_command(duetime: Run, install: Callable[..., None]) -> None:
    """A plugin named `tasks` does not replace the `tasks` command."""
    install("plugin_that_usurps", WORKING, "tasks")
    assert duetime("tasks", "list", "--json").stdout == "[]\n"


def test_an_unknown_command_is_a_usage_error(duetime: Run) -> None:
    """An unknown command is reported as a usage error."""
    result = duetime("nonsense")
    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_the_version_option_prints_the_version_of_the_distribution(duetime: Run) -> None:
    """`--version` prints the name and the version, and exits with code 0."""
    result = duetime("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("duetime ")
    assert result.stdout.split()[1][0].isdigit()


def test_without_the_local_package_the_error_names_the_package(duetime: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the local stack's package, `duetime dev` names the package to install."""
    monkeypatch.setattr("duetime_client.commands.plugins.plugins", dict)
    result = duetime("dev")
    assert result.exit_code == 2
    assert "duetime-local" in result.stderr
