"""Runs one command, and ensures that no process of the command outlives the parent process.

The parent holds the write end of this process's standard input. When the parent stops, is killed or crashes, the kernel
closes the pipe. The guard then ends the command with all its children, and removes the command's folder. This module is
run as a script, so it imports only the standard library.

Usage: process_guard.py FOLDER GRACE_SECONDS COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

KILL_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
"""The option of Linux's `prctl` that makes this process the parent of its orphaned descendants."""


def main(folder: str, grace_seconds: float, command: list[str]) -> int:
    """Run `command` until the command or the parent process ends; then clean up.

    At the end, all of the command's processes are killed, and `folder` is removed.

    With `grace_seconds`, the command is first asked to stop, so that it can save its state.
    """
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # The command gets its own process group, so that all of its descendants can be killed with it.
    child = subprocess.Popen(  # noqa: S603 - the command is ours
        command,
        stdin=subprocess.DEVNULL,
        process_group=0,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no threads yet
    )
    threading.Thread(target=_wait_for_parent, args=(ended,), daemon=True).start()
    threading.Thread(target=_wait_for_child, args=(child, ended), daemon=True).start()
    ended.wait()
    _end(child, grace_seconds)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    # After a signal, the exit code follows the convention of shells.
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _end_with_parent() -> None:
    """Ask Linux to kill the command if the guard itself is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_for_parent(ended: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    ended.set()


def _wait_for_child(child: subprocess.Popen[bytes], ended: threading.Event) -> None:
    child.wait()
    ended.set()


def _end(child: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """Ask the command to stop if it has a grace period, then kill its process group until the group is empty."""
    if grace_seconds:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace_seconds)
    deadline = time.monotonic() + KILL_SECONDS
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            # Orphaned processes are reaped here, because the group would stay alive under an init process that does not
            # reap.
            with suppress(ChildProcessError):
                os.waitpid(-child.pid, os.WNOHANG)
            time.sleep(0.01)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
