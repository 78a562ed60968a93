"""Running a command so that it ends, with all its children, when we end, however we end."""

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
    """Run `command` for the length of the context; afterwards nothing of it is left, `folder` included.

    With `grace_seconds` it may first stop by itself. The process in hand is the guard: it ends as the command does.
    """
    process = subprocess.Popen(  # noqa: S603 - our own script and our own tools
        [sys.executable, str(GUARD), str(folder or ""), str(grace_seconds), *command],
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        # The terminal's Ctrl-C is for us; we then end the guard, and the guard the command.
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            # Closing the pipe is the sign to end; the guard ends when nothing is left.
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
