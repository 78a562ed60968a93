"""Draws flame graphs of the CPU time that is needed to read, accept and run tasks.

python -m bench.profiles [FOLDER]

A thousand times a second, py-spy samples the stacks of a process that repeats one operation; stacks that wait for a
response are omitted. The first run installs py-spy into a separate virtual environment.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench import codecs, flame_graph, task_path
from bench.virtual_environments import programs_of

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOT = Path(__file__).resolve().parents[1]
FOLDER = _ROOT / "docs" / "images"
TITLES = {
    "read": "Reading a request to create a task",
    "accept-and-run": "Accepting ten tasks in a batch and running them in one delivery",
}
_PACKAGE = "py-spy==0.4.1"
_RATE, _SECONDS = 1_000, 10.0
_ROOTS = ("repeat (", "_worker (concurrent/futures/thread.py", "_worker (thread.py")
"""Functions that call the measured work, which are the main loop and the loop of pool threads."""
_WAITS = ("readinto (socket.py", "wait (threading.py", "wait (concurrent/futures/_base.py")
"""Functions that only wait when they are the innermost frame, even on a busy machine."""


class NotSampled(RuntimeError):
    """py-spy wrote no samples; the error message contains its output."""


def main(folder: Path = FOLDER) -> None:
    """Sample each operation, and draw its flame graph."""
    for name, title in TITLES.items():
        path = folder / f"profile-{name}.svg"
        path.write_text(flame_graph.svg(flame_graph.tree(_sampled(name), _ROOTS, _WAITS), title))
        print(f"written to {path.name}")


def run(name: str) -> None:
    """Repeat the sampled operation for some seconds."""
    if name == "read":
        repeat(codecs.read_body)
        return
    with task_path.on_engine():
        task_path.accept_and_run()
        repeat(task_path.accept_and_run)


def repeat(work: Callable[[], object]) -> None:
    """Repeat an operation; the measured work is found on the stacks by this function's name."""
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end:
        work()


def _sampled(name: str) -> list[str]:
    """Return the stacks sampled in a separate process that repeats an operation."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "stacks"
        sampling = ["record", "--rate", str(_RATE), "--format", "raw", "--function", "--output", str(out)]
        command = [
            str(programs_of("py-spy", _PACKAGE) / "py-spy"),
            *sampling,
            "--",
            sys.executable,
            "-m",
            "bench.profiles",
            "--run",
            name,
        ]
        # py-spy exits with code 1 if the sampled process has already been reaped, so only its output file is checked.
        ended = subprocess.run(command, cwd=_ROOT, check=False, capture_output=True, text=True)  # noqa: S603 - our own
        if not out.exists():
            raise NotSampled(ended.stderr)
        return out.read_text().splitlines()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        main(*map(Path, sys.argv[1:]))
