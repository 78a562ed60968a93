"""Tests that the command line's codec is set by an option, a variable or the context."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from duetime_client import Client
from duetime_common.payload_codecs import ENCRYPTED, ENCRYPTED_TEXT
from tests.client.test_worker import TYPE
from tests.client.test_worker import server as server_of_the_api

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from tests.client.api_server import ApiServer

    Run = Callable[..., Result]

server = server_of_the_api
SECRET = "4111-1111"  # noqa: S105 - an example
MODULE = """
class Codec:
    def encode(self, data):
        return b"!" + bytes(255 - each for each in data)

    def decode(self, data):
        assert data[:1] == b"!"
        return bytes(255 - each for each in data[1:])

CODEC = Codec()
NONE = 7
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module with a codec to the current directory, and return the module's name; no contexts are defined."""
    name = f"codec_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("DUETIME_CONTEXTS", str(tmp_path / "contexts.json"))
    return name


@pytest.fixture
def run(duetime: Run, server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the command, connected to the API itself."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    return duetime


def test_create_show_attempts_and_wait_use_the_codec(
    run: Run, server: ApiServer, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the codec, decrypted values are shown; without it, the payload's size and encrypted errors are shown."""
    monkeypatch.setenv("DUETIME_CODEC", f"{module}:CODEC")
    task_id = json.loads(run("tasks", "create", TYPE, "--payload", f'{{"card": "{SECRET}"}}', "--json").stdout)["id"]
    codec = __import__(module).CODEC
    with Client(server.url, codec=codec) as worker:
        (lease,) = worker.leases.acquire([TYPE])
        assert lease.task.payload == {"card": SECRET}
        traceback = f"Traceback\nRefused: {SECRET}\n"
        worker.leases.fail(lease.id, "Refused", f"of {SECRET}", retriable=False, traceback=traceback)
    assert SECRET in run("tasks", "get", task_id).stdout
    assert f"Refused: of {SECRET}" in run("tasks", "get", task_id).stdout
    attempts = run("tasks", "attempts", task_id).stdout
    assert attempts.count(SECRET) == 2
    assert json.loads(run("tasks", "wait", task_id, "--json").stdout)[0]["error"]["message"] == f"of {SECRET}"

    monkeypatch.delenv("DUETIME_CODEC")
    for command in (["tasks", "get"], ["tasks", "attempts"], ["tasks", "wait"], ["why"]):
        result = run(*command, task_id)
        assert SECRET not in result.stdout
        assert ENCRYPTED_TEXT not in result.stdout, command
    assert f"bytes of {ENCRYPTED}" in run("tasks", "get", task_id).stdout
    assert "Refused: [encrypted]" in run("tasks", "get", task_id).stdout
    assert ENCRYPTED_TEXT in run("tasks", "get", task_id, "--json").stdout


def test_the_codec_of_a_context_is_used_only_for_its_address(
    duetime: Run, server: ApiServer, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context's codec is not used if an option names the address; an option for the codec takes precedence."""
    monkeypatch.delenv("DUETIME_URL")
    duetime("context", "add", "team", "--url", server.url, "--codec", f"{module}:CODEC", "--use")
    assert json.loads(duetime("context", "show", "--json").stdout)["codec"] == f"{module}:CODEC"
    made = json.loads(duetime("tasks", "create", TYPE, "--payload", f'"{SECRET}"', "--json").stdout)
    assert made["payload"] == SECRET
    shown = json.loads(duetime("tasks", "get", made["id"], "--url", server.url, "--json").stdout)
    assert shown["payload"]["$binary"]["content_type"] == ENCRYPTED
    assert duetime("tasks", "get", made["id"], "--codec", "nothing:CODEC").exit_code == 2


def test_the_current_directory_is_searched_last_for_modules(
    run: Run, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module in the current directory does not replace an installed module with the same name."""
    installed, here = tmp_path / "installed", tmp_path / "here"
    for folder in (installed, here):
        folder.mkdir()
        (folder / f"{module}_c.py").write_text(MODULE if folder is installed else "raise SystemExit('replaced')")
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.chdir(here)
    assert run("tasks", "create", TYPE, "--payload", "1", "--codec", f"{module}_c:CODEC").exit_code == 0


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("{}", "is not MODULE:NAME, such as codec:CODEC"),
        ("{}:", "is not MODULE:NAME, such as codec:CODEC"),
        ("{}:OTHER", "cannot be loaded"),
        ("{}_other:CODEC", "cannot be loaded"),
        ("{}:NONE", "has no methods encode and decode"),
    ],
)
def test_an_invalid_codec_is_a_usage_error(run: Run, module: str, name: str, error: str) -> None:
    """A wrong codec is a usage error, and no task is created."""
    result = run("tasks", "create", TYPE, "--codec", name.format(module))
    assert result.exit_code == 2
    assert error in " ".join(result.stderr.replace("│", " ").split())
    assert json.loads(run("tasks", "list", "--json").stdout) == []


def test_a_value_that_cannot_be_decrypted_is_an_error_on_one_line(run: Run, module: str, tmp_path: Path) -> None:
    """A value that was encrypted with a different key causes a one-line error."""
    codec = ["--codec", f"{module}:CODEC"]
    task_id = json.loads(run("tasks", "create", TYPE, "--payload", "1", *codec, "--json").stdout)["id"]
    (tmp_path / f"{module}_b.py").write_text(MODULE.replace('b"!"', 'b"?"'))
    result = run("tasks", "get", task_id, "--codec", f"{module}_b:CODEC")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "the codec cannot decrypt the response: AssertionError" in result.stderr
