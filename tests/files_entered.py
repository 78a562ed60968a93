"""Counts the files a reader opens to follow a task through the code (`python -m tests.files_entered [--spine]`).

Makes four walks through the unmodified functions, with AWS fakes in virtual time: a task is created; a worker claims
the task, runs it and writes its end; the trigger places a schedule's occurrence; a topology's node ends and the next
node begins. A file counts if one of its functions is called. Each walk is repeated and only the last repetition counts,
so that imports and setup are left out. `--spine` prints the files of each walk in the order in which they are entered.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import duetime
import duetime_common
from duetime_common import frozen_classes
from duetime_testing import fakes
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import Schedules
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from duetime_testing.simulation.virtual_time import Strand
    from tests.scenarios.scenario import Scenario

_CORE = Path(next(iter(duetime.__path__)))
_COMMON = Path(next(iter(duetime_common.__path__)))
_FUNCTIONS = Path(__file__).resolve().parents[1] / "functions"
_GENERATED = frozen_classes.__file__
"""The file with one comparison for all frozen classes, which replaces those that `dataclass` would generate."""
_FAKES = str(Path(fakes.__file__ or "").parent)
_REPEATS = 3
GOALS = {"create a task": 40, "claim, run and end it": 40, "place an occurrence": 52, "end a node, begin the next": 60}
"""The maximum number of files in each walk."""


class Walk:
    """The files in which functions are called during the invocations of some Lambda functions.

    Attributes:
        files: the files, relative to the core or to the functions' folder, in order and with the number of calls.
    """

    def __init__(self, scenario: Scenario, functions: tuple[str, ...]) -> None:
        self._scenario = scenario
        self._handlers = {str(_FUNCTIONS / name / "handler.py") for name in functions}
        self._strands: set[Strand] = set()
        self.files: dict[str, int] = {}

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        path = frame.f_code.co_filename
        folder = next((each for each in (_CORE, _COMMON, _FUNCTIONS) if path.startswith(f"{each}/")), None)
        if folder is None or path == _GENERATED or frame.f_code.co_name == "<module>":
            return
        strand: Strand | None = self._scenario.time.current()
        if path in self._handlers and strand is not None:
            self._strands.add(strand)
        while strand is not None and strand not in self._strands:
            strand = strand.parent
        if strand is not None and not _is_watched(frame):
            name = str(Path(path).relative_to(folder.parent))
            self.files[name] = self.files.get(name, 0) + 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count only the calls that are made in this context."""
        self.files.clear()
        self._strands.clear()
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)


def _is_watched(frame: FrameType | None) -> bool:
    """Return whether the caller is the AWS fakes' watcher, which decodes writes to check them."""
    while frame is not None and not frame.f_code.co_filename.startswith(_FAKES):
        frame = frame.f_back
    return frame is not None


def _created() -> dict[str, int]:
    with Tasks() as tasks:
        walk = Walk(tasks, ("api",))
        for _ in range(_REPEATS):
            with walk.watching():
                tasks.create(delay=MINUTE)
        return walk.files


def _run() -> dict[str, int]:
    with Tasks() as tasks:
        walk = Walk(tasks, ("worker",))
        for _ in range(_REPEATS):
            task = tasks.create(delay=2 * SECOND)
            with walk.watching():
                tasks.run(5 * SECOND)
            assert tasks.record(task).is_terminal
        return walk.files


def _occurrence() -> dict[str, int]:
    with Schedules() as schedules:
        walk = Walk(schedules, ("trigger",))
        schedules.make(rate="1 minute")
        for _ in range(_REPEATS):
            placed = len(schedules.placed())
            with walk.watching():
                schedules.run(MINUTE)
            assert len(schedules.placed()) == placed + 1
        return walk.files


def _node() -> dict[str, int]:
    with Graphs() as graphs:
        walk = Walk(graphs, ("worker", "topology"))
        nodes: dict[str, Any] = {"n0": {"type": PLAIN, "delay_seconds": 5}}
        nodes |= {f"n{n}": {"type": PLAIN, "depends_on": [f"n{n - 1}"], "delay_seconds": 5} for n in range(1, 5)}
        graphs.submit(nodes)
        for count in range(1, _REPEATS + 1):
            with walk.watching():
                assert graphs.run_until(partial(_has_run, graphs, count + 1))
        return walk.files


def _has_run(graphs: Graphs, nodes: int) -> bool:
    return len(graphs.ran) >= nodes


WALKS: dict[str, Callable[[], dict[str, int]]] = dict(zip(GOALS, (_created, _run, _occurrence, _node), strict=True))


def main() -> None:
    """Print the number of files of each walk, and with `--spine` their names."""
    console = Console()
    table = Table("walk", "files", "goal", "in services", "in domain", "in contract", "in adapters", "elsewhere")
    spines: dict[str, dict[str, int]] = {}
    for name, walk in WALKS.items():
        spines[name] = files = walk()
        folders = [each.split("/")[1] for each in files if each.startswith("duetime/")]
        counts = [folders.count(each) for each in ("services", "domain", "contract", "adapters")]
        table.add_row(name, str(len(files)), str(GOALS[name]), *map(str, counts), str(len(files) - sum(counts)))
    console.print(table)
    if "--spine" in sys.argv:
        for name, files in spines.items():
            console.rule(name)
            for file, calls in files.items():
                console.print(f"{calls:6} {file}", highlight=False)


if __name__ == "__main__":
    main()
