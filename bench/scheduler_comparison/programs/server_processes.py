"""Runs servers and workers on the loopback interface while a scheduler is measured."""

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
    """Return a free port on the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def installed(name: str) -> str:
    """Return the path of a program in this virtual environment."""
    return str(Path(sys.executable).with_name(name))


@contextmanager
def running(*command: str, **environ: str):
    """Run a process within the context.

    The process's output goes to standard error, because standard output carries the protocol.
    """
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
    """Wait until a port accepts connections."""
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
    """Run Redis with its default settings in a temporary folder, and yield its address."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ("--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--loglevel", "warning")
        with running("redis-server", *options):
            wait_for(port)
            yield f"redis://127.0.0.1:{port}/0"
