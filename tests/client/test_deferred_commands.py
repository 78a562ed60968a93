"""Tests that a command's module is imported only when the command runs."""

from __future__ import annotations

import operator
import subprocess
import sys
from pathlib import Path

import pytest
from typer._click.exceptions import UsageError

import duetime_client
from duetime_client.commands import deferred_commands
from duetime_client.commands.deferred_commands import BUILTIN, DeferredCommand
from duetime_local import plugins

COMMANDS = [*BUILTIN.values(), plugins.dev, plugins.local]
FOLDER = Path(deferred_commands.__file__).parent
SLOW = ("httpx", "pydantic", "yaml", "botocore", "boto3", "duetime_local.stack")
"""Libraries that take a tenth of a second or more to import."""
SELDOM = ("yaml", "jmespath", "botocore", "boto3", "websockets", "mcp", "duckdb", "duetime_client.topology_files")
"""Libraries that only some commands use."""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_the_listed_summary_equals_the_summary_in_the_commands_help(command: DeferredCommand) -> None:
    """The summary in the list of commands equals the summary in the command's own help."""
    summary, loaded = command.summarized(), command.load()
    assert (summary.name, loaded.name) == (command.name, command.name)
    assert (loaded.help or "").split("\n")[0] == summary.help


def test_the_error_for_a_missing_distribution_names_the_distribution() -> None:
    """If a command's package is not installed, the error names it; other import errors are raised unchanged."""
    absent = DeferredCommand("restore", "absent_distribution.restore", "restore", "Restore.", "duetime-cdk")
    with pytest.raises(UsageError, match="'restore' comes with duetime-cdk: pip install duetime-cdk"):
        absent.load()
    with pytest.raises(ModuleNotFoundError):
        DeferredCommand("own", "absent_distribution.own", "own", "Own.").load()


def test_every_group_of_commands_is_listed() -> None:
    """Each module that defines a group is a command, or its commands belong to another group."""
    modules = {path.stem for path in FOLDER.glob("*.py") if "\napp = CommandGroup(" in path.read_text()}
    assert modules - {command.module.rpartition(".")[2] for command in COMMANDS} == {
        "app",
        "backfills",
        "task_control",
        "task_wait",
        "topology_definitions",
    }


def test_the_list_of_commands_imports_no_command() -> None:
    """`duetime --help` imports none of the slow libraries."""
    program = (
        "import sys\nfrom duetime_client.commands.app import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set({SLOW!r}) & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a constant
    assert all(name in ended.stdout for name in BUILTIN)
    assert ended.stderr.strip() == "[]"


def _imported(*arguments: str) -> tuple[set[str], int]:
    """Return the slow libraries that a command imports, and the number of imported modules."""
    program = (
        "import sys\nfrom duetime_client.commands.app import app\n"
        f"try:\n    app({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        f"print(*sorted({set(SLOW) | set(SELDOM)!r} & set(sys.modules)), len(sys.modules), sep=',')"
    )
    command = [sys.executable, "-I", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a constant
    assert ended.returncode == 0, ended.stderr
    *libraries, modules = ended.stdout.splitlines()[-1].split(",")
    return set(libraries), int(modules)


@pytest.mark.parametrize(("arguments", "most"), [(["version"], 260), (["tasks", "get", "--help"], 315)])
def test_help_and_version_import_only_typer_and_its_dependencies(arguments: list[str], most: int) -> None:
    """`--help` and `--version` import only typer and its dependencies, and a limited number of modules."""
    libraries, modules = _imported(*arguments)
    assert libraries == set()
    assert modules <= most


def test_a_command_imports_only_the_libraries_that_it_uses() -> None:
    """A command imports only the libraries that it uses; options and responses always need pydantic."""
    libraries, modules = _imported("tasks", "list", "--url", "http://127.0.0.1:1")
    assert libraries == {"httpx", "pydantic"}
    assert modules <= 535


def test_every_public_name_can_be_imported_lazily() -> None:
    """The package exports exactly the names that it lists."""
    assert [name for name in duetime_client.__all__ if getattr(duetime_client, name) is None] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        operator.attrgetter("nothing")(duetime_client)
