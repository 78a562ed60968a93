"""Servers and workers that run while a scheduler is measured, on the loopback only."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).parent
_READY_SECONDS, _STOP_SECONDS = 60.0, 20.0


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def installed(name: str) -> str:
    """The path of a program of this virtual environment."""
    return str(Path(sys.executable).with_name(name))


@contextmanager
def running(*command: str, **environ: str):
    """A process, until the context ends. What it prints goes to standard error: standard output is the protocol's."""
    with subprocess.Popen(command, cwd=FOLDER, env={**os.environ, **environ}, stdout=sys.stderr) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(port: int) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + _READY_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


@contextmanager
def redis_server():
    """Redis with its own defaults, in a folder of its own; gives its address."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ("--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--loglevel", "warning")
        with running("redis-server", *options):
            wait_for(port)
            yield f"redis://127.0.0.1:{port}/0"
