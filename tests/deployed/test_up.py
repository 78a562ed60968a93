"""Tests of the command `duetime local up`, started as if by a user, and of the ways in which the command ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from duetime_client import Client
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPLOY_SECONDS = 600.0
COMMAND = Path(sys.executable).with_name("duetime")

pytestmark = pytest.mark.deployed


@contextmanager
def up(ready_file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The running command, without its demo."""
    arguments = ["local", "up", "--no-demo", "--ready-file", str(ready_file)]
    with subprocess.Popen([COMMAND, *arguments], stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own command
        try:
            yield process
        finally:
            process.kill()


def descendants(pid: int) -> set[int]:
    """The process identifiers of all direct and indirect children of a process."""
    command = ["ps", "-axww", "-o", "pid=,ppid="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a constant
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.stdout.splitlines())}
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def alive(pids: set[int]) -> set[int]:
    """The processes that have not ended."""
    command = ["ps", "-axww", "-o", "pid="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a constant
    return pids & {int(line) for line in listed.stdout.split()}


@pytest.mark.slow
def test_the_stack_is_announced_when_it_is_up_and_gone_after_sigterm(tmp_path: Path) -> None:
    """The ready file names a working API, and SIGTERM ends all processes, removes the file, and is not a failure."""
    ready_file = tmp_path / "ready.json"
    with up(ready_file) as process:
        assert until(ready_file.exists, DEPLOY_SECONDS)
        ready = json.loads(ready_file.read_text())
        assert ready["pid"] == process.pid
        with Client(ready["api_url"]) as client:
            assert list(client.tasks.list()) == []
        started = descendants(process.pid)
        assert started

        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_SECONDS) == 0
    assert not ready_file.exists()
    # The new parent of an ended process may take a moment to reap the process.
    assert until(lambda: not alive(started))


@pytest.mark.slow
def test_a_command_that_is_killed_while_it_deploys_leaves_nothing(tmp_path: Path) -> None:
    """Even SIGKILL during the deployment leaves no process behind."""
    with up(tmp_path / "ready.json") as process:
        # The four processes are the guard, the emulator, the emulator's guard, and the AWS CDK.
        assert until(lambda: len(descendants(process.pid)) >= 4, DEPLOY_SECONDS)
        started = descendants(process.pid)

        os.kill(process.pid, signal.SIGKILL)

        assert until(lambda: not alive(started))
