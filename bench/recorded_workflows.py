"""Compares how long recorded workflows take on the local stack (their makespans) with their critical paths.

python -m bench.recorded_workflows FOLDER (`make workflows`)
python -m bench.recorded_workflows --made 1000

With `--made`, a synthetic graph with this many nodes, in levels of fifty, is run instead.

The `duetime` command runs the graphs one after another, with node times scaled so that all critical paths are equally
long. The measurement fails if a node ran more than once or started before a parent had ended.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from duetime_client import Client
from duetime_local import stack
from duetime_local.terminal import Display

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SOURCE = Path("../shared/data/workflows")
COMMAND = Path(sys.executable).with_name("duetime")
PATIENCE_SECONDS = 600
_PAGE = 100
_WIDTH = 50


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of running a graph; times are in seconds.

    Attributes:
        bound: length of the critical path, using the requested node times.
        makespan: time from the first node's start to the last node's end.
        whole: time from the start of the topology's task to its outcome, which includes the state machine.
        faults: descriptions of the violated guarantees.
    """

    name: str
    nodes: int
    edges: int
    scale: float
    bound: float
    makespan: float
    whole: float
    faults: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """The makespan divided by its lower bound."""
        return self.makespan / self.bound


def measure(client: Client, url: str, path: Path, seconds: float) -> Measured:
    """Run one workflow, with times scaled so that its critical path takes a number of seconds.

    Args:
        client: a client of the stack.
        url: the API's URL.
        path: the workflow's file.
        seconds: duration of the critical path.
    """
    recorded = json.loads(path.read_text(encoding="utf-8"))
    scale = seconds / longest({node["id"]: (node["runtime_s"], node["parents"]) for node in recorded["nodes"]})
    arguments = ["topologies", "run", str(path), "--time-scale", repr(scale), "--wait", "--json", "--url", url]
    done = subprocess.run(  # noqa: S603 - our own command
        [COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    found = json.loads(done.stdout)
    nodes = found["nodes"]
    times = {key: (node["expected_seconds"], node["depends_on"]) for key, node in nodes.items()}
    ends = {key: _attempt_end(client, node["task_id"]) for key, node in nodes.items()}
    return Measured(
        name=path.stem,
        nodes=len(nodes),
        edges=sum(len(node["depends_on"]) for node in nodes.values()),
        scale=scale,
        bound=longest(times),
        makespan=max(ends.values()) - min(map(_started, nodes.values())),
        whole=_outcome_at(client, found["id"]) - _started(found),
        faults=tuple(_faults(client, found, ends)),
    )


def made(nodes: int) -> Iterable[dict[str, object]]:
    """Yield the nodes of a synthetic workflow, in levels of fifty nodes with two parents each in the previous level."""
    for number in range(nodes):
        level, place = divmod(number, _WIDTH)
        parents = {(level - 1) * _WIDTH + (place + step) % _WIDTH for step in (0, 7)} if level else ()
        parents_ids = [f"n{parent}" for parent in sorted(parents)]
        yield {"id": f"n{number}", "program": "made", "runtime_s": 1.0, "parents": parents_ids}


def _outcome_at(client: Client, task_id: str) -> float:
    finished_at = client.tasks.get(task_id).finished_at
    return math.nan if finished_at is None else finished_at.timestamp()


def _attempt_end(client: Client, task_id: str) -> float:
    """Return the time when a task's last attempt ended, before follow-up work such as starting its children."""
    *_, last = client.tasks.list_attempts(task_id)
    began = math.nan if last.started_at is None else last.started_at.timestamp()
    return began + (last.duration_ms or 0) / 1000


def _faults(client: Client, found: Mapping[str, Any], ends: Mapping[str, float]) -> Iterable[str]:
    """Yield a description of each guarantee that a run violated."""
    nodes = found["nodes"]
    if found["state"] != "succeeded":
        yield f"it {found['state']}: {found['counts']}"
    ids = {node["task_id"]: key for key, node in nodes.items()}
    for first in range(0, len(ids), _PAGE):
        for task in client.tasks.list(ids=list(ids)[first : first + _PAGE]):
            if task.attempt != 1:
                yield f"{ids[task.id]} ran {task.attempt} times"
    for key, node in nodes.items():
        for parent in node["depends_on"]:
            if _started(node) < ends[parent]:
                yield f"{key} began before {parent} had ended"


def longest(times: Mapping[str, tuple[float, Iterable[str]]]) -> float:
    """Return the length of the critical path.

    Args:
        times: each node's duration and dependencies, by the node's name.
    """
    ends: dict[str, float] = {}

    def end(key: str) -> float:
        if key not in ends:
            seconds, parents = times[key]
            ends[key] = seconds + max(map(end, parents), default=0.0)
        return ends[key]

    return max(map(end, times))


def _started(node: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(node["started_at"]).timestamp()


def main() -> None:
    """Run the selected workflows, and exit with code 1 if a workflow violated a guarantee."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE, help="folder with the recorded workflows")
    parser.add_argument("--seconds", type=float, default=20.0, help="target duration of each critical path")
    parser.add_argument(
        "--made", type=int, default=0, metavar="NODES", help="run a generated graph with this many nodes instead"
    )
    parser.add_argument("--only", default="", help="run only workflows whose names contain this text")
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder:
        paths = [path for path in sorted(chosen.folder.glob("*.json")) if chosen.only in path.stem]
        if chosen.made:
            paths = [Path(folder, f"made-{chosen.made}.json")]
            paths[0].write_text(json.dumps({"nodes": list(made(chosen.made))}), encoding="utf-8")
        if not paths:
            sys.exit(f"{chosen.folder} contains no workflows")
        sys.exit(1 if _run(paths, chosen.seconds) else 0)


def _run(paths: Iterable[Path], seconds: float) -> list[str]:
    """Run workflows, show a table, and return the violated guarantees."""
    console = Console()
    columns = ("graph", "nodes", "edges", "time scale", "critical path s", "makespan s", "ratio", "whole s", "load")
    table = Table(*columns, title="Recorded workflows on the local stack")
    faults: list[str] = []
    with stack.running(Display(console), port=0) as running, Client(running.ready.api_url) as client:
        for path in paths:
            began = time.monotonic()
            found = measure(client, running.ready.api_url, path, seconds)
            faults += [f"{found.name}: {fault}" for fault in found.faults]
            table.add_row(*_cells(found), f"{os.getloadavg()[0]:.1f}")
            console.print(f"{found.name}: {found.ratio:.2f} in {time.monotonic() - began:.0f} s")
    console.print(table)
    for fault in faults[:20]:
        console.print(fault, style="red")
    return faults


def _cells(found: Measured) -> tuple[str, ...]:
    counts = (str(found.nodes), str(found.edges), f"{found.scale:.4f}")
    return (
        found.name,
        *counts,
        f"{found.bound:.1f}",
        f"{found.makespan:.1f}",
        f"{found.ratio:.2f}",
        f"{found.whole:.1f}",
    )


if __name__ == "__main__":
    main()
