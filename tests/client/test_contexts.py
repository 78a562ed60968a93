"""Tests how a context selects the deployment if a command's options do not name an address."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tests.client.deployment import Deployment

    Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a folder without a stack, no contexts file, and no address in the environment."""
    monkeypatch.setenv("DUETIME_CONTEXTS", str(tmp_path / "config" / "contexts.json"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def unset(duetime: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the command without an address in its environment."""
    monkeypatch.delenv("DUETIME_URL")
    return duetime


def announce(folder: Path, url: str, pid: int) -> None:
    """Write the ready file of a stack to a checkout."""
    file = folder / ".duetime" / "local.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"api_url": url, "aws_endpoint_url": "http://127.0.0.1:1", "pid": pid}))


def test_by_default_the_local_stack_of_the_checkout_is_used(
    unset: Run, deployment: Deployment, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any folder of a checkout whose stack is running, a command finds the stack without an option."""
    announce(home, deployment.url, os.getpid())
    (home / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(home / "deep" / "er")

    assert unset("tasks", "list").exit_code == 0
    assert deployment.url in unset("context", "show").stdout


def test_the_ready_file_of_a_crashed_stack_is_ignored(unset: Run, deployment: Deployment, home: Path) -> None:
    """The ready file of a crashed stack is ignored, and the error names all ways to choose a deployment."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    announce(home, deployment.url, ended.pid)

    result = unset("tasks", "list")

    assert result.exit_code == 2
    assert deployment.received == []
    assert all(way in result.stderr for way in ("--url", "DUETIME_URL", "duetime context add", "duetime dev"))


def test_a_variable_selects_the_stack_of_another_ready_file(
    unset: Run, deployment: Deployment, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`DUETIME_READY_FILE` selects a stack from any folder and takes precedence over the stack of the checkout."""
    announce(home, "http://127.0.0.1:1", os.getpid())
    announce(home / "elsewhere", deployment.url, os.getpid())
    monkeypatch.setenv("DUETIME_READY_FILE", str(home / "elsewhere" / ".duetime" / "local.json"))
    assert unset("tasks", "list").exit_code == 0
    assert len(deployment.received) == 1

    monkeypatch.setenv("DUETIME_READY_FILE", str(home / "nowhere.json"))
    assert unset("tasks", "list").exit_code == 2


def test_the_current_context_takes_precedence_over_the_local_stack(
    unset: Run, deployment: Deployment, home: Path
) -> None:
    """A context sets the address and the owner; options take precedence."""
    announce(home, "http://127.0.0.1:1", os.getpid())
    unset("context", "add", "team", "--url", deployment.url, "--owner", "ada", "--use")

    assert unset("tasks", "list").exit_code == 0
    assert deployment.received[-1].headers["X-Duetime-Owner"] == "ada"
    assert unset("tasks", "list", "--owner", "bob").exit_code == 0
    assert deployment.received[-1].headers["X-Duetime-Owner"] == "bob"
    assert unset("tasks", "list", "--url", "http://127.0.0.1:1").exit_code == 3

    unset("context", "use", "local")
    assert unset("tasks", "list").exit_code == 3


def test_an_explicit_address_ignores_the_current_context(unset: Run, deployment: Deployment) -> None:
    """The owner and the authentication of a context are not sent to another deployment."""
    unset("context", "add", "team", "--url", "https://tasks.example.org", "--owner", "ada", "--auth", "bearer", "--use")

    assert unset("tasks", "list", "--url", deployment.url).exit_code == 0

    assert "X-Duetime-Owner" not in deployment.received[-1].headers
    assert "Authorization" not in deployment.received[-1].headers


def test_a_variable_selects_a_context_for_one_command(
    unset: Run, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context in the variable replaces the current context, and the error for an unknown name lists known names."""
    unset("context", "add", "away", "--url", "http://127.0.0.1:1", "--use")
    unset("context", "add", "team", "--url", deployment.url)
    monkeypatch.setenv("DUETIME_CONTEXT", "team")
    assert unset("tasks", "list").exit_code == 0

    monkeypatch.setenv("DUETIME_CONTEXT", "nobody")
    result = unset("tasks", "list")
    assert result.exit_code == 2
    assert all(name in result.stderr for name in ("nobody", "away", "team", "local"))


def test_contexts_are_listed_and_removed(unset: Run, deployment: Deployment) -> None:
    """The list marks the current context; a context that is removed is no longer current."""
    unset("context", "add", "team", "--url", deployment.url, "--use")
    unset("context", "add", "away", "--url", "https://tasks.example.org", "--auth", "iam")

    listed = json.loads(unset("context", "list", "--json").stdout)
    assert [(each["name"], each["in_use"], each["auth"]) for each in listed] == [
        ("away", False, "iam"),
        ("team", True, "none"),
    ]
    assert "*  team" in unset("context", "list").stdout

    assert unset("context", "remove", "team").exit_code == 0
    assert unset("context", "remove", "team").exit_code == 2
    assert unset("tasks", "list").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "x"),
        ("add", "x", "--url", "https://e.org", "--stack", "s"),
        ("add", "local", "--url", "https://e.org"),
        ("use", "nobody"),
    ],
)
def test_a_context_without_exactly_one_address_is_rejected(unset: Run, home: Path, arguments: tuple[str, ...]) -> None:
    """A context that is unknown, lacks exactly one address, or is named `local` is refused, and nothing is written."""
    assert unset("context", *arguments).exit_code == 2
    assert not (home / "config").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"contexts": {"x": {"nothing": 1}}}', '{"contexts": 3}'])
def test_an_invalid_contexts_file_is_reported_and_stays_unchanged(unset: Run, home: Path, text: str) -> None:
    """An invalid contexts file causes a usage error that names the file, and the file stays unchanged."""
    file = home / "config" / "contexts.json"
    file.parent.mkdir()
    file.write_text(text)

    result = unset("context", "add", "x", "--url", "https://e.org")

    assert result.exit_code == 2
    assert "contexts.json" in result.stderr.replace("\n", "")
    assert file.read_text() == text


def test_only_the_user_can_read_the_contexts_file(unset: Run, home: Path) -> None:
    """Only the user can read the contexts file because names and addresses of deployments are confidential."""
    unset("context", "add", "x", "--url", "https://e.org")
    assert stat.S_IMODE((home / "config" / "contexts.json").stat().st_mode) == 0o600


class CloudFormation:
    """Implements the parts of CloudFormation that return stacks and their outputs."""

    def __init__(self, outputs: dict[str, str]) -> None:
        self._outputs = outputs

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's own parameter
        """Return the outputs of a stack."""
        assert StackName == "duetime-prod"
        pairs = [{"OutputKey": key, "OutputValue": value} for key, value in self._outputs.items()]
        return {"Stacks": [{"Outputs": pairs}]}


@pytest.mark.parametrize(("outputs", "exit_code"), [({"ApiUrl": "https://prod.example.org"}, 0), ({"Other": "x"}, 1)])
def test_the_address_is_read_from_the_outputs_of_the_stack(
    unset: Run, monkeypatch: pytest.MonkeyPatch, outputs: dict[str, str], exit_code: int
) -> None:
    """The deployment's address is read from the stack's outputs, and the context's requests are signed."""
    session = botocore.session.Session
    monkeypatch.setattr(session, "create_client", lambda *_, **__: CloudFormation(outputs))

    assert unset("context", "add", "prod", "--stack", "duetime-prod").exit_code == exit_code

    listed = json.loads(unset("context", "list", "--json").stdout)
    assert [(each["url"], each["auth"], each["stack"]) for each in listed] == (
        [("https://prod.example.org", "iam", "duetime-prod")] if exit_code == 0 else []
    )


def test_the_version_command_and_short_help_option_work(unset: Run) -> None:
    """`duetime version` prints the same as `--version`, and `-h` prints the same as `--help`."""
    assert unset("version").stdout == unset("--version").stdout
    for arguments in ((), ("tasks",), ("tasks", "create"), ("context", "add")):
        assert unset(*arguments, "-h").stdout == unset(*arguments, "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("task",), "'tasks'"),
        (("locale",), "'local'"),
        (("tasks", "creat"), "create"),
        (("tasks", "list", "--stat", "failed"), "--state"),
    ],
)
def test_a_misspelled_command_or_option_is_answered_with_a_suggestion(
    unset: Run, arguments: tuple[str, ...], meant: str
) -> None:
    """The error for a misspelled command or option suggests the correct spelling."""
    result = unset(*arguments)
    assert result.exit_code == 2
    assert meant in result.stderr
