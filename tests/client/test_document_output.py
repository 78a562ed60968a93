"""Tests that `--json`, `--output` and `--query` work alike with every command that prints a document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.client.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.deployment import Deployment

    Run = Callable[..., Result]

WITHOUT = {
    *(
        "links delete",
        "tasks delete",
        "topologies validate",
        "topologies delete",
        "context add",
        "context use",
        "context remove",
        "region add",
        "region replicate",
    ),
    *("import crontab", "import celery", "import eventbridge-scheduler", "import airflow", "import quartz"),
    *(
        "import kubernetes-cronjobs",
        "import github-actions",
        "worker run",
        "verify",
        "doctor",
        "version",
        "mcp",
        "init",
        "deploy",
        "restore",
        "uninstall",
    ),
    "template",
    *("dev", "local up", "local demo", "secrets rotate"),
}
"""Commands that print no document but a sentence, a report, or lines in another format."""


@pytest.fixture
def tasks(duetime: Run) -> None:
    """Create two tasks."""
    for name in ("first", "second"):
        duetime("tasks", "create", "report", "--name", name, "--payload", '{"città": [1, null]}')


def test_every_document_command_has_the_same_output_options() -> None:
    """All commands that print documents have the same output options; exceptions are listed here."""
    names = {"as_json", "output", "query"}
    without = {" ".join(path) for path, (command, _) in COMMANDS.items() if not names & _names(command)}
    assert without == WITHOUT
    assert all(names <= _names(command) for path, (command, _) in COMMANDS.items() if " ".join(path) not in WITHOUT)


def _names(command: object) -> set[str]:
    return {each.name for each in command.params}  # type: ignore[attr-defined]  # typer's classes are private


@pytest.mark.usefixtures("tasks")
def test_a_query_selects_part_of_the_document(duetime: Run) -> None:
    """With a query, the selected part is printed as JSON; a missing part is null."""
    assert json.loads(duetime("tasks", "list", "--query", "[].name").stdout) == ["first", "second"]
    assert json.loads(duetime("tasks", "list", "--query", "[?name=='second'].payload | [0]").stdout) == {
        "città": [1, None]
    }
    assert duetime("tasks", "list", "--query", "nothing").stdout == "null\n"


@pytest.mark.usefixtures("tasks")
def test_a_document_is_printed_in_the_requested_format(duetime: Run) -> None:
    """JSON Lines, YAML and text contain the same values as JSON."""
    document = json.loads(duetime("tasks", "list", "--json").stdout)
    assert [json.loads(line) for line in duetime("tasks", "list", "-o", "jsonl").stdout.splitlines()] == document
    assert json.loads(duetime("tasks", "list", "--output=json").stdout) == document
    assert yaml.safe_load(duetime("tasks", "list", "-o", "yaml").stdout) == document
    text = duetime("tasks", "list", "--query", "[].[name, payload, started_at, attempt]", "-o", "text").stdout
    assert text == 'first\t{"città": [1, null]}\t\t0\nsecond\t{"città": [1, null]}\t\t0\n'


@pytest.mark.usefixtures("tasks")
def test_a_table_is_the_default(duetime: Run) -> None:
    """`-o table` prints the default output."""
    assert duetime("tasks", "list", "-o", "table").stdout == duetime("tasks", "list").stdout
    assert "second" in duetime("tasks", "list").stdout


def test_tabs_and_line_breaks_in_text_output_stay_in_one_cell(duetime: Run, deployment: Deployment) -> None:
    """In text output, a value with a tab or a line break stays in one cell."""
    duetime("tasks", "create", "report", "--name", "a\tb\nc")
    assert duetime("tasks", "list", "--query", "[].[name, state]", "-o", "text").stdout == "a b c\tscheduled\n"
    assert len(deployment.received) == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--query", "[?"], "--query"),
        (["--query", "a", "-o", "table"], "--query"),
        (["--json", "-o", "yaml"], "not both"),
        (["-o", "xml"], "--output"),
        (["-o", "jsno"], "Did you mean 'json'?"),
    ],
)
def test_an_invalid_output_option_is_rejected_before_anything_is_sent(
    duetime: Run, deployment: Deployment, options: list[str], told: str
) -> None:
    """An invalid output option is refused before anything is sent, so a command cannot fail after a change."""
    result = duetime("tasks", "create", "report", *options)
    assert (result.exit_code, result.stdout, deployment.received) == (2, "", [])
    assert told in result.stderr


def test_a_query_function_with_an_unsupported_value_is_one_message(duetime: Run) -> None:
    """If a query function does not support a value, the command prints one message without a traceback."""
    result = duetime("tasks", "create", "report", "--query", "sum(state)")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "sum()" in result.stderr
    assert "Traceback" not in result.stderr
