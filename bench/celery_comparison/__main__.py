"""Compares how Celery and duetime run the same tasks: `python -m bench.celery_comparison [COUNT]`.

The first run installs Celery into a separate virtual environment. Each program runs in its own process and calls the
embedded AWS through a proxy that counts requests. The ratios of the programs' requests and CPU times are saved in
`results.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import results
from bench.aws_proxy import ProxyServer, proxied
from bench.virtual_environments import programs_of
from duetime_local import emulator

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
COUNT, TOGETHER = 5_000, 100
_SETTING_UP = frozenset({"", "CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive", "CreateQueue"})
"""Operations that are called only during setup, so that their number does not depend on the number of tasks."""


class TasksMissing(RuntimeError):
    """A program ended before it had run all of its tasks, so it cannot be compared."""

    def __init__(self, ended: int, count: int) -> None:
        super().__init__(f"{ended} of {count} tasks have run")


class CountingProxy(ProxyServer):
    """Counts requests by operation."""

    def __init__(self, *given: Any) -> None:  # noqa: ANN401 - as in the base class
        super().__init__(*given)
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()

    def answer(self, operation: str) -> None:
        """Count the request, and return `None` so that it is forwarded."""
        with self._lock:
            self.requests[operation] += 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The resources that one program used for all tasks.

    Attributes:
        requests: number of requests by operation, excluding setup.
        cpu, wall: CPU time and wall time, in seconds.
    """

    requests: Counter[str]
    cpu: float
    wall: float

    @classmethod
    def of(cls, command: Sequence[str], count: int) -> Outcome:
        """Run a program with its own embedded AWS, and return its outcome.

        Raises:
            TasksMissing: the program did not run all tasks.
        """
        with emulator.running(port=0) as engine, proxied(CountingProxy, engine.port) as proxy:
            address = f"http://127.0.0.1:{proxy.server_port}"
            environ = {**os.environ, **engine.environ, "AWS_ENDPOINT_URL": address}
            # Celery needs the port for the addresses of its broker and result backend.
            words = [each.replace("PORT", str(proxy.server_port)) for each in command]
            run = subprocess.run(words, env=environ, check=True, capture_output=True, text=True)  # noqa: S603 - our own
            figures = json.loads(run.stderr.strip().splitlines()[-1])
            if figures["ended"] != count:
                raise TasksMissing(figures["ended"], count)
            requests = Counter({name: n for name, n in proxy.requests.items() if name not in _SETTING_UP})
            return cls(requests, figures["cpu"], figures["wall"])


def compare(count: int) -> dict[str, Outcome]:
    """Run the programs one after another, and return their outcomes by name."""
    ours = [sys.executable, "-m", "bench.celery_comparison.duetime_program", str(count)]
    theirs = [
        str(programs_of("celery", (HERE / "requirements.txt").read_text()) / "python"),
        str(HERE / "celery_program.py"),
        "PORT",
        str(count),
    ]
    return {
        "Celery": Outcome.of(theirs, count),
        "duetime, a hundred a request": Outcome.of([*ours, str(TOGETHER)], count),
        "duetime, one a request": Outcome.of([*ours, "1"], count),
    }


def main() -> None:
    """Run both programs, print the outcomes, and save the ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    outcomes = compare(count)
    for name, each in outcomes.items():
        counts = ", ".join(f"{operation} {number / count:.2f}" for operation, number in each.requests.most_common())
        per_task = f"{each.requests.total() / count:.2f} requests, {1_000 * each.cpu / count:.2f} ms of processor"
        print(f"{name}: {per_task} a task; {each.wall:.1f} s for {count} ({counts})")
    celery, ours = outcomes["Celery"], outcomes["duetime, a hundred a request"]
    ratios = {
        "requests_vs_celery": round(ours.requests.total() / celery.requests.total(), 3),
        "cpu_vs_celery": round(ours.cpu / celery.cpu, 3),
    }
    results.keep(HERE.parent, ratios)


if __name__ == "__main__":
    main()
