"""Runs the complete test suite many times under different circumstances, and lists the tests that failed at least once.

A run's number decides its circumstances (the number of processes, how busy the machine is, the order of tests, and
Python's hash seed). A run can be repeated by its number: `--first 7 --runs 1`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROCESSES = (3, 1, 4)
LOADS = (0, 8)
BUSY = "while True: pass"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How a run differs from the other runs.

    Attributes:
        number: the run's number, from which everything else follows.
        processes: the number of pytest-xdist processes.
        load: the number of processes that keep the machine busy during the tests.
        hash_seed: the value of `PYTHONHASHSEED`.
        is_shuffled: whether files and the tests in them run in a random order that is seeded with `number`.
    """

    number: int
    processes: int
    load: int
    hash_seed: int
    is_shuffled: bool

    @classmethod
    def of(cls, number: int) -> Circumstances:
        """Return a run's circumstances by the run's number, from 0; run 0 is `make test` on a quiet machine."""
        return cls(
            number=number,
            processes=PROCESSES[number % len(PROCESSES)],
            load=LOADS[number // len(PROCESSES) % len(LOADS)],
            hash_seed=number,
            is_shuffled=(number + number // 6) % 2 == 1,
        )

    def command(self, report: Path, only: Sequence[str]) -> list[str]:
        """Return the pytest command line for the suite."""
        order = [f"--random-order-seed={self.number}", "--random-order-bucket=module"] if self.is_shuffled else []
        spread = ["-n", str(self.processes), "--no-loadscope-reorder"]
        return [sys.executable, "-m", "pytest", "-q", *spread, *order, f"--junit-xml={report}", *only]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        code: pytest's exit code.
        seconds: how long the run took.
        tests: how many tests ran.
        failed: the tests that failed, with the first line of the reason.
    """

    code: int
    seconds: float
    tests: int
    failed: tuple[tuple[str, str], ...]


@contextmanager
def busy_machine(load: int) -> Iterator[None]:
    """Keep the machine busy with this many processes."""
    with ExitStack() as stack:
        for _ in range(load):
            process = subprocess.Popen([sys.executable, "-c", BUSY])  # noqa: S603 - our own
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def run(circumstances: Circumstances, only: Sequence[str], log: Path) -> Outcome:
    """Run the suite once, with its output in `log`."""
    with tempfile.TemporaryDirectory() as folder, busy_machine(circumstances.load), log.open("wb") as output:
        report = Path(folder) / "report.xml"
        began = time.monotonic()
        ended = subprocess.run(  # noqa: S603 - same
            circumstances.command(report, only),
            env={**os.environ, "PYTHONHASHSEED": str(circumstances.hash_seed)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
        took = time.monotonic() - began
        tests, failed = read_report(report) if report.exists() else (0, ())
    return Outcome(ended.returncode, took, tests, failed)


def read_report(report: Path) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Return the number of tests in a JUnit report, and the failed tests with the first line of their reasons."""
    cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314 - pytest has just written it
    failed = [
        (f"{case.get('classname')}::{case.get('name')}", (trouble.get("message") or "").split("\n")[0])
        for case in cases
        for trouble in (*case.findall("failure"), *case.findall("error"))
    ]
    return len(cases), tuple(failed)


def main() -> int:
    """Run the suite as often as requested; exit with 1 if any test failed at least once."""
    # If this program is ended by a signal, its load processes end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--logs", type=Path, default=Path("build/flakiness"), help="where the output of each run goes")
    parser.add_argument("only", nargs="*", help="test files or folders to run (default: all tests)")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    console = Console()
    table = Table("run", "processes", "busy processes", "order", "tests", "failed", "minutes")
    failures: dict[str, list[int]] = {}
    broken = 0
    for number in range(options.first, options.first + options.runs):
        circumstances = Circumstances.of(number)
        order = "random" if circumstances.is_shuffled else "as written"
        setting = [str(number), str(circumstances.processes), str(circumstances.load), order]
        with console.status(f"Run {number}: {circumstances}"):
            outcome = run(circumstances, options.only, options.logs / f"{number}.log")
        table.add_row(*setting, str(outcome.tests), str(len(outcome.failed)), f"{outcome.seconds / 60:.1f}")
        console.print(f"run {number}: {outcome.tests} tests, {len(outcome.failed)} failed, exit {outcome.code}")
        broken += outcome.code != 0
        for name, reason in outcome.failed:
            console.print(f"  [red]{name}[/red] {reason}", highlight=False)
            failures.setdefault(name, []).append(number)
    console.print(table)
    for name, runs in sorted(failures.items()):
        console.print(f"[red]{name}[/red] failed in {len(runs)} of {options.runs} runs: {runs}", highlight=False)
    console.print(f"{options.runs - broken} passed, {broken} failed", highlight=False)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
