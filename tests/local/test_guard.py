"""Tests that no part of the emulator outlives the process that started the emulator."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from duetime_local import emulator
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

STARTER = """
import signal, sys
from duetime_local import emulator
# If a shell runs the tests in the background, this process has inherited that SIGINT is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with emulator.running(port=0) as started:
    print(started.port, started.folder, flush=True)
    signal.pause()
"""


@contextmanager
def starter() -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """Start a process that runs an emulator, and return it with its port and its folder."""
    process = subprocess.Popen(  # noqa: S603 - this very Python
        [sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout
        port, folder = process.stdout.readline().split()
        try:
            yield process, int(port), Path(folder)
        finally:
            process.kill()


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of processes that name a folder."""
    command = ["ps", "-axww", "-o", "args="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - a constant
    return [line for line in listed.stdout.splitlines() if str(folder) in line]


def is_open(port: int) -> bool:
    """Return whether a process listens on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_ending_the_starting_process_ends_the_emulator_and_deletes_its_folder(number: signal.Signals) -> None:
    """However the starting process ends, the emulator's processes end, its port is free, and its folder is deleted."""
    with starter() as (process, port, folder):
        assert is_open(port)
        assert folder.exists()
        assert processes_of(folder)

        process.send_signal(number)

        assert until(lambda: not is_open(port))
        assert until(lambda: not folder.exists())
        assert until(lambda: not processes_of(folder))


@pytest.mark.slow
@pytest.mark.engine
def test_leaving_the_context_waits_until_the_emulator_has_ended() -> None:
    """After the context has ended, the port can be used again at once, without waiting."""
    with emulator.running(port=0) as first:
        pass

    assert not first.folder.exists()
    assert processes_of(first.folder) == []
    with emulator.running(first.port) as second:
        assert second.client("sqs").list_queues().get("QueueUrls", []) == []


@pytest.mark.engine
def test_a_second_emulator_on_the_same_port_is_rejected() -> None:
    """A second emulator on the same port is refused, and the first emulator is not affected."""
    with emulator.running(port=0) as first:
        with pytest.raises(emulator.EmulatorFailed, match=str(first.port)), emulator.running(first.port):
            pass
        assert is_open(first.port)


def test_the_error_for_a_failed_emulator_start_has_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server fails at startup, the error contains its last output, and no part of the server is left."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho no such luck\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr("duetime_local.emulator.server.interpreter", lambda: program)
    monkeypatch.setattr("duetime_local.emulator.server.roomy_memory", lambda: str(tmp_path))

    with pytest.raises(emulator.EmulatorFailed, match="no such luck"), emulator.running(port=0):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["program"]
