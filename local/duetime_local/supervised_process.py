"""Runs a command that is ended, with all of its children, when this process ends."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GUARD = Path(__file__).with_name("process_guard.py")


@contextmanager
def guarded(
    command: Sequence[str],
    *,
    environ: Mapping[str, str],
    cwd: Path,
    output: int | IO[bytes],
    folder: Path | None = None,
    grace_seconds: float = 0,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` within the context; afterwards, all of its processes are killed, and `folder` is removed.

    With `grace_seconds`, the command is first asked to stop. The yielded process is the guard, which exits with the
    command's exit code.
    """
    process = subprocess.Popen(  # noqa: S603 - our own script and our own tools
        [sys.executable, str(GUARD), str(folder or ""), str(grace_seconds), *command],
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        # The guard has a separate session, so that Ctrl-C reaches only this process, which then ends the guard and the
        # command.
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            # Closing the pipe makes the guard end the command; the guard exits when no process is left.
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
